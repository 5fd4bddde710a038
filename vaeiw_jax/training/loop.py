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
import dataclasses
import functools
import math
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vaeiw_jax import compilation, durable
from vaeiw_jax.errors import UserError
from vaeiw_jax.models import load_model, model_description, save_model
from vaeiw_jax.playing import screen_store
from vaeiw_jax.training import reconstruction_sheet
from vaeiw_jax.training.checkpoints import TrainingCheckpoints
from vaeiw_jax.training.metrics import MetricsLog, ProgressBar, validations
from vaeiw_jax.vae import convolutions, sharding, steps
from vaeiw_jax.vae.steps import (
    TrainConfig,
    TrainState,
    create_train_state,
    eval_step,
    train_step,
)

__all__ = ["TrainConfig", "TrainState", "create_train_state", "eval_step", "train", "train_step"]

RECORD = "trained.json"
STEPS_PER_CALL = 32  # on accelerators
CALLS_IN_FLIGHT = 2  # enough to keep a device busy, few enough to stop soon

# What may differ between the runs before and after an interruption: it does not change the numbers.
_MAY_CHANGE = ("screens", "steps_per_call", "checkpoint_every", "keep", "picture_every")


@dataclasses.dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    step: int  # steps done
    finished: bool  # or told to stop
    validation: dict[str, Any] | None  # the best one's line of metrics.jsonl


@dataclasses.dataclass(frozen=True)
class Validation:
    """The model on the validation frames."""

    metrics: dict[str, float]
    features: np.ndarray  # int[N], true features per frame
    feature_shares: np.ndarray  # float[F], the share of frames in which a feature is true


def train(config: TrainConfig, workdir: Path, resume: bool = True) -> TrainResult:
    """Trains a model, going on from the latest checkpoint in `workdir` if there is one.

    On SIGTERM or Ctrl-C it saves a checkpoint and returns. A run that is finished is not begun
    again. Several processes, joined by `sharding.connect`, call this together, with a `workdir`
    that all of them can write to.
    """
    compilation.fit_threads()
    screen_set = _screens_of_run(config, workdir, resume)
    finished_before = _finished_before(config, workdir)
    if finished_before:
        return finished_before
    trainer = Trainer(config, screen_set.screens)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(_wish_to_stop())
        checkpoints = TrainingCheckpoints(workdir / "checkpoints", config.keep)
        stack.push(functools.partial(_close, checkpoints))
        run = _Run(config, workdir, trainer, checkpoints, stack, screen_set)
        while run.step < trainer.total_steps:
            run.advance()
            if run.at_end_of_epoch:
                run.validate()
            elif run.checkpoint_is_due:
                run.save()
            if sharding.any_process(stop.is_set()):
                run.save()
                break
        checkpoints.wait()
        result = TrainResult(run.step, run.step >= trainer.total_steps, run.best)
        if result.finished:
            run.write_best_model()
            if sharding.is_primary():
                _write_record(config, workdir, screen_set.game, result)
    return result


def _write_record(
    config: TrainConfig, workdir: Path, game: str | None, result: TrainResult
) -> None:
    settings = dataclasses.asdict(config)
    record = {
        "game": game,
        "model": model_description(workdir / "model")["weights"]["sha256"],
        "steps": result.step,
        "validation": result.validation,
        "config": settings.pop("model") | settings | {"screens": Path(config.screens).name},
    }
    durable.write_json(workdir / RECORD, record)


def _finished_before(config: TrainConfig, workdir: Path) -> TrainResult | None:
    """How the run ended, if it has; it has not if it is now to go on for more epochs."""
    if not (workdir / RECORD).exists():
        return None
    record = durable.read_json(workdir / RECORD)
    if record["config"]["epochs"] < config.epochs:
        return None
    return TrainResult(record["steps"], finished=True, validation=record["validation"])


def starting_state(config: TrainConfig) -> TrainState:
    """The state before the first step, with the weights of the model the config starts from."""
    state = create_train_state(config)
    if not config.start_from:
        return state
    directory = Path(config.start_from)
    model, variables = load_model(directory)
    for name in ("latent", "latent_kind", "variant"):
        if getattr(model, name) != getattr(config.model, name):
            raise UserError(
                f"{directory} holds a model with {name}={getattr(model, name)}, which cannot begin"
                f" one with {name}={getattr(config.model, name)}"
            )
    return TrainState(state.step, variables["params"], variables["batch_stats"], state.opt_state)


