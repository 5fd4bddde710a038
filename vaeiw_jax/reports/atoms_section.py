"""What the inspection page shows of atoms, and of how the searches of a run ended."""

from typing import Any

from vaeiw_jax.features import FeaturesConfig
from vaeiw_jax.inspection.atoms import Atoms
from vaeiw_jax.inspection.findings import Findings
from vaeiw_jax.inspection.recorded_run import RecordedRun
from vaeiw_jax.reports.tables import Cell, Column, Table, Value

_LITERALS = {
    "true": "that a bit is true",
    "either": "whether a bit is true or false",
    "unusual": "that a bit is not as it mostly is in the game",
}
_KINDS = {
    "true": "a bit is true",
    "false": "a bit is false",
    "unusual": "a bit is unusual",
    "changed_to_true": "it was switched on since the parent",
    "changed_to_false": "it was switched off since the parent",
}


def setting_in_words(config: FeaturesConfig) -> str:
    """What of a bit is an atom."""
    changes = "; and that it was switched on, or off, since the parent" if config.changes else ""
    return _LITERALS[config.literals] + changes


def by_title(atoms: Atoms) -> dict[str, Atoms]:
    """The atoms of each kind, by what they say."""
    return {_KINDS[name]: part for name, part in atoms.kinds().items()}


def values(findings: Findings) -> dict[str, Any]:
    """For the template of the page."""
    recorded = findings.recorded
    played = findings.played
    return {
        "setting": setting_in_words(findings.features),
        "of_the_run": findings.features == played,
        "other_setting_of_the_run": setting_in_words(played)
        if played is not None and played != findings.features
        else "",
        "counts": findings.atoms.counts(),
        "kinds": _kinds_table(findings.atoms),
        "searches": recorded.summary() if recorded else None,
        "endings": _endings_table(recorded) if recorded else None,
        "notions": _notions_table(recorded) if recorded and recorded.config.planner.widen else None,
    }


def _kinds_table(atoms: Atoms) -> Table:
    """The counts, a row for each kind of atom and, if there are several, one for all."""
    kinds = {title: part.counts() for title, part in by_title(atoms).items()}
    rows = kinds if len(kinds) == 1 else {**kinds, "all": atoms.counts()}
    columns = [
        Column("an atom says", text=True, long=True),
        Column("atoms"),
        Column("true on a screen", "on average"),
        Column("on half of the screens"),
        Column("on all screens"),
        Column("always true"),
        Column("ever vary"),
        Column("switched on", "all, on a screen"),
        Column("switched off", "all, on a screen"),
    ]
    return Table(columns, [[title, *_count_cells(counts)] for title, counts in rows.items()])


def _count_cells(counts: dict[str, Any]) -> list[Value | Cell]:
    spread = counts["true_per_screen"]
    return [
        counts["atoms"],
        _mean(spread["mean"]),
        _range(spread, "lower_quartile", "upper_quartile"),
        _range(spread, "least", "most"),
        counts["always_true"],
        counts["varying"],
        *(
            Cell(f"{counts[name]:,}, {_mean(counts[f'{name}_per_screen']).text}", counts[name])
            for name in ("switched_on", "switched_off")
        ),
    ]


def _endings_table(recorded: RecordedRun) -> Table:
    """What decisions came to, a column for each way to end."""
    endings = recorded.summary()["by_ending"]
    total = len(recorded.solved)
    rows = {
        "decisions": [
            Cell(f"{each['decisions']:,} ({each['decisions'] / total:.0%})")
            for each in endings.values()
        ],
        "depth of the deepest node": [_mean(each["depth"]["mean"]) for each in endings.values()],
        "of half of them from": [
            _range(each["depth"], "lower_quartile", "upper_quartile") for each in endings.values()
        ],
        "mean length of a rollout": [
            _mean(each["mean_rollout_length"]) for each in endings.values()
        ],
        "new nodes": [_mean(each["mean_new_nodes"]) for each in endings.values()],
        "atoms of a new node": [_mean(each["mean_atoms_per_node"]) for each in endings.values()],
    }
    columns = [Column("", text=True, long=True), *(Column(title) for title in endings)]
    return Table(columns, [[title, *cells] for title, cells in rows.items()])


def _notions_table(recorded: RecordedRun) -> Table:
    columns = [Column("novelty by", text=True), Column("decisions that ended with it")]
    return Table(columns, recorded.notions())


def _mean(value: float) -> Cell:
    return Cell(f"{value:,.0f}" if value >= 100 else f"{value:,.1f}", value)


def _range(spread: dict[str, float], low: str, high: str) -> Cell:
    return Cell(f"{spread[low]:,.0f} to {spread[high]:,.0f}", spread[low])
