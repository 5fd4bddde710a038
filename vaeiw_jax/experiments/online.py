"""An encoder that learns while it plays: Olive's online learning (Ayton and Asai, ICAPS 2022).

    from vaeiw_jax.experiments import online, online_config

    online.learn(online_config.configure("Pong", start_from="universal"), Path("runs/pong-online"))

A round is a game and what is learned from it. The work directory:

    config.json              the settings
    screens/                 the data set, a screen store that grows with every round
    rounds/<i>/game/         the i-th game, as a run leaves it; its file of decisions holds all distinct screens
    rounds/<i>/choice.json   which of them were added to the data set, in numbers
    rounds/<i>/vae/          the training after it
    rounds/<i>/round.json    the round in one line of the curve, written last
    curve.csv                all rounds
    model/                   the last VAE: `--features=vae:WORKDIR`
    evaluation/              games played with it
    online.json              the record, written last
"""

import csv
import dataclasses
import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import compilation, configs, durable, features, models, provenance, records, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.online_config import (
    CONTINUE,
    FIRST_FEATURES,
    NOT_SETTINGS,
    Line,
    OnlineConfig,
)
from vaeiw_jax.experiments.pipeline import SEEDS_APART
from vaeiw_jax.features import encoders
from vaeiw_jax.playing import runs, screen_store
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.generated_screens import GeneratedScreens, RememberingEpisode
from vaeiw_jax.playing.runs import Run
from vaeiw_jax.progress import Interrupted, Progress, Tell, never, silent
from vaeiw_jax.training import loop, screen_choice, starting
from vaeiw_jax.vae import config as vae_config
from vaeiw_jax.vae.config import TrainConfig

CURVE = "curve.csv"

_GAME = ("simulator_calls", "features", "score", "actions", "stop", "generated")
_CHOICE = ("new", "mean_misfit", "chosen_misfit", "added", "screens")
_VALIDATION = ("loss", "excess_bce", "kl", "features_per_frame")
_TRAINING = ("steps", *_VALIDATION, "model")
COLUMNS = ("round", *_GAME, *_CHOICE, *_TRAINING)
"""Of the curve. `simulator_calls`: so far; `generated`: distinct screens of the game; `new`: those not in the data set;
misfits: by `choose_by`, of the screens chosen among and of those chosen, before training; `screens`: in the data set;
then the training after the game, and its best validation."""


def learn(
    config: OnlineConfig,
    workdir: Path,
    interrupted: Interrupted = never,
    tell: Tell = silent,
    after_round: Callable[[list[Line]], object] = lambda lines: None,
) -> dict[str, Any] | None:
    """Plays and learns in turn until the simulator calls are spent, then plays with what was learned.

    Args:
      config: how. The work directory must hold no other config's results.
      workdir: for everything.
      interrupted: asked after every decision, training step and batch of measured screens.
      tell: called as often, with the simulator calls made.
      after_round: called with the curve so far after every round that was not done before.

    Returns:
      The record, which is not made again if it is there; None if interrupted and saved.
    """
    workdir = workdir.absolute()
    compilation.fit_threads()
    if config.train.start_from:
        starting.starting_model(config.train)  # refuses one that cannot begin
    with workdirs.alone_in(workdir):
        workdirs.claim(workdir, _identity(config), configs.defaults(OnlineConfig))
        record = finished(config, workdir)
        if record is not None:
            return record
        sessions = provenance.Sessions(records.host_path(workdir / records.ONLINE))
        record = _Learner(config, workdir, interrupted, tell).learn(after_round)
        if record is None:
            sessions.write()
            return None
        records.write(workdir / records.ONLINE, record, sessions.including_this())
        return record


def finished(config: OnlineConfig, workdir: Path) -> dict[str, Any] | None:
    """The record, if it is there."""
    path = workdir / records.ONLINE
    record = records.read(path)
    if record is not None and not isinstance(record.get("curve"), list):
        raise durable.DamagedFileError(path, "it has no curve")
    return record


def _identity(config: OnlineConfig) -> dict[str, Any]:
    """The settings that the result depends on, saying the same on every machine."""
    encoder = encoders.resolved(config.play.episode.features.encoder)
    settings = configs.settings(config) | {"encoder": encoder}
    if start := config.train.start_from:
        settings["start_from"] = models.model_digest(models.named(start))
    others = (*NOT_SETTINGS, *runs.TIME_ONLY, *vae_config.TIME_ONLY)
    return {name: value for name, value in settings.items() if name not in others}