class Trainer:
    """The compiled functions of a run and, on the devices, the screens they work on."""

    def __init__(self, config: TrainConfig, screens: np.ndarray) -> None:
        training, validation = steps.split(config, len(screens))
        self.config = config
        self.steps_per_epoch = steps.steps_per_epoch(config, len(training))
        self.total_steps = self.steps_per_epoch * config.epochs
        self.validation_screens = screens[validation]
        self._mesh = sharding.device_mesh(config.batch_size)
        self._screens = sharding.replicate(self._mesh, screens[training])
        self._device_validation = sharding.replicate(self._mesh, self.validation_screens)

        everywhere = sharding.replicated(self._mesh)
        constrain = functools.partial(
            jax.lax.with_sharding_constraint, shardings=sharding.along_batch(self._mesh)
        )
        self.epoch_order = jax.jit(
            functools.partial(steps.epoch_order, config, len(training)),
            out_shardings=sharding.along_batch(self._mesh, axis=1),
        )
        self._advance = jax.jit(
            functools.partial(steps.train_steps, config, constrain=constrain),
            static_argnums=0,
            donate_argnums=1,
            out_shardings=everywhere,
            compiler_options=convolutions.compiler_options(),
        )
        self._evaluate = jax.jit(
            functools.partial(eval_step, config, constrain=constrain),
            out_shardings=everywhere,
            compiler_options=convolutions.compiler_options(),
        )
        on_cpu = jax.default_backend() == "cpu"
        self.steps_per_call = config.steps_per_call or (1 if on_cpu else STEPS_PER_CALL)
        # Collectives of several CPU devices can block one another when more than one call runs.
        self.calls_in_flight = 0 if on_cpu and self._mesh.size > 1 else CALLS_IN_FLIGHT

    def place(self, state: TrainState) -> TrainState:
        """Puts a state on all devices."""
        return sharding.replicate(self._mesh, state)

    def advance(
        self, state: TrainState, order: jax.Array, count: int
    ) -> tuple[TrainState, steps.Metrics]:
        """Begins `count` steps of an epoch; the buffers of `state` are given away."""
        return self._advance(count, state, self._screens, order)

    def validate(self, state: TrainState) -> Validation:
        size, count = self.config.batch_size, len(self.validation_screens)
        parts = []
        for batch, start in enumerate(range(0, count, size)):
            rows = np.arange(start, start + size)
            part = self._evaluate(
                state.variables, self._device_validation, rows % count, rows < count, batch
            )
            parts.append(part if self.calls_in_flight else jax.block_until_ready(part))
        parts = jax.device_get(parts)
        bce, entropy, kl, mse, features = (
            np.concatenate([getattr(part, name) for part in parts])[:count]
            for name in ("bce", "entropy", "kl", "mse", "features")
        )
        shares = sum(part.feature_counts for part in parts) / count
        metrics = {
            "loss": np.mean(bce + self.config.model.beta * kl, dtype=np.float64),
            "bce": np.mean(bce, dtype=np.float64),
            "excess_bce": np.mean(bce - entropy, dtype=np.float64),
            "kl": np.mean(kl, dtype=np.float64),
            "mse": np.mean(mse, dtype=np.float64),
            "features_per_frame": np.mean(features),
            "features_varying": np.sum((shares > 0) & (shares < 1)),
        }
        return Validation({k: float(v) for k, v in metrics.items()}, features, shares)


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
    ) -> None:
        self._config, self._workdir, self._trainer = config, workdir, trainer
        self._checkpoints, self._screen_set = checkpoints, screen_set
        state = starting_state(config)
        self.step = checkpoints.latest_step() or 0
        if self.step:
            state = checkpoints.restore(self.step, state)
        self._saved_step = self.step
        self._state = trainer.place(state)
        self._order_epoch, self._order = -1, jax.numpy.zeros(0)
        self._in_flight: collections.deque[tuple[int, steps.Metrics]] = collections.deque()

        self._log = MetricsLog(workdir, self.step) if sharding.is_primary() else None
        if self._log:
            stack.callback(self._log.close)
        self._bar = ProgressBar(
            self.step, trainer.total_steps, config.batch_size, visible=sharding.is_primary()
        )
        stack.callback(self._bar.close)
        self.best = min(validations(workdir), key=lambda line: line["loss"], default=None)

    @property
    def at_end_of_epoch(self) -> bool:
        return self.step % self._trainer.steps_per_epoch == 0

    @property
    def checkpoint_is_due(self) -> bool:
        return self.step - self._saved_step >= self._config.checkpoint_every

    @property
    def _epoch(self) -> int:
        """Epochs done, the last one perhaps in part."""
        return math.ceil(self.step / self._trainer.steps_per_epoch)

    def advance(self) -> None:
        """Begins the next call; waits for the oldest one when too many are under way."""
        epoch, done = divmod(self.step, self._trainer.steps_per_epoch)
        if epoch != self._order_epoch:
            self._order_epoch, self._order = epoch, self._trainer.epoch_order(epoch)
        count = min(self._trainer.steps_per_call, self._trainer.steps_per_epoch - done)
        self._state, metrics = self._trainer.advance(self._state, self._order, count)
        self._in_flight.append((self.step, metrics))
        self.step += count
        self._collect(self._trainer.calls_in_flight)

    def validate(self) -> None:
        """Ends an epoch: validation, checkpoint, picture and, if it is the best so far, model."""
        self._collect(0)
        validation = self._trainer.validate(self._state)
        if self._log:
            self._log.validation(self.step, self._epoch, validation.metrics, validation.features)
            self._log.speed(self.step, self._bar.images_per_second)
        self.save(validation.metrics)
        if self.best is None or validation.metrics["loss"] < self.best["loss"]:
            self.best = {"step": self.step, "epoch": self._epoch, **validation.metrics}
            self._write_model(self._state)
        every = self._config.picture_every
        if every and (self._epoch % every == 0 or self._epoch == self._config.epochs):
            self._draw(validation)

    def save(self, metrics: dict[str, float] | None = None) -> None:
        """Begins to save a checkpoint, once all steps are known to have gone well."""
        self._collect(0)
        if self._log:
            self._log.flush()
        config = dataclasses.asdict(self._config)
        self._checkpoints.save(self.step, self._state, config, metrics)
        self._saved_step = self.step

    def write_best_model(self) -> None:
        """Makes `model/` that of the best checkpoint, whatever a crash may have left there."""
        best = self._checkpoints.best_step()
        if best is not None:
            self._write_model(self._checkpoints.restore(best, self._state))

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
            self._bar.update(len(values["loss"]), line)

    def _require_finite(self, step: int, metrics: dict[str, float]) -> None:
        bad = [name for name, value in metrics.items() if not math.isfinite(value)]
        if not bad:
            return
        good = self._checkpoints.latest_step()
        where = f"{self._workdir / 'checkpoints' / str(good)}" if good else "none yet"
        raise UserError(
            f"{bad[0]} became {metrics[bad[0]]} at step {step};"
            f" the last good checkpoint is {where}."
            f" Try, in a new --workdir, --learning_rate={self._config.learning_rate / 10:g},"
            f" --clip_norm=1, or --dtype=float32 if it was not"
        )

    def _write_model(self, state: TrainState) -> None:
        if not sharding.is_primary():
            return
        about = {"game": self._screen_set.game, "screens": len(self._screen_set.screens)}
        variables = jax.device_get(state.variables)
        about["validation"] = self.best
        save_model(self._workdir / "model", self._config.model, variables, about)

    def _draw(self, validation: Validation) -> None:
        if not self._log:
            return
        path = self._workdir / "pictures" / f"epoch-{self._epoch:04d}.png"
        picture = reconstruction_sheet.draw(
            self._config.model,
            jax.device_get(self._state.variables),
            self._trainer.validation_screens,
            validation.feature_shares,
            validation.features,
            steps.picture_key(self._config),
            title=self._title(validation),
        )
        durable.write_bytes(path, reconstruction_sheet.png(picture))
        self._log.picture(self.step, picture)

    def _title(self, validation: Validation) -> str:
        game = self._screen_set.game or Path(self._config.screens).name
        m = validation.metrics
        return (
            f"{game} · epoch {self._epoch} · reconstruction {m['bce']:,.0f} nats"
            f" ({m['excess_bce']:,.0f} above the floor) · KL {m['kl']:,.0f} nats"
        )


