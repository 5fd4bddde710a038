"""A trained model made ready to ship: weights, config, pictures, and a card that says how it was made."""

import io
import json
import shlex
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from vaeiw_jax import durable, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.training import metrics

MOST_BYTES = 3_000_000
PICTURE_WIDTH = 1400

_CARD = string.Template("""# $game: a VAE of $latents

Turns a screen of $game into $num_features features for planning:

    python -m launch.play --game=$game --features=vae

![Frames, reconstructions, differences, samples, and where bits are on](reconstructions.png)

## How it was made

$collect

$screens screens, $duplicates of them seen before, from $episodes episodes of the planner with `$features` features;
$collect_minutes minutes.

$train

$steps steps of $batch_size frames, of the $epochs passes over 95% of the screens that the schedule has (the paper:
about 22,000 steps of 64).
Adam with a learning rate of $rate (the paper: 1e-4), beta $beta.
$train_minutes minutes on $cores cores of an $processor. $note

![Learning curve](learning_curve.png)

## How good it is

On the other 5% of the screens, after epoch $best_epoch:

| | |
|---|---|
| reconstruction | $bce nats a frame, $excess above the floor, which is the entropy of the frame itself |
| mean squared error | $mse |
| KL to the prior | $kl nats |
| features true in a frame | $true of $num_features |
| features that vary | $varying |

The weights' SHA-256 is `$digest`. The full configuration:

```json
$config
```
""")


def publish(training: Path, collection: Path, directory: Path, note: str = "") -> int:
    """Writes the model of a training run, with its card, and returns how many bytes that takes.

    Args:
      training: the work directory of launch.train.
      collection: the screen store that launch.collect made and the run was trained on.
      directory: where to.
      note: a sentence for the card.
    """
    trained, collected = _trained(training), _collected(collection)
    lines = metrics.read(training / metrics.FILE)
    picture = _picture(training, trained["validation"]["epoch"])
    config, variables = models.load_model(training / "model")
    about = models.model_description(training / "model")["about"]
    models.save_model(directory, config, variables, about)
    durable.write_bytes(directory / "reconstructions.png", _reduced(picture))
    durable.write_bytes(directory / "learning_curve.png", _learning_curve(lines, trained["game"]))
    durable.write_bytes(directory / "README.md", _card(trained, collected, training, note).encode())
    size = sum(path.stat().st_size for path in directory.iterdir())
    if size > MOST_BYTES:
        raise UserError(f"{directory} takes {size:,} bytes, more than {MOST_BYTES:,}")
    return size


def _trained(training: Path) -> dict[str, Any]:
    """The record of a run, or what it would be if the run had ended with its best validation so far."""
    path = training / "trained.json"
    if path.exists():
        return durable.read_json(path)
    seen = metrics.validations(training)
    if not seen:
        raise UserError(f"{training} holds no model yet: no epoch of training is finished there")
    best = min(seen, key=lambda line: line["loss"])
    config = durable.read_json(training / "config.json")
    settings = config["train"]
    return {
        "game": config["game"],
        "model": models.model_description(training / "model")["weights"]["sha256"],
        "steps": best["step"],
        "validation": best,
        "config": settings | {"screens": Path(settings["screens"]).name},
    }


def _collected(collection: Path) -> dict[str, Any]:
    path = collection / "collection.json"
    if not path.exists():
        raise UserError(f"{collection} holds no screens of launch.collect: no collection.json")
    return durable.read_json(path) | {"host": durable.read_json(path.with_suffix(".host.json"))}


def _picture(training: Path, epoch: int) -> Path:
    """The picture of the epoch that the model is of, or the one before it that is nearest."""
    drawn = sorted((training / "pictures").glob("epoch-*.png"))
    until = [path for path in drawn if int(path.stem.removeprefix("epoch-")) <= epoch]
    if not until:
        raise UserError(f"{training} has no picture to ship; train with --picture_every=1")
    return until[-1]


def _reduced(path: Path) -> bytes:
    """The picture in fewer pixels and colours."""
    with Image.open(path) as image:
        size = (PICTURE_WIDTH, round(image.height * PICTURE_WIDTH / image.width))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS).quantize(128)
    buffer = io.BytesIO()
    small.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _learning_curve(lines: Sequence[dict[str, Any]], game: str) -> bytes:
    """Nats above the entropy of the frames, which no reconstruction can pass, by step."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.add_subplot()
    train = [line for line in lines if line["kind"] == "train"]
    validation = [line for line in lines if line["kind"] == "validation"]
    steps, excess = ([line[name] for line in train] for name in ("step", "excess_bce"))
    axes.plot(steps, excess, color="#a9c3ee", linewidth=0.8, label="training batches")
    axes.plot(
        [line["step"] for line in validation],
        [line["excess_bce"] for line in validation],
        color="#d1373f",
        marker="o",
        label="validation",
    )
    axes.set_yscale("log")
    axes.set_ylim(top=np.quantile(excess, 0.99) * 1.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlabel("steps")
    axes.set_ylabel("nats a frame above the floor")
    axes.set_title(f"{game}: how well frames are reconstructed")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def _card(trained: dict[str, Any], collected: dict[str, Any], training: Path, note: str) -> str:
    game, config, best = trained["game"], trained["config"], trained["validation"]
    made = durable.read_json(training / "trained.host.json")
    host = made["sessions"][-1]
    rate = f"{config['learning_rate']:g}"
    if config["learning_rate_end"]:
        rate += f", falling to {config['learning_rate_end']:g} along half a cosine"
    values = {
        "game": game,
        "latents": f"{config['latent']} {config['latent_kind'].capitalize()} latents",
        "num_features": f"{_features(config):,}",
        "collect": _commands(collected["host"]),
        "screens": f"{collected['screens']:,}",
        "duplicates": f"{collected['duplicates']:,}",
        "episodes": f"{len(collected['scores']) + 1}",
        "features": collected["config"]["features"],
        "collect_minutes": f"{collected['host']['seconds'] / 60:,.0f}",
        "train": _commands(made),
        "steps": f"{trained['steps']:,}",
        "batch_size": config["batch_size"],
        "epochs": config["epochs"],
        "rate": rate,
        "beta": f"{config['beta']:g}",
        "train_minutes": f"{made['seconds'] / 60:,.0f}",
        "cores": host["threads"],
        "processor": host["processor"],
        "note": note,
        "best_epoch": best["epoch"],
        "bce": f"{best['bce']:,.1f}",
        "excess": f"{best['excess_bce']:,.1f}",
        "mse": f"{best['mse']:.5f}",
        "kl": f"{best['kl']:,.1f}",
        "true": f"{best['features_per_frame']:,.0f}",
        "varying": f"{best['features_varying']:,.0f}",
        "digest": trained["model"],
        "config": json.dumps(config, indent=2),
    }
    return _CARD.substitute(values)


def _features(config: dict[str, Any]) -> int:
    return int(np.prod([int(size) for size in config["latent"].split("x")]))


def _commands(made: dict[str, Any]) -> str:
    """Each command once, as it was typed."""
    commands = dict.fromkeys(
        shlex.join(["python", *session["command"][1:]]) for session in made["sessions"]
    )
    return "\n".join(f"    {command}" for command in commands)