class _Learner:
    """Does what is not done yet. Where a method returns None, it was interrupted and has saved."""

    def __init__(self, config: OnlineConfig, workdir: Path, interrupted: Interrupted, tell: Tell):
        self._config, self._workdir = config, workdir
        self._interrupted, self._tell = interrupted, tell
        self._lines: list[Line] = []
        self._vae = config.train.start_from
        """The model that plays; empty while there is none."""
        self._trained: Path | None = None

    @property
    def _calls(self) -> int:
        return self._lines[-1]["simulator_calls"] if self._lines else 0

    def _tell_of(self, what: str, add_calls: bool = False) -> Tell:
        """Tells of a part of the work as of the whole, whose progress is in simulator calls."""
        calls, total = self._calls, self._config.simulator_calls

        def tell(part: Progress) -> None:
            far = f"{part.done:,}/{part.total:,}" if not add_calls else ""
            text = ", ".join(filter(None, (f"{what} {far}".strip(), part.text)))
            self._tell(Progress(min(total, calls + part.done * add_calls), total, text))

        return tell

    def learn(self, after_round: Callable[[list[Line]], object]) -> dict[str, Any] | None:
        while self._calls < self._config.simulator_calls:
            number = len(self._lines) + 1
            directory = self._workdir / "rounds" / str(number)
            path = directory / "round.json"
            done_before = path.exists()
            line = _read_line(path) if done_before else self._round(number, directory)
            if line is None:
                return None
            self._lines.append(line)
            if line["model"] is not None:
                self._trained = directory / "vae"
                self._vae = str(self._trained)
            if not done_before:
                durable.write_json(path, line, sealed=True)
                durable.write_bytes(self._workdir / CURVE, curve_csv(self._lines))
                after_round(self._lines)
        return self._finish()

    def _finish(self) -> dict[str, Any] | None:
        if self._trained is None:
            raise UserError(
                f"{self._lines[-1]['screens']} screens were gathered, too few for a batch of "
                f"{self._config.train.batch_size}: nothing was learned; begin again in another --workdir with more "
                "--simulator_calls or a smaller --batch_size"
            )
        self._write_model(self._trained)
        played = self._evaluate()
        durable.write_bytes(self._workdir / CURVE, curve_csv(self._lines))
        return None if played is None else self._record(played)

    def _round(self, number: int, directory: Path) -> Line | None:
        game = self._play(number, directory)
        if game is None:
            return None
        choice = self._choose(number, directory)
        if choice is None:
            return None
        training = self._train(number, directory, choice)
        if training is None:
            return None
        return {
            "round": number,
            "simulator_calls": self._calls + game["simulator_calls"],
            "features": game["config"]["features"],
            **{name: game[name] for name in ("score", "actions", "stop")},
            "generated": game["generated_screens"],
            **choice,
            **training,
        }

    def _play(self, number: int, directory: Path) -> dict[str, Any] | None:
        """Plays a game to learn from; returns its record."""
        config = self._config
        left = config.simulator_calls - self._calls
        limit = min(left, config.episode_calls or left)
        played = dataclasses.replace(
            config.play,
            episode=with_features(config.play.episode, self._vae),
            seed=config.seed + SEEDS_APART * number,
        )
        return runs.play(
            played,
            directory / "game",
            self._interrupted,
            self._tell_of(f"game {number}", add_calls=True),
            make_episode=functools.partial(RememberingEpisode, calls_limit=limit),
        )

    def _choose(self, number: int, directory: Path) -> dict[str, Any] | None:
        """Adds screens of the game to the data set, all or none; returns what the curve says of it."""
        path = directory / "choice.json"
        if path.exists():
            return _only(durable.read_json(path, sealed=True), path, _CHOICE)
        store = self._workdir / "screens"
        before = self._lines[-1]["screens"] if self._lines else 0
        known = screen_store.load(store).screens[:before] if before else ()
        seed = self._config.seed + SEEDS_APART * number
        decisions = Run(directory / "game", self._config.game, seed).decisions
        generated = GeneratedScreens.from_arrays(durable.read_arrays(decisions))
        new = generated.unlike(known)
        choice = screen_choice.choose(
            self._config.choose_by,
            models.named(self._vae) if self._vae else None,
            len(new),
            lambda places: generated.screens([new[place] for place in places]),
            min(self._config.added_screens, self._config.max_screens - before),
            np.random.default_rng([self._config.seed, number]),
            self._config.candidates,
            self._interrupted,
            self._tell_of(f"game {number}, measuring screen"),
        )
        if choice is None:
            return None
        chosen = [new[place] for place in choice.places]
        # After a crash between these two writes the same screens are chosen again, and are in the store already.
        if chosen and screen_store.count(store) == before:
            screen_store.append(store, self._config.game, generated.screens(chosen))
        summary = {
            "new": len(new),
            "mean_misfit": choice.mean_misfit,
            "chosen_misfit": choice.chosen_misfit,
            "added": len(chosen),
            "screens": before + len(chosen),
        }
        durable.write_json(path, summary, sealed=True)
        return summary

    def _train(self, number: int, directory: Path, choice: dict[str, Any]) -> dict[str, Any] | None:
        """Trains on the data set, if it grew; returns what the curve says of it."""
        if not choice["added"] or not self._config.can_train(choice["screens"]):
            return dict.fromkeys(_TRAINING)
        training = training_config(self._config, number, self._trained, self._workdir)
        what = f"game {number}, training step"
        record = loop.train(training, directory / "vae", self._interrupted, self._tell_of(what))
        if record is None:
            return None
        validation = {name: record["validation"][name] for name in _VALIDATION}
        return {"steps": record["steps"], **validation, "model": record["model"]}

    def _write_model(self, trained: Path) -> None:
        directory = trained / "model"
        about = models.model_description(directory)["about"]
        usual = models.usual_codes(directory)
        models.save_model(self._workdir / "model", *models.load_model(directory), about, usual)

    def _evaluate(self) -> list[dict[str, Any]] | None:
        """Plays with the last VAE; returns the records."""
        config = self._config
        episode = with_features(config.play.episode, str(self._workdir))
        played = []
        for seed in range(config.seed, config.seed + config.evaluations):
            record = runs.play(
                dataclasses.replace(config.play, episode=episode, seed=seed),
                self._workdir / "evaluation",
                self._interrupted,
                self._tell_of(f"last VAE, seed {seed}, action"),
            )
            if record is None:
                return None
            played.append(record)
        return played

    def _record(self, played: list[dict[str, Any]]) -> dict[str, Any]:
        names = ("seed", "score", "actions", "stop")
        return {
            "game": self._config.game,
            "seed": self._config.seed,
            "simulator_calls": self._calls,
            "screens": self._lines[-1]["screens"],
            "model": models.model_digest(self._workdir / "model"),
            "evaluation": [{name: record[name] for name in names} for record in played],
            "curve": self._lines,
            "config": _identity(self._config),
        }


