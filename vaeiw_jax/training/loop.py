"""Training: from screens to a model, on one device or many, resumable to the bit.

The work directory of a run:

    config.json     how the run is configured, and a digest of the frames it is trained on
    metrics.jsonl   a line per step and per validation
    tensorboard/    the same for TensorBoard
    pictures/       frames, reconstructions, differences, samples, where bits are on
    checkpoints/    the state after the latest steps and after the best validation (Orbax)
    model/          the model of the best validation, small: what planning loads
    trained.json    written last: how the run ended, and the digest of the model
"""

import collections
import contextlib
import functools
import math
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vaeiw_jax import compilation, configs, durable, provenance, records, workdirs
from vaeiw_jax.errors import UserError
from vaeiw_jax.models import model_digest, save_model
from vaeiw_jax.playing import screen_store
from vaeiw_jax.progress import Interrupted, Progress, Tell, never, silent
from vaeiw_jax.training import reconstruction_sheet
from vaeiw_jax.training.checkpoints import TrainingCheckpoints
from vaeiw_jax.training.metrics import (
    MetricsLog,
    Throughput,
    best_validation,
    logged_validation,
)
from vaeiw_jax.training.starting import starting_digest, starting_state
from vaeiw_jax.training.trainer import Trainer, Validation, steps_per_epoch
from vaeiw_jax.training.usual_codes import usual_codes
from vaeiw_jax.vae import elbo, sharding, steps
from vaeiw_jax.vae.config import TIME_ONLY, TrainConfig
from vaeiw_jax.vae.steps import TrainState, create_train_state

CONFIG = "config.json"
_STARTING_MODEL = "starting_model"
"""In `config.json`: the digest of the model the run started from, null if it was none."""

# What may differ between the runs before and after an interruption: it does not change the numbers.
_MAY_CHANGE = ("screens", *TIME_ONLY)


def train(
    config: TrainConfig, workdir: Path, interrupted: Interrupted = never, tell: Tell = silent
) -> dict[str, Any] | None:
    """Trains a model, going on from the latest checkpoint in `workdir` if there is one.

    Several processes, joined by `sharding.connect`, call this together, with a `workdir` that all of them can write
    to. An interruption of one of them stops all, at the same step.

    Args:
      config: how to train, and on what. A run may be given more epochs, if nothing is scheduled over them.
      workdir: of the run.
      interrupted: asked after every call of the compiled steps.
      tell: called after every call of the compiled steps.

    Returns:
      The record, which is not made again if it is there; None if interrupted and saved.
    """
    compilation.fit_threads()
    workdir = Path(workdir)
    primary, path = sharding.is_primary(), workdir / records.TRAINING
    with workdirs.alone_in(workdir) if primary else contextlib.nullcontext():
        saved = _saved_config(config, workdir / CONFIG)
        record = finished(config, workdir)
        same_name = record is not None and record["config"].get("screens") == _screens_name(config)
        if same_name and not screen_store.stores(config.screens):
            return record  # though the screens are gone
        screen_set = _screens_of_run(config, workdir, saved)
        if record is not None:
            return record
        sessions = provenance.Sessions(records.host_path(path))
        run = _train(config, workdir, screen_set, interrupted, tell)
        about = {"until_step": run.step, "devices": [d.device_kind for d in jax.devices()]}
        if not run.finished:
            if primary:
                sessions.write(**about)
            return None
        record = _record(config, workdir, screen_set, run)
        if primary:
            records.write(path, record, sessions.including_this(**about))
        return record


def finished(config: TrainConfig, workdir: Path) -> dict[str, Any] | None:
    """The record of the run, if it was trained for as many epochs as the config asks for."""
    path = workdir / records.TRAINING
    record = records.read(path)
    if record is None:
        return None
    epochs, steps_done = record["config"].get("epochs"), record.get("steps")
    if not isinstance(epochs, int) or not isinstance(steps_done, int):
        raise durable.DamagedFileError(path, f"it has {epochs!r} epochs and {steps_done!r} steps")
    if not isinstance(record.get("model"), str):
        raise durable.DamagedFileError(path, "it names no model")
    return record if epochs >= config.epochs else None


