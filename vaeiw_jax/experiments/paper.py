"""The numbers the paper prints, which ship with the package."""

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

from vaeiw_jax.errors import unknown

_TABLES = Path(__file__).parent / "tables"

MISPRINTS = {
    "main_0.5s": "the paper prints 4 games above human and 4 above 75% of human for IW; its own scores give 7 and 7",
    "continuous_vs_discrete": "the paper prints 10, 18 and 23 best in game; its own scores give 11, 18 and 22",
    "budget_32s": "the two tables with 32 s disagree about VAE-IW in Asterix, CrazyClimber and ElevatorAction",
    "budget_0.5s_vs_32s": "the two tables with 32 s disagree about VAE-IW in Asterix, CrazyClimber and ElevatorAction",
}
"""Where what the paper prints disagrees with itself, by table."""


@dataclass(frozen=True)
class PaperTable:
    """One of the paper's score tables."""

    games: tuple[str, ...]
    scores: dict[str, dict[str, float]]
    """By column and game; a game without a score is left out."""
    capped: dict[str, frozenset[str]]
    """By column, the games with a star: the action limit was reached at least once."""


def table_names() -> list[str]:
    return sorted(path.stem for path in _TABLES.glob("*.csv"))


@functools.cache
def table(name: str) -> PaperTable:
    """A table by the name of its file, such as `main_0.5s`."""
    if name not in table_names():
        raise unknown("table of the paper", name, table_names())
    with (_TABLES / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [column for column in rows[0] if column != "game"]
    return PaperTable(
        games=tuple(row["game"] for row in rows),
        scores={
            column: {row["game"]: float(row[column]) for row in rows if row[column]}
            for column in columns
            if not column.endswith("_capped")
        },
        capped={
            column.removesuffix("_capped"): frozenset(
                row["game"] for row in rows if row[column] == "1"
            )
            for column in columns
            if column.endswith("_capped")
        },
    )


def human_scores() -> dict[str, float]:
    """Of the games a professional tester was recorded in."""
    return table("normalization").scores["human"]


def random_scores() -> dict[str, float]:
    """Of random play, in the games that have a human score."""
    return table("normalization").scores["random"]
