"""Inspects a model and writes down what was found.

The work directory:

    index.html       the page: everything, in one file that opens from disk
    findings.json    the numbers
    pictures/        the pictures one by one, on white
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.inspection.findings import Findings, inspect_model
from vaeiw_jax.reports import (
    atoms_section,
    decision_section,
    images,
    inspection_charts,
    tree_drawing,
)
from vaeiw_jax.reports.charts import Chart
from vaeiw_jax.reports.images import Captioned, Row
from vaeiw_jax.reports.pages import plural, render
from vaeiw_jax.reports.tables import Column, Table

PAGE = "index.html"
_SHOWN_PAIRS = 4


def inspect(config: InspectConfig, workdir: Path) -> Findings:
    """Inspects the model that the config names and writes pictures, numbers and the page."""
    workdir.mkdir(parents=True, exist_ok=True)  # before the work, in case it may not be written to
    findings = inspect_model(config)
    write(findings, workdir)
    return findings


def write(findings: Findings, workdir: Path) -> None:
    numbers = findings.numbers()
    shown = Shown(
        charts=inspection_charts.draw(findings),
        reconstructions=reconstructions(findings),
        maps=position_maps(findings),
        kinds=feature_kinds(findings),
        flipping=flipping_features(findings),
    )
    for name, content in _pictures(findings, shown).items():
        durable.write_bytes(workdir / "pictures" / name, content)
    durable.write_json(workdir / "findings.json", numbers)
    page = render("inspection.html", **_page_values(findings, numbers, shown))
    durable.write_bytes(workdir / PAGE, page.encode())


@dataclass(frozen=True)
class Shown:
    """What the page shows and the pictures are made of."""

    charts: dict[str, Chart]
    reconstructions: list[Row]
    maps: list[tuple[Captioned, float]]
    kinds: list[Row]
    flipping: list[Row]


def _pictures(findings: Findings, shown: Shown) -> dict[str, bytes]:
    """By the names of their files."""
    game = findings.game
    files = {f"{name}.png": chart.png() for name, chart in shown.charts.items()}
    title = f"{game}: frames and what the VAE makes of them (red: too bright, blue: too dark)"
    files["reconstructions.png"] = images.sheet(title, shown.reconstructions)
    maps = Row("by position", [each for each, _ in shown.maps])
    files["positions.png"] = images.sheet(f"{game}: where bits are on", [maps])
    if shown.kinds:
        title = f"{game}: what features stand for (red: brighter when true, blue: darker)"
        files["features.png"] = images.sheet(title, [*shown.kinds, *shown.flipping])
    if findings.replanned:
        files["tree.svg"] = tree_drawing.svg(findings.replanned, alone=True).encode()
    return files


def _page_values(findings: Findings, numbers: dict[str, Any], shown: Shown) -> dict[str, Any]:
    quality, replanned = findings.quality, findings.replanned
    worst = quality.alike[np.argsort(-quality.pairs.flips[quality.alike], kind="stable")]
    encoded = findings.encoded
    return {
        "title": f"Inside a VAE of {findings.model_game or findings.game or 'an unknown game'}",
        "findings": findings,
        "quality": numbers["quality"],
        "charts": shown.charts,
        "error": numbers["reconstruction"]["mean_squared_error"],
        "flips": _flips,
        "percent": _percent,
        "reconstructions": shown.reconstructions,
        "most_at_a_position": float(encoded.by_place(encoded.bits).max()),
        "bits_scale": images.scale(images.BITS_COLOURS),
        "difference_scale": images.scale(images.DIFFERENCE_COLOURS),
        "maps": shown.maps,
        "kinds": shown.kinds,
        "flipping": shown.flipping,
        "numbers": _numbers_table(numbers["quality"]),
        "alike_pairs": _pairs(findings, worst[:_SHOWN_PAIRS]),
        "confused_pairs": _pairs(findings, quality.confused[:_SHOWN_PAIRS]),
        "validation": findings.description["about"].get("validation") or {},
        "atoms": atoms_section.values(findings),
        "decision": decision_section.values(replanned) if replanned else None,
    }


def reconstructions(findings: Findings) -> list[Row]:
    """For each of the frames to show: what goes in, what comes out, and the features between them."""
    encoded, decoded = findings.encoded, findings.decoded
    most = float(encoded.by_place(encoded.bits).max())
    rows = []
    for shown in findings.shown():
        row = findings.decoded_rows[shown]
        frame, drawn = encoded.frames[row], decoded.reconstructions[shown]
        on = encoded.by_place(encoded.bits[row])
        nats = f"reconstruction, {decoded.excess_bce[shown]:,.0f}\N{NO-BREAK SPACE}nats\N{NO-BREAK SPACE}off"
        cells = [
            Captioned(images.screen(encoded.screens[row]), "screen"),
            Captioned(images.grey(frame), "frame"),
            Captioned(images.grey(drawn), nats),
            Captioned(images.difference(drawn - frame), "difference"),
            Captioned(images.grey(decoded.from_bits[shown]), "from true features alone"),
            Captioned(images.bits(on, most), f"{int(on.sum()):,} features true"),
        ]
        rows.append(Row(f"frame {row}", cells))
    return rows


def position_maps(findings: Findings) -> list[tuple[Captioned, float]]:
    """Where features are true, and where they vary, each with its largest value."""
    quality, by_place = findings.quality, findings.encoded.by_place
    on, varying = by_place(quality.shares), by_place(quality.varying.astype(float))
    moving = "true in some frames, false in others: where things move"
    return [
        (Captioned(images.bits(values, values.max()), title, note), float(values.max()))
        for title, note, values in (
            ("True features", "on average over the frames", on),
            ("Features that vary", moving, varying),
        )
    ]


def feature_kinds(findings: Findings) -> list[Row]:
    """What some features stand for; nothing if none varies."""
    quality, number = findings.quality, findings.config.shown_features
    kinds = {
        "Those that fire most, though not always": quality.most_frequent(number),
        "Those that fire least, though at times": quality.least_frequent(number),
        "Those that tell most: true about as often as not": quality.most_informative(number),
    }
    return [
        Row(title, _features(findings, features, quality.shares, "of frames"))
        for title, features in kinds.items()
        if len(features)
    ]


def flipping_features(findings: Findings) -> list[Row]:
    """Those that flip most often between screens that look alike; nothing if none does."""
    quality = findings.quality
    features = quality.most_flipping(findings.config.shown_features)
    title = "The features that flip most often between screens that look alike"
    cells = _features(findings, features, quality.flip_rates, "of the pairs")
    return [Row(title, cells)] if cells else []


def _features(
    findings: Findings, features: Iterable[int], shares: np.ndarray, of_what: str
) -> list[Captioned]:
    encoded = findings.encoded
    cells = []
    for feature in features:
        row, column, channel, *bit = place = encoded.place(feature)
        note = f"feature {feature:,}: row {row}, column {column}, channel {channel}"
        note += "".join(f", bit {b}" for b in bit)
        image = images.contrast(encoded.frames, encoded.bits[:, feature], place, encoded.shape)
        cells.append(Captioned(image, f"{_percent(shares[feature])} {of_what}", note))
    return cells


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0.1 < 100 * share < 99.9 else f"{100 * share:.2f}%"


def _flips(flips: float | None) -> str:
    return "\N{EN DASH}" if flips is None else f"{flips:,.0f}" if flips >= 10 else f"{flips:.1f}"


def _numbers_table(summary: dict[str, Any]) -> Table:
    alike = f"nearest pairs that look alike (at most {summary['alike_pixels']:,} pixels differ)"
    rows = {
        "distinct screens": f"{summary['distinct_screens']:,} of {summary['frames']:,} frames",
        "distinct sets of features": f"{summary['distinct_codes']:,}",
        "pairs of different screens with equal features": f"{summary['confused_pairs']:,}",
        alike: f"{summary['alike_pairs']:,}",
        "features that flip between them": _flips(summary["flips_between_alike"]),
        "features that differ between any two screens": _flips(summary["flips_between_any"]),
        "features that ever flip between screens that look alike": f"{summary['flipping_features']:,}",
    }
    return Table([Column("", text=True, long=True), Column("")], list(rows.items()))


def _pairs(findings: Findings, chosen: np.ndarray) -> list[Row]:
    """Pairs of screens, the pixels in which they differ and, where there are any, the features that do."""
    encoded, pairs = findings.encoded, findings.quality.pairs
    rows = []
    for pair in chosen:
        first, second = pairs.first[pair], pairs.second[pair]
        one, other = encoded.screens[first], encoded.screens[second]
        pixels, flipped = int(pairs.pixels[pair]), int(pairs.flips[pair])
        cells = [
            Captioned(images.screen(one), f"frame {first}"),
            Captioned(images.screen(other), f"frame {second}"),
            Captioned(
                images.differing_pixels(one, other),
                plural(pixels, "pixel differs", "pixels differ"),
            ),
        ]
        if flipped:
            flips = encoded.by_place(encoded.bits[first] != encoded.bits[second])
            caption = f"{plural(flipped, 'feature')} flipped"
            cells.append(Captioned(images.bits(flips, flips.max()), caption))
        rows.append(Row("", cells))
    return rows