def _train(
    config: TrainConfig,
    workdir: Path,
    screen_set: screen_store.ScreenSet,
    interrupted: Interrupted,
    tell: Tell,
) -> "_Run":
    """The run, at its end or where it was interrupted; all it leaves but the record is on disk."""
    trainer = Trainer(config, screen_set)
    with contextlib.ExitStack() as stack:
        checkpoints = TrainingCheckpoints(workdir / "checkpoints", config.keep)
        stack.push(functools.partial(_close, checkpoints))
        run = _Run(config, workdir, trainer, checkpoints, stack, screen_set, tell)
        # Nothing refused the run, so that from now on the work directory is its own.
        _write_config(config, workdir / CONFIG, screen_set)
        if sharding.is_primary():
            (workdir / records.TRAINING).unlink(missing_ok=True)  # of fewer epochs
        if not config.epochs and not run.begun:
            run.validate()
        while not run.finished:
            run.advance()
            if run.validation_is_due:
                run.validate()
            elif run.checkpoint_is_due:
                run.save()
            if sharding.any_process(interrupted()):
                run.save()
                break
        checkpoints.wait()
        if run.finished:
            run.write_best_model()
            sharding.any_process(False)  # all wait until the model is there
    return run


def _record(
    config: TrainConfig, workdir: Path, screen_set: screen_store.ScreenSet, run: "_Run"
) -> dict[str, Any]:
    return {
        **screen_set.description(),
        "model": model_digest(workdir / "model"),
        _STARTING_MODEL: durable.read_json(workdir / CONFIG).get(_STARTING_MODEL),
        "steps": run.step,
        "validation": run.best,
        "config": configs.settings(config) | {"screens": _screens_name(config)},
    }


def _screens_name(config: TrainConfig) -> str:
    """The names of the folders, wherever they are."""
    return ",".join(Path(part.strip()).name for part in config.screens.split(","))


