"""Looking at a model and writing down what was seen.

The work directory:

    index.html       the page: everything, in one file that opens from disk
    findings.json    the numbers
    pictures/        the pictures one by one, on white
"""

from pathlib import Path

import numpy as np

from vaeiw_jax import durable
from vaeiw_jax.inspection.config import InspectConfig
from vaeiw_jax.inspection.findings import Findings, look
from vaeiw_jax.reports import feature_pictures, inspection_charts, tree_drawing
from vaeiw_jax.reports.inspection_charts import Chart
from vaeiw_jax.reports.inspection_page import page
from vaeiw_jax.reports.sheets import Row, sheet

PAGE = "index.html"


def inspect(config: InspectConfig, workdir: Path) -> Findings:
    """Looks at what the config names and writes pictures, numbers and the page."""
    workdir.mkdir(parents=True, exist_ok=True)  # before the work, in case it may not be written to
    findings = look(config)
    drawn = draw_charts(findings)
    files = {f"{chart.name}.png": chart.light for chart in drawn.values()} | sheets(findings)
    if findings.replanned:
        files["tree.png"] = tree_drawing.figure(findings.replanned)
    for name, png in files.items():
        durable.write_bytes(workdir / "pictures" / name, png)
    durable.write_json(workdir / "findings.json", findings.numbers())
    durable.write_bytes(workdir / PAGE, page(findings, drawn).encode())
    return findings


def draw_charts(findings: Findings) -> dict[str, Chart]:
    """The charts, by name."""
    quality, replanned = findings.quality, findings.replanned
    drawn = [
        inspection_charts.firing(quality),
        inspection_charts.true_per_frame(quality),
        inspection_charts.pixels_and_flips(quality),
    ]
    if replanned:
        drawn += [inspection_charts.values(replanned), inspection_charts.depths(replanned)]
    return {chart.name: chart for chart in drawn}


def sheets(findings: Findings) -> dict[str, bytes]:
    """The pictures that are made of pixels, by file name."""
    sheets = {
        "reconstructions.png": _reconstructions(findings),
        "positions.png": _positions(findings),
    }
    if findings.quality.varying.any():
        sheets["features.png"] = _features(findings)
    return sheets


def _reconstructions(findings: Findings) -> bytes:
    encoded, decoded, shown = findings.encoded, findings.decoded, findings.shown()
    rows = findings.decoded_rows[shown]
    on = encoded.by_place(encoded.bits[rows])
    most = float(encoded.by_place(encoded.bits).max())
    frames, drawn = encoded.frames[rows], decoded.reconstructions[shown]
    return sheet(
        f"{findings.game}: frames and what the VAE makes of them",
        [
            Row("frame", [feature_pictures.grey(frame) for frame in frames], []),
            Row("reconstruction", [feature_pictures.grey(image) for image in drawn], []),
            Row(
                "difference\n(red: too bright,\nblue: too dark)",
                [feature_pictures.difference(image) for image in drawn - frames],
                [],
            ),
            Row(
                "from the true\nfeatures alone",
                [feature_pictures.grey(image) for image in decoded.from_bits[shown]],
                [],
            ),
            Row(
                "true features\nby position",
                [feature_pictures.bits(counts, most) for counts in on],
                [f"{int(counts.sum()):,} true" for counts in on],
            ),
        ],
    )


def _positions(findings: Findings) -> bytes:
    encoded, quality = findings.encoded, findings.quality
    on = encoded.by_place(quality.shares)
    varying = encoded.by_place(quality.varying.astype(float))
    return sheet(
        f"{findings.game}: where bits are on",
        [
            Row(
                "by position",
                [
                    feature_pictures.bits(on, on.max()),
                    feature_pictures.bits(varying, varying.max()),
                ],
                [
                    f"true on average: 0 to {on.max():.1f}",
                    f"that vary: 0 to {varying.max():.0f}",
                ],
            )
        ],
    )


def _features(findings: Findings) -> bytes:
    quality, number = findings.quality, findings.config.shown_features
    groups = [
        ("fire most,\nnot always", quality.most(number), quality.shares, "of frames"),
        ("fire least,\nat times", quality.least(number), quality.shares, "of frames"),
        ("true as often\nas not", quality.telling(number), quality.shares, "of frames"),
        (
            "flip between\nscreens that\nlook alike",
            quality.restless(number),
            quality.restlessness,
            "of pairs",
        ),
    ]
    rows = [
        Row(
            label,
            [_contrast(findings, feature) for feature in features],
            [f"feature {feature:,}: {100 * shares[feature]:.1f}% {of}" for feature in features],
        )
        for label, features, shares, of in groups
        if len(features)
    ]
    return sheet(
        f"{findings.game}: what features stand for (red: brighter when true, blue: darker)", rows
    )


def _contrast(findings: Findings, feature: np.integer) -> np.ndarray:
    encoded = findings.encoded
    return feature_pictures.contrast(
        encoded.frames, encoded.bits[:, feature], encoded.place(int(feature)), encoded.shape
    )
