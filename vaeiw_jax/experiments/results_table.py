"""The results that come with the project: one line per run, and the configs they were played with.

    runs.csv               by method, game and seed: the result, and what it was made with
    configs/<digest>.json  how a method plays, all settings but the game

A budget in nodes makes a run a function of its config and seed, so anyone can play a line again and compare.
"""

import contextlib
import csv
import dataclasses
import fcntl
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vaeiw_jax import configs, durable, models, provenance
from vaeiw_jax.durable import DamagedFileError
from vaeiw_jax.errors import UserError
from vaeiw_jax.experiments.jobs import PLAY, Job
from vaeiw_jax.planning.search import SOLVED
from vaeiw_jax.playing import runs
from vaeiw_jax.playing.episodes import EpisodeConfig
from vaeiw_jax.playing.runs import PlayConfig

FILE, CONFIGS = "runs.csv", "configs"
_OF_THE_MACHINE = ("version", "processor", "seconds")
"""Entries of a line that may differ when the run is played again."""


@dataclass(frozen=True)
class Line:
    """One run."""

    method: str
    game: str
    seed: int
    score: float
    actions: int
    emulator_frames: int
    stop: str
    solved: int
    """Decisions at whose end nothing was left to find, though there was budget left."""
    mean_new_nodes: float
    mean_kept_nodes: float
    mean_expanded_nodes: float
    mean_rollouts: float
    mean_rollout_length: float
    mean_max_rollout_length: float
    mean_depth: float
    mean_atoms_per_node: float
    config: str
    """Its file is `configs/<config>.json`."""
    model: str
    """SHA-256 of a trained model's weights; empty if there is none."""
    version: str
    """Of this program."""
    processor: str
    seconds: float

    @property
    def key(self) -> tuple[str, str, int]:
        return self.method, self.game, self.seed

    def __str__(self) -> str:
        return f"{self.method} {self.game} seed {self.seed}"

    def differences(self, other: "Line") -> list[str]:
        """The names of the entries that should be the same wherever a run is played, and are not."""
        return [
            entry.name
            for entry in dataclasses.fields(self)
            if entry.name not in _OF_THE_MACHINE
            and getattr(self, entry.name) != getattr(other, entry.name)
        ]


_FIELDS = dataclasses.fields(Line)
_MEANS = [entry.name for entry in _FIELDS if entry.name.startswith("mean_")]


def read(directory: Path) -> list[Line]:
    """All lines, in order; none if there are none yet."""
    path = directory / FILE
    if not path.exists():
        return []
    reader = csv.DictReader(io.StringIO(path.read_text()))
    names = [entry.name for entry in _FIELDS]
    if reader.fieldnames != names:
        raise DamagedFileError(path, f"its columns are not {', '.join(names)}")
    found: dict[tuple[str, str, int], Line] = {}
    for row in reader:
        line = _parsed(row, path, reader.line_num)
        if line.key in found:
            raise DamagedFileError(path, f"it has {line} twice")
        found[line.key] = line
    return list(found.values())


def _parsed(row: dict[str, str], path: Path, number: int) -> Line:
    try:
        return Line(**{name: kind(row[name]) for name, kind in _KINDS.items()})
    except (TypeError, ValueError, KeyError) as error:
        raise DamagedFileError(path, f"line {number}: {error}") from error


def _score(text: str) -> float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


_KINDS: dict[str, Any] = {entry.name: entry.type for entry in _FIELDS} | {"score": _score}


def require_publishable(directory: Path, jobs: Sequence[Job]) -> None:
    """Refuses, before anything is played, what `publish` would refuse once it was."""
    if directory.exists() and not directory.is_dir():
        raise UserError(f"{directory} is a file; results are published to a folder")
    for job in jobs:
        if job.kind != PLAY:
            raise UserError(
                f"{job.name} makes a VAE that nobody ships, and what is played with it cannot be published: nobody "
                "could play it again; give --vae=shipped, or only --methods that need none"
            )
        if job.timed:
            raise UserError(
                f"{job.name} is played against the clock and cannot be published: nobody could play it again; give "
                "--budget_nodes"
            )
    known = {line.method: line.config for line in read(directory)}
    names: dict[bytes, str] = {}  # of configs, which most games share
    for job in {(job.method, job.game): job for job in jobs}.values():
        assert isinstance(job.config, PlayConfig)
        episode = job.config.episode.identified()
        _model(episode, job.name)
        config = durable.json_bytes(_without_game(episode))
        if config not in names:
            names[config] = _config_name(directory, episode)
        _require_same_config(job.name, job.method, names[config], known)
        known[job.method] = names[config]