class _Run:
    """A run under way: its state, and what it leaves in the work directory."""

    def __init__(
        self,
        config: TrainConfig,
        workdir: Path,
        trainer: Trainer,
        checkpoints: TrainingCheckpoints,
        stack: contextlib.ExitStack,
        screen_set: screen_store.ScreenSet,
        tell: Tell,
    ) -> None:
        self._config, self._workdir, self._trainer = config, workdir, trainer
        self._checkpoints, self._screen_set, self._tell = checkpoints, screen_set, tell
        latest = checkpoints.latest_step()
        self.begun = latest is not None
        """Whether the run goes on from a checkpoint."""
        self.step = self._saved_step = latest or 0
        if self.begun:
            # The checkpoint has all of the state: the model the run started from may be gone.
            begun = jax.eval_shape(functools.partial(create_train_state, config))
            state = checkpoints.restore(self.step, begun)
        else:
            state = starting_state(config)
        self._state = trainer.place(state)
        self._log: MetricsLog | None = None
        if sharding.is_primary():
            digest = checkpoints.log_digest(self.step) if self.begun else None
            self._log = MetricsLog(workdir, self.step, digest)
            stack.callback(self._log.close)
            self._tell(Progress(self.step, trainer.total_steps))
        self._order_epoch, self._order = -1, jax.numpy.zeros(0)
        self._in_flight: collections.deque[tuple[int, elbo.Metrics]] = collections.deque()
        self._throughput = Throughput(config.batch_size)
        self._worst_game = ""
        self.best = best_validation(workdir)

    @property
    def finished(self) -> bool:
        return self.step >= self._trainer.total_steps

    @property
    def validation_is_due(self) -> bool:
        return self._trainer.next_validation(self.step - 1) == self.step

    @property
    def checkpoint_is_due(self) -> bool:
        return self.step - self._saved_step >= self._config.checkpoint_every

    @property
    def _epoch(self) -> int:
        """Epochs done, the last one perhaps in part."""
        return math.ceil(self.step / self._trainer.steps_per_epoch)

    def advance(self) -> None:
        """Begins the next call; waits for the oldest one when too many are under way."""
        epoch = self.step // self._trainer.steps_per_epoch
        if epoch != self._order_epoch:
            self._order_epoch, self._order = epoch, self._trainer.epoch_order(epoch)
        until_validation = self._trainer.next_validation(self.step) - self.step
        count = min(self._trainer.steps_per_call, until_validation)
        self._state, metrics = self._trainer.advance(self._state, self._order, count)
        self._in_flight.append((self.step, metrics))
        self.step += count
        self._collect(self._trainer.calls_in_flight)

    def validate(self) -> None:
        """Validation, checkpoint, model if it is the best so far and, at the end of an epoch, picture."""
        self._collect(0)
        validation = self._trainer.validate(self._state)
        self._require_finite(self.step, validation.metrics)
        if self._log:
            games = validation.games if len(validation.games) > 1 else {}
            self._log.validation(
                self.step, self._epoch, validation.metrics, validation.features, games
            )
            self._log.speed(self.step, self._throughput.images_per_second)
        if len(validation.games) > 1:
            game = validation.worst_first()[0]
            self._worst_game = f", worst {game} ({validation.games[game]['excess_bce']:,.0f} nats)"
        self.save(validation.metrics)
        if self.best is None or validation.metrics["loss"] < self.best["loss"]:
            self.best = {"step": self.step, "epoch": self._epoch, **validation.metrics}
            if len(validation.games) > 1:
                self.best["games"] = validation.games
            self._write_model(self._state)
        every, ends_epoch = (
            self._config.picture_every,
            not self.step % self._trainer.steps_per_epoch,
        )
        if every and ends_epoch and (self._epoch % every == 0 or self.finished):
            self._draw(validation)

    def save(self, metrics: dict[str, float] | None = None) -> None:
        """Begins to save a checkpoint, once all steps are known to have gone well."""
        self._collect(0)
        digest = None
        if self._log:
            self._log.flush()
            digest = self._log.digest
        config = configs.settings(self._config)
        self._checkpoints.save(self.step, self._state, config, metrics, digest)
        self._saved_step = self.step

    def write_best_model(self) -> None:
        """Makes `model/` that of the best checkpoint, whatever a crash may have left there, with its usual codes."""
        best = self._checkpoints.best_step()
        if best is not None:
            self.best = logged_validation(self._workdir, best)
            self._write_model(self._checkpoints.restore(best, self._state), with_usual_codes=True)

    def _collect(self, leave: int) -> None:
        """Waits for the calls under way, but for the last `leave`, and reports their metrics."""
        while len(self._in_flight) > leave:
            before, metrics = self._in_flight.popleft()
            values = jax.device_get(metrics)
            for i in range(len(values["loss"])):
                step, line = before + i + 1, {k: float(v[i]) for k, v in values.items()}
                self._require_finite(step, line)
                if self._log:
                    epoch = math.ceil(step / self._trainer.steps_per_epoch)
                    self._log.train(step, epoch, line)
            self._report(before + len(values["loss"]), line)

    def _report(self, step: int, metrics: dict[str, float]) -> None:
        """Tells of the progress after `step`, the last of the steps known to be done."""
        self._throughput.update(step)
        if self._log:
            text = (
                f"loss {metrics['loss']:,.1f}, reconstruction {metrics['bce']:,.1f},"
                f" KL {metrics['kl']:,.1f}, {self._throughput.images_per_second:,.1f} images/s{self._worst_game}"
            )
            self._tell(Progress(step, self._trainer.total_steps, text))

    def _require_finite(self, step: int, metrics: dict[str, float]) -> None:
        bad = [name for name, value in metrics.items() if not math.isfinite(value)]
        if not bad:
            return
        good = self._checkpoints.latest_step()
        where = f"{self._workdir / 'checkpoints' / str(good)}" if good is not None else "none yet"
        raise UserError(
            f"{bad[0]} became {metrics[bad[0]]} at step {step};"
            f" the last good checkpoint is {where}."
            f" Try, in a new --workdir, --learning_rate={self._config.learning_rate / 10:g},"
            f" --clip_norm=1, or --dtype=float32 if it was not"
        )

    def _write_model(self, state: TrainState, with_usual_codes: bool = False) -> None:
        if not sharding.is_primary():
            return
        model = self._config.model
        variables = jax.device_get(state.variables)
        about = {
            **self._screen_set.description(),
            "screens": len(self._screen_set.screens),
            "validation": self.best,
        }
        usual = usual_codes(model, variables, self._screen_set) if with_usual_codes else None
        save_model(self._workdir / "model", model, variables, about, usual)

    def _draw(self, validation: Validation) -> None:
        if not self._log:
            return
        rows, labels = self._shown(validation)
        picture = reconstruction_sheet.draw(
            self._config.model,
            jax.device_get(self._state.variables),
            self._trainer.validation_screens[rows],
            validation.feature_shares,
            validation.features,
            steps.picture_key(self._config),
            self._title(validation),
            labels,
        )
        self._write_picture("frames", "epoch", picture)
        if len(validation.games) > 1:
            excess = {game: values["excess_bce"] for game, values in validation.games.items()}
            title = f"{len(excess)} games after epoch {self._epoch}"
            self._write_picture("games", "games", reconstruction_sheet.draw_games(excess, title))

    def _shown(self, validation: Validation) -> tuple[np.ndarray, list[str]]:
        """Validation screens to show, and what to call them: of several games, one of each of the worst."""
        counts = self._trainer.validation_counts
        if len(counts) < reconstruction_sheet.WORST_GAMES:
            rows = np.linspace(0, sum(counts) - 1, reconstruction_sheet.COLUMNS)
            return rows.astype(int), []
        worst = validation.worst_first()[: reconstruction_sheet.WORST_GAMES]
        starts = dict(zip(self._trainer.games, np.cumsum([0, *counts[:-1]]), strict=True))
        labels = [f"{game}: {validation.games[game]['excess_bce']:,.0f} nats" for game in worst]
        return np.array([starts[game] for game in worst]), labels

    def _write_picture(self, name: str, prefix: str, picture: np.ndarray) -> None:
        assert self._log
        path = self._workdir / "pictures" / f"{prefix}-{self._epoch:04d}.png"
        durable.write_bytes(path, reconstruction_sheet.png(picture))
        self._log.picture(self.step, picture, name)

    def _title(self, validation: Validation) -> str:
        number = len(self._screen_set.games)
        game = self._screen_set.game or _screens_name(self._config)
        if number > 1:
            worst = ", the worst" if number >= reconstruction_sheet.WORST_GAMES else ""
            game = f"{number} games{worst}"
        m = validation.metrics
        return (
            f"{game} · epoch {self._epoch} · reconstruction {m['bce']:,.0f} nats"
            f" ({m['excess_bce']:,.0f} above the floor) · KL {m['kl']:,.0f} nats"
        )