def _screens_of_run(config: TrainConfig, workdir: Path, resume: bool) -> screen_store.ScreenSet:
    """The frames of the run, and its `config.json`: compared if there is one, else written."""
    path = workdir / "config.json"
    screen_set = screen_store.load(Path(config.screens))
    steps.steps_per_epoch(config, len(steps.split(config, len(screen_set.screens))[0]))
    if not path.exists():
        described = {"count": len(screen_set.screens), "sha256": screen_set.digest()}
        if sharding.is_primary():
            value = {"train": dataclasses.asdict(config), "game": screen_set.game}
            durable.write_json(path, value | {"screens": described})
        return screen_set
    if not resume and sharding.is_primary():  # which may have written it just now
        raise UserError(f"{workdir} holds a run already; choose another --workdir, or resume it")
    saved = durable.read_json(path)
    _require_same_config(config, saved["train"], workdir)
    # A store may have grown since; the run goes on with the screens it began with.
    count = saved["screens"]["count"]
    screen_set = screen_store.ScreenSet(screen_set.game, screen_set.screens[:count])
    if screen_set.digest() != saved["screens"]["sha256"]:
        raise UserError(
            f"{config.screens} no longer holds the {count} frames that the run in {workdir}"
            " began with; bring them back or choose another --workdir"
        )
    return screen_set


def _require_same_config(config: TrainConfig, saved: dict[str, Any], workdir: Path) -> None:
    given = dataclasses.asdict(config)
    given, saved = given | given["model"], saved | saved["model"]
    scheduled = config.learning_rate_end or config.tau_start or config.zero_suppression
    may_change = (*_MAY_CHANGE, "model") + (() if scheduled else ("epochs",))
    for name, value in given.items():
        if name not in may_change and saved.get(name) != value:
            raise UserError(
                f"the run in {workdir} has {name}={saved.get(name)}, not {value};"
                f" take that or choose another --workdir"
            )


def _close(checkpoints: TrainingCheckpoints, failure: type[BaseException] | None, *_: Any) -> None:
    """Waits for what is being saved; not in a process that failed, while others wait for it."""
    if failure is None or jax.process_count() == 1:
        checkpoints.close()


@contextlib.contextmanager
def _wish_to_stop() -> Iterator[threading.Event]:
    """An event that SIGTERM or the first Ctrl-C sets, instead of ending the process."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals are the main thread's
        return

    def wish(number: int, _: Any) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    previous = {n: signal.signal(n, wish) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
