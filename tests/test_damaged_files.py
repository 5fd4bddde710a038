"""Whatever is wrong with a file that is read back, it is refused by name, or the result is right all the same."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.damage import damaged
from tests.random_play import random_screens
from vaeiw_jax import configs, models, workdirs
from vaeiw_jax.atari import AtariConfig
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import evaluation, expansion, status
from vaeiw_jax.experiments.evaluation import EvaluationConfig
from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.planning import PlannerConfig
from vaeiw_jax.playing import collecting, replaying, runs, screen_store
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig, Run
from vaeiw_jax.training import loop
from vaeiw_jax.training.checkpoints import TrainingCheckpoints
from vaeiw_jax.vae.architecture import variable_shapes
from vaeiw_jax.vae.config import ModelConfig, TrainConfig

EPISODE = EpisodeConfig(
    AtariConfig("Pong"),
    PlannerConfig(budget_seconds=None, budget_nodes=4),
    FeaturesConfig("ram"),
    max_actions=6,
)


def check(path: Path, read: Callable[[Path], Any], flips: int = 12) -> int:
    """Damages a file in a copy of its work directory, and reads that.

    Args:
      path: the file; its work directory is the nearest one named `workdir`.
      read: given a work directory, returns what its files lead to.
      flips: how many bits to flip, one after another.

    Returns:
      How often it was refused, rather than read to the right result.
    """
    (workdir,) = (parent for parent in path.parents if parent.name == "workdir")
    expected = read(_copy(workdir))
    refused = 0
    for how in damaged(path, flips):
        copy = _copy(workdir)
        try:
            result = read(copy)
        except UserError as error:
            refused += 1
            place = path.relative_to(workdir)
            named = (place.name, *(str(copy / parent) for parent in place.parents[:-1]))
            if not any(name in str(error) for name in named):
                raise AssertionError(f"{how}: {error}") from error
        else:
            np.testing.assert_equal(result, expected, err_msg=how)
    return refused


def _copy(workdir: Path) -> Path:
    copy = workdir.parent / "copy" / "workdir"
    shutil.rmtree(copy, ignore_errors=True)
    return Path(shutil.copytree(workdir, copy))


def interrupted_after(calls: int) -> Callable[[], bool]:
    asked: list[None] = []
    return lambda: asked.append(None) or len(asked) > calls  # type: ignore[func-returns-value]


def test_what_play_reads(tmp_path: Path) -> None:
    config, workdir = PlayConfig(EPISODE, seed=2), tmp_path / "workdir"
    run = Run(workdir, "Pong", 2)
    assert runs.play(config, workdir, interrupted_after(3)) is None
    for path in (workdir / "config.json", run.progress):
        assert check(path, lambda workdir: runs.play(config, workdir))
    assert runs.play(config, workdir) is not None
    for path in (workdir / "config.json", run.record):
        assert check(path, lambda workdir: runs.play(config, workdir))
    for path in (run.record, run.decisions):
        assert check(path, lambda workdir: replaying.verify(Run(workdir, "Pong", 2)))
    check(run.host, lambda workdir: runs.play(config, workdir))  # it may or may not be missed


def test_what_collect_reads(tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"

    def collect(screens: int) -> Callable[[Path], Any]:
        def read(workdir: Path) -> Any:
            record = collecting.collect(CollectConfig(EPISODE, num_screens=screens), workdir)
            return record, screen_store.load(workdir).digest()

        return read

    collect(10)(workdir)
    for name in ("config.json", "collection.json", "manifest.json"):
        assert check(workdir / name, collect(10), flips=3)
    names = ("config.json", "manifest.json", "progress.npz", "collection.host.json")
    for name in (*names, "shard-000000.npz"):
        assert check(workdir / name, collect(15), flips=2)


def test_a_screen_store(tmp_path: Path) -> None:
    screen_store.append(tmp_path / "workdir", "pong", random_screens("pong", 3))
    for name in ("manifest.json", "shard-000000.npz"):
        assert check(
            tmp_path / "workdir" / name,
            lambda workdir: (screen_store.load(workdir).game, screen_store.load(workdir).digest()),
            flips=60,
        )


def test_a_model(tmp_path: Path) -> None:
    config, generator = ModelConfig(latent="4x4x2"), np.random.default_rng(0)
    flat = {name: generator.random(shape) for name, shape in variable_shapes(config).items()}
    variables = models._nest({name: array.astype(np.float32) for name, array in flat.items()})
    models.save_model(tmp_path / "workdir", config, variables, {"game": "Pong"})
    for path in (tmp_path / "workdir").iterdir():
        assert check(path, lambda w: (models.load_model(w), models.model_description(w)["about"]))


def test_a_checkpoint(tmp_path: Path) -> None:
    state = {"w": np.random.default_rng(0).random((20, 20), np.float32), "step": np.int32(3)}

    def saved(workdir: Path) -> Any:
        checkpoints = TrainingCheckpoints(workdir)
        try:
            latest, best = checkpoints.latest_step(), checkpoints.best_step()
            assert latest is not None
            assert best is not None
            return latest, best, [checkpoints.restore(step, state) for step in (latest, best)]
        finally:
            checkpoints.close()

    checkpoints = TrainingCheckpoints(tmp_path / "workdir")
    for step, loss in ((1, 2.5), (2, 1.5), (3, 3.5)):
        checkpoints.save(step, state, {"seed": 0}, {"loss": loss})
    checkpoints.close()
    files = [path for path in sorted((tmp_path / "workdir" / "2").rglob("*")) if path.is_file()]
    checkpoint = tmp_path / "workdir" / "2"
    refused = {str(path.relative_to(checkpoint)): check(path, saved, flips=2) for path in files}
    for name in ("_CHECKPOINT_METADATA", "about/metadata", "metrics/metrics", "state/_METADATA"):
        assert refused[name]


@pytest.fixture(scope="module")
def trained(compiled_soon, tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainConfig, Path]:
    """A work directory with all that a run reads back, and how it was configured."""
    directory = tmp_path_factory.mktemp("trained")
    screen_store.append(directory / "screens", "pong", random_screens("pong", 3))
    config = TrainConfig(str(directory / "screens"), batch_size=2, epochs=2, picture_every=0)
    assert loop.train(config, directory / "workdir") is not None
    return config, directory / "workdir"


def test_what_train_reads_of_a_finished_run(trained: tuple[TrainConfig, Path]) -> None:
    config, workdir = trained
    for name in ("config.json", "trained.json"):
        assert check(workdir / name, lambda workdir: loop.train(config, workdir))


def test_what_train_goes_on_from(trained: tuple[TrainConfig, Path]) -> None:
    config, workdir = trained

    def resumed(workdir: Path) -> Any:
        (workdir / "trained.json").unlink()
        record = loop.train(config, workdir)
        return record, (workdir / "metrics.jsonl").read_bytes()

    for name in ("config.json", "metrics.jsonl", "trained.host.json"):
        assert check(workdir / name, resumed, flips=3)
    assert check(workdir / "checkpoints" / "2" / "metrics" / "metrics", resumed, flips=2)


def test_an_evaluation(tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    config = EvaluationConfig("random", games="Pong", runs=2, max_actions=3)
    evaluation.claim(config, workdir)
    assert check(workdir / evaluation.FILE, evaluation.of_workdir, flips=60)
    job = expansion.expand(config, workdir)[0]
    for folder in ("running", "failed"):
        path = job.beside(folder, ".json")
        path.parent.mkdir(parents=True)
        path.write_text('{"why": "no", "log": null, "steps": 1, "of": 2, "started": 1.0}')
        for how in damaged(path):
            assert status.describe(status.of_jobs([job])), how  # what is running is not a result


def test_settings_are_refused_with_the_file_they_come_from(tmp_path: Path) -> None:
    path, whole = tmp_path / "record.json", configs.settings(EPISODE)
    assert configs.from_settings(EpisodeConfig, whole, path) == EPISODE
    for change, sentence in (
        ({"max_actions": "many"}, "max_actions must be of type int, not 'many'"),
        ({"max_actions": True}, "max_actions must be of type int, not True"),
        ({"discount": None}, "discount must be of type float, not None"),
        ({"wdith": 1}, "no setting 'wdith'"),
        ({"width": 7}, "width must be 1 or 2"),
    ):
        with pytest.raises(UserError, match=f"{path} does not hold a EpisodeConfig: .*{sentence}"):
            configs.from_settings(EpisodeConfig, whole | change, path)
    with pytest.raises(UserError, match=r"record\.json .* width is missing"):
        configs.from_settings(EpisodeConfig, {n: whole[n] for n in whole if n != "width"}, path)
    assert configs.from_settings(EpisodeConfig, {"game": "Pong"}, partial=True).max_actions > 0


def test_a_claim(tmp_path: Path) -> None:
    mine = {"game": "Pong", "train.epochs": 3}
    workdirs.claim(tmp_path / "workdir", mine)
    assert check(
        tmp_path / "workdir" / "config.json", lambda workdir: workdirs.claim(workdir, mine)
    )