def _saved_config(config: TrainConfig, path: Path) -> dict[str, Any] | None:
    """The `config.json` of the run, which must be of the same settings; None if there is none yet."""
    if not path.exists():
        return None
    saved = durable.read_json(path)
    _require_same_config(config, saved, path)
    return saved


def _write_config(config: TrainConfig, path: Path, screen_set: screen_store.ScreenSet) -> None:
    """Writes `config.json`, unless it is there."""
    if path.exists() or not sharding.is_primary():
        return
    value = {
        "train": configs.settings(config),
        "game": screen_set.game,
        "games": list(screen_set.games),
        "screens": {"counts": screen_set.counts, "sha256": screen_set.digest()},
        _STARTING_MODEL: starting_digest(config.start_from),
    }
    durable.write_json(path, value)


def _screens_of_run(
    config: TrainConfig, workdir: Path, saved: dict[str, Any] | None
) -> screen_store.ScreenSet:
    """The screens of the run, those it began with if there is a `config.json` that says which."""
    path = workdir / CONFIG
    screen_set = screen_store.load_all(config.screens, config.games_left_out)
    steps_per_epoch(config, screen_set)  # refuses too few
    if saved is None:
        return screen_set
    described = saved.get("screens", {})
    counts = described.get("counts") if isinstance(described, dict) else None
    if not isinstance(counts, list) or not all(isinstance(count, int) for count in counts):
        raise durable.DamagedFileError(path, f"its screens are {described!r}")
    if saved.get("games") != list(screen_set.games) or len(counts) != len(screen_set.games):
        raise UserError(
            f"{path} says that the run is of {_listed(saved.get('games'))}, and {config.screens} holds screens of"
            f" {_listed(screen_set.games)}; choose another --workdir"
        )
    # Stores may have grown since; the run goes on with the screens it began with.
    fewer = any(has < had for has, had in zip(screen_set.counts, counts, strict=True))
    screen_set = screen_set if fewer else screen_set.first(counts)
    if fewer or screen_set.digest() != described.get("sha256"):
        raise UserError(
            f"{config.screens} no longer holds the {sum(counts)} screens that the run in {workdir}"
            f" began with, as {path.name} says; bring them back or choose another --workdir"
        )
    return screen_set


def _listed(games: Any) -> str:
    return ", ".join(map(repr, games)) if isinstance(games, list | tuple) else repr(games)


def _require_same_config(config: TrainConfig, saved: dict[str, Any], path: Path) -> None:
    theirs = configs.settings(
        # Settings that are younger than the file have their defaults, which change nothing.
        configs.from_settings(TrainConfig, saved.get("train", {}), path, partial=True)
    )
    scheduled = config.learning_rate_end or config.tau_start or config.zero_suppression
    may_change = _MAY_CHANGE if scheduled else (*_MAY_CHANGE, "epochs")
    for name, value in configs.settings(config).items():
        same = theirs[name] == value
        if name == "start_from":
            same = _is_model(saved, theirs[name], value)
        if same or name in may_change:
            continue
        raise UserError(
            f"the run in {path.parent} has {name}={theirs[name]}, not {value}, as {path.name} says;"
            f" take that or choose another --workdir"
        )


def _is_model(saved: dict[str, Any], theirs: str, ours: str) -> bool:
    """Whether the model that a run started from is the one that is given now, whatever its path."""
    known = saved.get(_STARTING_MODEL) or starting_digest(theirs)  # older files have the path alone
    given = starting_digest(ours)
    return theirs == ours if known is None or given is None else known == given


def _close(checkpoints: TrainingCheckpoints, failure: type[BaseException] | None, *_: Any) -> None:
    """Waits for what is being saved; not in a process that failed, while others wait for it."""
    if failure is None or jax.process_count() == 1:
        checkpoints.close()