def publish(directory: Path, jobs: Sequence[Job]) -> dict[str, str]:
    """Adds the finished runs among the jobs to the results, but for those that do not belong there.

    Several processes may publish at once.

    Returns:
      Why those were refused, by the job's name.
    """
    refused: dict[str, str] = {}
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        lines = {line.key: line for line in read(directory)}
        named = {line.method: line.config for line in lines.values()}
        before = len(lines)
        for job in jobs:
            if job.kind != PLAY or not job.record.exists():
                continue
            try:
                line = line_of(job, directory)
                _require_same_config(str(line), line.method, line.config, named)
                _require_same_result(line, lines.get(line.key), job)
            except (UserError, FileNotFoundError) as error:
                refused[job.name] = str(error)
                continue
            if line.key not in lines:
                _write_config(directory, line.config, job)
                named[line.method] = line.config
                lines[line.key] = line
        if len(lines) > before:
            _write(directory, list(lines.values()))
    return refused


def _require_same_config(run: str, method: str, config: str, named: dict[str, str]) -> None:
    """Refuses a run whose config is not that of the method's other lines.

    Args:
      run: for the message.
      method, config: of the run, by name.
      named: by method, the config of its lines.
    """
    known = named.get(method, config)
    if known != config:
        raise UserError(
            f"{run} is of config {config}, and the other lines of {method} are of {known}; give the method another "
            "name, or publish to another folder"
        )


def _require_same_result(line: Line, known: Line | None, job: Job) -> None:
    different = line.differences(known) if known else []
    if different:
        raise UserError(
            f"{job.record} says {different[0]}={getattr(line, different[0])}, and the line of {line} "
            f"{getattr(known, different[0])}; one of them was not played with this program"
        )


def line_of(job: Job, directory: Path) -> Line:
    """The line of a finished run.

    Args:
      job: that played it.
      directory: of the results, where its config may have a name.
    """
    assert isinstance(job.config, PlayConfig)
    record = runs.finished(job.config, job.directory)
    if record is None:
        raise UserError(f"{job.record} is not there")
    if job.timed:
        raise UserError(
            f"{job.record} was played against the clock, and nobody could play it again; give --budget_nodes"
        )
    episode = job.config.episode.identified()
    expected = configs.settings(episode)
    # Settings that are younger than the record have their defaults, which change nothing.
    played = configs.settings(
        configs.from_settings(EpisodeConfig, record["config"], job.record, partial=True)
    )
    for name, value in expected.items():
        if played[name] != value:
            raise UserError(
                f"{job.record} was played with {name}={played[name]}, and {job.method} has {value}"
            )
    host = durable.read_json(job.host)
    version = host.get("versions", {}).get("vaeiw_jax", "unknown")
    if not provenance.gives_the_same_results(version):
        raise UserError(
            f"{job.record} is of version {version} of this program, whose results may be others; play it again"
        )
    decisions: dict[str, Any] = record["decisions"]
    means: dict[str, Any] = {name: float(decisions[name]) for name in _MEANS}
    return Line(
        method=job.method,
        game=job.game,
        seed=job.seed,
        **{name: record[name] for name in ("score", "actions", "emulator_frames", "stop")},
        solved=decisions["ended"].get(SOLVED, 0),
        **means,
        config=_config_name(directory, episode),
        model=_model(episode, str(job.record)),
        version=version,
        processor=host.get("processor", ""),
        seconds=round(float(host.get("seconds", 0.0)), 1),
    )


