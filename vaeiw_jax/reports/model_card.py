"""A trained model made ready to ship: weights, config, pictures, and a card that says how it was made."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable, models
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments import many_games
from vaeiw_jax.playing.collecting import CollectConfig
from vaeiw_jax.reports import images, training_progress
from vaeiw_jax.reports.pages import render
from vaeiw_jax.reports.tables import Column, Table
from vaeiw_jax.training import metrics

MOST_BYTES = 3_000_000
PICTURE_WIDTH = 1400


def publish(training: Path, collection: Path, directory: Path, note: str = "") -> int:
    """Writes the model of a training run, with its card, and returns how many bytes that takes.

    Args:
      training: the work directory of launch.train.
      collection: what launch.collect made and the run was trained on: a screen store, or a folder of them.
      directory: where to.
      note: a sentence for the card.
    """
    trained = _trained(training)
    games = trained.get("games")
    left_out = [game for game in trained["config"].get("leave_out", "").split(",") if game]
    collected = (
        _collected_from_many(collection, games, left_out) if games else _collected(collection)
    )
    lines = metrics.read(training / metrics.FILE)
    picture = _picture(training, trained["validation"]["epoch"])
    config, variables = models.load_model(training / "model")
    about = models.model_description(training / "model")["about"]
    usual = models.usual_codes(training / "model")
    models.save_model(directory, config, variables, about, usual)
    durable.write_bytes(
        directory / "reconstructions.png", images.reduced(picture, PICTURE_WIDTH, 128)
    )
    title = f"{len(games)} games" if games else trained["game"]
    durable.write_bytes(directory / "learning_curve.png", _learning_curve(training, lines, title))
    card = _card(trained, collected, training, note, left_out, directory)
    durable.write_bytes(directory / "README.md", card.encode())
    size = sum(path.stat().st_size for path in directory.iterdir())
    if size > MOST_BYTES:
        raise UserError(f"{directory} takes {size:,} bytes, more than {MOST_BYTES:,}")
    return size


def _trained(training: Path) -> dict[str, Any]:
    """The record of a run, or what it would be if the run had ended with its best validation so far."""
    path = training / "trained.json"
    if path.exists():
        return durable.read_json(path)
    best = metrics.best_validation(training)
    if best is None:
        raise UserError(f"{training} holds no model yet: no epoch of training is finished there")
    about = models.model_description(training / "model")["about"]
    config = durable.read_json(training / "config.json")
    settings = config["train"]
    return {
        **{name: about[name] for name in ("game", "games") if name in about},
        "model": models.model_description(training / "model")["weights"]["sha256"],
        "steps": best["step"],
        "validation": best,
        "config": settings | {"screens": Path(settings["screens"]).name},
    }


@dataclass(frozen=True)
class Collected:
    """The screens that were trained on: of one store, or what several add up to."""

    screens: int
    duplicates: int
    episodes: int
    features: str
    seconds: float
    commands: list[str]

    @classmethod
    def of(cls, stores: Sequence[dict[str, Any]], commands: list[str]) -> "Collected":
        return cls(
            screens=sum(store["screens"] for store in stores),
            duplicates=sum(store["duplicates"] for store in stores),
            episodes=sum(len(store["scores"]) + 1 for store in stores),  # the last has no score
            features=stores[0]["config"]["features"],
            seconds=sum(store["host"]["seconds"] for store in stores),
            commands=commands,
        )


def _store(directory: Path) -> dict[str, Any]:
    """The record of collecting into a screen store."""
    path = directory / "collection.json"
    if not path.exists():
        raise UserError(f"{directory} holds no screens of launch.collect: no collection.json")
    return durable.read_json(path) | {"host": durable.read_json(path.with_suffix(".host.json"))}


def _collected(collection: Path) -> Collected:
    store = _store(collection)
    return Collected.of([store], _commands(store["host"]))


def _collected_from_many(
    folder: Path, games: Mapping[str, int], left_out: Sequence[str]
) -> Collected:
    """Of the stores of a folder, those that were trained on, and the command that makes them all."""
    stores = [_store(folder / game) for game in games]
    shared = {k: v for k, v in stores[0]["config"].items() if k not in ("game", "num_screens")}
    for store in stores:
        if {**store["config"], **shared} != store["config"]:
            raise UserError(
                f"{store['game']} was collected otherwise than {stores[0]['game']}, and a card tells of one way; "
                "collect all games with one command"
            )
    command = _collect_command(sorted([*games, *left_out]), max(games.values()), shared)
    return Collected.of(stores, [command])


def _collect_command(games: list[str], num_screens: int, shared: dict[str, Any]) -> str:
    names = many_games.ALL if many_games.are_all(games) else ",".join(games)
    defaults = {name: configs.default(CollectConfig, name) for name in shared}
    if shared["budget_nodes"] is not None:  # which makes it the only budget
        defaults["budget_seconds"] = None
    given = {name: value for name, value in shared.items() if value != defaults[name]}
    flags = {"game": names, "num_screens": num_screens, **given, "workdir": "runs/screens"}
    return shlex.join(
        ["python", "-m", "launch.collect", *(f"--{name}={value}" for name, value in flags.items())]
    )


def _by_game(trained: dict[str, Any]) -> Table | None:
    """How well each game is reconstructed, the worst first."""
    found = trained["validation"].get("games", {})
    if not found:
        return None
    columns = [
        Column("game", text=True),
        Column("screens"),
        Column("nats above the floor", format=",.1f"),
        Column("mean squared error", format=".5f"),
        Column("features true", format=",.0f"),
    ]
    worst_first = sorted(found, key=lambda game: -found[game]["excess_bce"])
    values = ("excess_bce", "mse", "features_per_frame")
    rows = [
        [game, trained["games"][game], *(found[game][name] for name in values)]
        for game in worst_first
    ]
    return Table(columns, rows)


def _picture(training: Path, epoch: int) -> Path:
    """The picture of the epoch that the model is of, or the one before it that is nearest."""
    drawn = sorted((training / "pictures").glob("epoch-*.png"))
    until = [path for path in drawn if int(path.stem.removeprefix("epoch-")) <= epoch]
    if not until:
        raise UserError(f"{training} has no picture to ship; train with --picture_every=1")
    return until[-1]


def _learning_curve(training: Path, lines: Sequence[dict[str, Any]], game: str) -> bytes:
    title = f"{game}: how well frames are reconstructed"
    curve = training_progress.learning_curve(lines, title, training_progress.minutes(training))
    if curve is None:
        raise UserError(f"no step of the training of {game} was logged; train it again")
    return curve.png()


def _card(
    trained: dict[str, Any],
    collected: Collected,
    training: Path,
    note: str,
    left_out: Sequence[str],
    directory: Path,
) -> str:
    training_host = durable.read_json(training / "trained.host.json")
    config, best = trained["config"], trained["validation"]
    features = math.prod(int(size) for size in config["latent"].split("x"))
    quality = {
        "reconstruction": f"{best['bce']:,.1f} nats a frame, {best['excess_bce']:,.1f} above the floor, "
        "which is the entropy of the frame itself",
        "mean squared error": f"{best['mse']:.5f}",
        "KL to the prior": f"{best['kl']:,.1f} nats",
        "features true in a frame": f"{best['features_per_frame']:,.0f} of {features:,}",
        "features that vary": f"{best['features_varying']:,.0f}",
    }
    return render(
        "model_card.md",
        game=trained["game"],
        games=_by_game(trained),
        trained=trained,
        collected=collected,
        training_host=training_host,
        session=training_host["sessions"][-1],
        note=note,
        left_out=left_out,
        directory=directory,
        config=config,
        config_json=json.dumps(config, indent=2),
        features=features,
        quality=Table([Column("", text=True), Column("", text=True)], list(quality.items())),
        train_commands=_commands(training_host),
    )


def _commands(host: dict[str, Any]) -> list[str]:
    """Each command once, as it was typed."""
    lines = (shlex.join(["python", *session["command"][1:]]) for session in host["sessions"])
    return list(dict.fromkeys(lines))