def training_config(
    config: OnlineConfig, number: int, trained: Path | None, workdir: Path
) -> TrainConfig:
    """How to train after a game.

    Args:
      config: of all.
      number: of the game.
      trained: the last training, if there was one.
      workdir: of all.
    """
    goes_on = trained is not None and config.relearn == CONTINUE
    return dataclasses.replace(
        config.train,
        screens=str(workdir / "screens"),
        start_from=str(trained) if goes_on else config.train.start_from,
        seed=config.seed + number,
    )


def with_features(episode: EpisodeConfig, vae: str) -> EpisodeConfig:
    """The episode played with a VAE, or with B-PROST, which knows no literals, changes and wider novelty."""
    if vae:
        seen = dataclasses.replace(episode.features, features=f"vae:{vae}")
        return dataclasses.replace(episode, features=seen)
    planner = dataclasses.replace(episode.planner, widen=False)
    return dataclasses.replace(
        episode, planner=planner, features=features.FeaturesConfig(FIRST_FEATURES)
    )


def _read_line(path: Path) -> Line:
    return _only(durable.read_json(path, sealed=True), path, COLUMNS)


def _only(values: dict[str, Any], path: Path, names: Sequence[str]) -> dict[str, Any]:
    if set(values) != set(names):
        raise durable.DamagedFileError(path, f"it has the entries {', '.join(values)}")
    return values


def curve_csv(lines: Sequence[Line]) -> bytes:
    """The curve as a table."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return out.getvalue().encode()