def _model(episode: EpisodeConfig, run: str) -> str:
    """The digest of the model that a run is played with; empty if there is none, refused if nobody ships it."""
    if not episode.planner.search.looks_ahead or ":" not in episode.features.features:
        return ""
    digest = episode.features.features.partition(":")[2]
    if digest not in models.shipped_by_digest():
        raise UserError(f"{run} is played with the VAE {digest[:12]}..., which nobody ships")
    return digest


def _config_name(directory: Path, episode: EpisodeConfig) -> str:
    """The name of the file that holds the config, or would if it were written."""
    mine = _without_game(episode)
    for path in sorted((directory / CONFIGS).glob("*.json")):
        if _without_game(_read_config(path, episode.atari.game)) == mine:
            return path.stem
    return hashlib.sha256(durable.json_bytes(mine)).hexdigest()[:12]


def _write_config(directory: Path, name: str, job: Job) -> None:
    assert isinstance(job.config, PlayConfig)
    path = directory / CONFIGS / f"{name}.json"
    if not path.exists():
        durable.write_json(path, _without_game(job.config.episode.identified()))


def _without_game(episode: EpisodeConfig) -> dict[str, Any]:
    return {name: value for name, value in configs.settings(episode).items() if name != "game"}


def _read_config(path: Path, game: str) -> EpisodeConfig:
    if not path.exists():
        raise UserError(f"{path} is missing, though {FILE} names it")
    settings = durable.read_json(path)
    # Settings that are younger than the file have their defaults, which change nothing.
    return configs.from_settings(EpisodeConfig, settings | {"game": game}, path, partial=True)


def episode(directory: Path, line: Line) -> EpisodeConfig:
    """How the run of a line was played, with the model where it is found here."""
    config = _read_config(directory / CONFIGS / f"{line.config}.json", line.game)
    if not line.model:
        return config
    name = models.shipped_by_digest().get(line.model)
    if name is None:
        raise UserError(f"{line} was played with the VAE {line.model[:12]}..., which is not here")
    return dataclasses.replace(
        config, features=dataclasses.replace(config.features, features=f"vae:{name}")
    )


def jobs_again(directory: Path, lines: Sequence[Line], home: Path) -> list[Job]:
    """The jobs that play lines again."""
    return [
        Job(
            PLAY,
            f"runs/{line.method}/{line.game}/seed-{line.seed}",
            home,
            line.game,
            PlayConfig(episode(directory, line), line.seed),
        )
        for line in lines
    ]


def key_of(job: Job) -> tuple[str, str, int]:
    """The `Line.key` of the run that a job plays."""
    return job.method, job.game, job.seed


def missing(directory: Path, jobs: Sequence[Job]) -> list[Job]:
    """Those of the jobs whose runs have no line yet."""
    known = {line.key for line in read(directory)}
    return [job for job in jobs if job.kind != PLAY or key_of(job) not in known]


def filling(directory: Path, jobs: Sequence[Job]) -> str:
    """How far the results are, a row for each method: in how many games there are no, one, two, ... seeds."""
    known = {line.key for line in read(directory)}
    wanted: dict[str, dict[str, list[bool]]] = {}
    for job in jobs:
        if job.kind == PLAY:
            done = key_of(job) in known
            wanted.setdefault(job.method, {}).setdefault(job.game, []).append(done)
    most = max((len(seeds) for games in wanted.values() for seeds in games.values()), default=0)
    width = max(map(len, wanted), default=0)
    rows = [f"{'games with':>{width}} {''.join(f'{n:>6}' for n in range(most + 1))} seeds"]
    for method, games in wanted.items():
        counts = [sum(sum(seeds) == n for seeds in games.values()) for n in range(most + 1)]
        lines = sum(map(sum, games.values()))
        total = sum(map(len, games.values()))
        cells = "".join(f"{count or '':>6}" for count in counts)
        rows.append(f"{method:>{width}} {cells}   {lines:,} of {total:,} runs")
    return "\n".join(rows)


def _write(directory: Path, lines: list[Line]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(entry.name for entry in _FIELDS)
    for line in sorted(lines, key=lambda line: line.key):
        writer.writerow(dataclasses.astuple(line))
    durable.write_bytes(directory / FILE, text.getvalue().encode())


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Waits until no other process publishes there."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
