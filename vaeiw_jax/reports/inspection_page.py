"""The page: everything found about a model, in one HTML file that needs no other and no network."""

import html
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from vaeiw_jax.inspection.findings import Findings
from vaeiw_jax.reports import feature_pictures, pages
from vaeiw_jax.reports.decision_section import decision_section
from vaeiw_jax.reports.inspection_charts import Chart
from vaeiw_jax.reports.markup import chart, count, figure, plural, scale, tile

_HERE = Path(__file__).parent
_SHOWN_PAIRS = 4


def page(findings: Findings, charts: dict[str, Chart]) -> str:
    """The whole page.

    Args:
      findings: what there is to tell.
      charts: by name.
    """
    sections = [
        _head(findings),
        _reconstructions(findings),
        _places(findings, charts),
        _features(findings),
        _quality(findings, charts),
    ]
    if findings.replanned:
        sections.append(decision_section(findings.replanned, charts))
    sections.append(_foot(findings))
    return pages.page(
        _title(findings),
        "\n".join(sections),
        _HERE / "inspection_page.css",
        _HERE / "inspection_page.js",
    )


def _title(findings: Findings) -> str:
    return f"Inside a VAE of {findings.model_game or findings.game or 'an unknown game'}"


def _head(findings: Findings) -> str:
    model, quality = findings.model, findings.quality
    summary, about = quality.summary(), findings.description["about"]
    trained = f", trained on {about['screens']:,} screens" if about.get("screens") else ""
    kind = (
        f"true above probability {findings.config.threshold:g}"
        if model.latent_kind == "bernoulli"
        else f"{findings.config.quantisation_bits} bits for each latent's mean"
    )
    networks = {
        "paper": "the networks of the paper",
        "published": "the networks of the published code",
    }[model.variant]
    links = {
        "reconstructions": "Frames and reconstructions",
        "places": "Where bits are on",
        "features": "What features stand for",
        "quality": "How good they are",
    }
    if findings.replanned:
        links["decision"] = "A decision"
    error = findings.decoded.squared_error(findings.encoded.frames[findings.decoded_rows])
    tiles = [
        tile(count(summary["features"]), f"features, {model.latent.replace('x', '&times;')}"),
        tile(count(summary["true_per_frame"]), "true in a frame"),
        tile(count(summary["varying"]), "vary over the frames"),
        tile(f"{error:.4f}", "mean squared error of a pixel"),
        tile(
            _flips(summary["flips_between_alike"]), "features flip between screens that look alike"
        ),
        tile(
            f"{summary['distinct_codes']:,} <small style='display:inline'>of {summary['distinct_screens']:,}</small>",
            "screens told apart",
        ),
    ]
    return f"""<header>
<h1>{html.escape(_title(findings))}</h1>
<p class="faint">{model.latent_kind.capitalize()} latents, {kind}; {networks}{trained}.
{_count_frames(findings)}</p>
{_another_game(findings)}
<div class="tiles">{"".join(tiles)}</div>
<nav>{"".join(f'<a href="#{anchor}">{text}</a>' for anchor, text in links.items())}</nav>
</header>"""


def _flips(flips: float | None) -> str:
    return "&ndash;" if flips is None else f"{flips:,.0f}" if flips >= 10 else f"{flips:.1f}"


def _count_frames(findings: Findings) -> str:
    source = (
        f"from the store <code>{html.escape(findings.config.screens)}</code>"
        if findings.config.screens
        else f"from a short game of {findings.game}, seed {findings.config.seed}"
    )
    return f"Seen through {len(findings.encoded.screens):,} frames {source}."


def _another_game(findings: Findings) -> str:
    if not findings.model_game or findings.game in ("", findings.model_game):
        return ""
    return (
        f'<p class="note">The model was trained on {html.escape(findings.model_game)}, and these frames are of '
        f"{html.escape(findings.game)}: it has never seen the like.</p>"
    )


def _reconstructions(findings: Findings) -> str:
    encoded, decoded = findings.encoded, findings.decoded
    most = float(encoded.by_place(encoded.bits).max())
    strips = []
    for shown in findings.shown():
        row = findings.decoded_rows[shown]
        frame, drawn = encoded.frames[row], decoded.reconstructions[shown]
        on = encoded.by_place(encoded.bits[row])
        strips.append(
            '<div class="strip">'
            + figure(feature_pictures.screen(encoded.screens[row]), "screen")
            + figure(feature_pictures.grey(frame), "frame")
            + figure(
                feature_pictures.grey(drawn),
                f"reconstruction, {decoded.excess_bce[shown]:,.0f}&nbsp;nats&nbsp;off",
            )
            + figure(feature_pictures.difference(drawn - frame), "difference")
            + figure(feature_pictures.grey(decoded.from_bits[shown]), "from true features alone")
            + figure(feature_pictures.bits(on, most), f"{int(on.sum()):,} features true")
            + "</div>"
        )
    return f"""<section id="reconstructions"><h2>Frames and reconstructions</h2>
<p>What is on the screen; the grey frame that goes in; what comes out; what is too bright (red) or too dark (blue);
what could be drawn from the features that planning sees, and nothing else; and how many of them are true at each of the
{encoded.shape[0]} &times; {encoded.shape[1]} positions of the code.</p>
<div class="card">{"".join(strips)}
<div class="scales">{scale("difference", "too dark", "too bright")}
{scale("bits", "none true", f"{most:.0f} at one position")}</div></div></section>"""


def _places(findings: Findings, charts: dict[str, Chart]) -> str:
    encoded, quality = findings.encoded, findings.quality
    on = encoded.by_place(quality.shares)
    varying = encoded.by_place(quality.varying.astype(float))
    maps = [
        ("True features", "on average over the frames", on),
        ("Features that vary", "true in some frames, false in others: where things move", varying),
    ]
    cards = "".join(
        f'<div class="card"><h3>{name}</h3><div class="map">'
        f"{figure(feature_pictures.bits(values, values.max()), '', f'{name} {note}, by position')}"
        f"{scale('bits', '0', f'{values.max():,.1f} a position')}</div><p><small>{note}</small></p></div>"
        for name, note, values in maps
    )
    return f"""<section id="places"><h2>Where bits are on</h2>
<p>{charts["firing"].alt.capitalize()}; {charts["true_per_frame"].alt}.</p>
<div class="two">{cards}</div>
<div class="two">
<div class="card"><h3>How often features are true</h3>{chart(charts["firing"])}</div>
<div class="card"><h3>How many are true at once</h3>{chart(charts["true_per_frame"])}</div>
</div></section>"""


def _features(findings: Findings) -> str:
    quality, number = findings.quality, findings.config.shown_features
    kinds = {
        "Those that fire most, though not always": quality.most(number),
        "Those that fire least, though at times": quality.least(number),
        "Those that tell most: true about as often as not": quality.telling(number),
    }
    galleries = "".join(
        f"<h3>{name}</h3>{_gallery(findings, features, quality.shares, 'of frames')}"
        for name, features in kinds.items()
    )
    nothing = "<p>No feature varies over these frames.</p>"
    return f"""<section id="features"><h2>What features stand for</h2>
<p>The part of the frame that a feature can see, on average over the frames: red where pixels are brighter when it is
true than when it is not, blue where they are darker. The mark is the feature's own position in the code.</p>
{galleries if quality.varying.any() else nothing}
</section>"""


def _gallery(findings: Findings, features: Iterable[int], shares: np.ndarray, of_what: str) -> str:
    encoded = findings.encoded
    figures = [
        figure(
            feature_pictures.contrast(
                encoded.frames, encoded.bits[:, feature], encoded.place(feature), encoded.shape
            ),
            f"<b>{_percent(shares[feature])}</b> {of_what}<br>{_place(encoded.place(feature))}",
            f"what feature {feature} stands for",
        )
        for feature in features
    ]
    return f'<div class="card gallery">{"".join(figures)}</div>' if figures else ""


def _place(place: tuple[int, ...]) -> str:
    row, column, channel, *bit = place
    return f"row {row}, column {column}, channel {channel}" + "".join(f", bit {b}" for b in bit)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0.1 < 100 * share < 99.9 else f"{100 * share:.2f}%"


def _quality(findings: Findings, charts: dict[str, Chart]) -> str:
    summary = findings.quality.summary()
    return f"""<section id="quality"><h2>How good the features are</h2>
<p>Good features change when what matters on the screen does, and only then.</p>
{_changing(findings)}
<div class="two">
<div class="card"><h3>Looking alike and being alike</h3>{chart(charts["pixels_and_flips"])}
<p><small>All {len(findings.quality.pairs.pixels):,} pairs of distinct screens. High on the left, features flip though
hardly a pixel did; at the bottom on the right, screens differ and their features do not.</small></p></div>
<div class="card"><h3>In numbers</h3>{_table(summary)}</div>
</div>
{_restless(findings)}
{_confused(findings)}
</section>"""


def _changing(findings: Findings) -> str:
    summary = findings.quality.summary()
    parts = [
        ("never_true", "never true", "--grey"),
        ("varying", "vary", "--blue"),
        ("always_true", "always true", "--gold"),
    ]
    total = summary["features"]
    bars = "".join(
        f'<i style="width:{100 * summary[name] / total:.3f}%;background:var({colour})"></i>'
        for name, _, colour in parts
        if summary[name]
    )
    key = "".join(
        f'<span><i style="background:var({colour})"></i>{summary[name]:,} {label} '
        f"({_percent(summary[name] / total)})</span>"
        for name, label, colour in parts
    )
    return f"""<div class="card"><h3>Bits that never change say nothing</h3>
<div class="shares">{bars}</div><div class="key">{key}</div></div>"""


def _table(summary: dict[str, float]) -> str:
    alike = summary["alike_pairs"]
    rows = {
        "distinct screens": f"{summary['distinct_screens']:,} of {summary['frames']:,} frames",
        "distinct sets of features": f"{summary['distinct_codes']:,}",
        "pairs of different screens with equal features": f"{summary['confused_pairs']:,}",
        f"nearest pairs that look alike (at most {summary['alike_pixels']:,} pixels differ)": f"{alike:,}",
        "features that flip between them": _flips(summary["flips_between_alike"]),
        "features that differ between any two screens": _flips(summary["flips_between_any"]),
        "features that ever flip between screens that look alike": f"{summary['restless_features']:,}",
    }
    return (
        "<table>"
        + "".join(
            f'<tr><th>{name}</th><td style="white-space:nowrap">{text}</td></tr>'
            for name, text in rows.items()
        )
        + "</table>"
    )


def _restless(findings: Findings) -> str:
    quality, config = findings.quality, findings.config
    heading = "<h3>Bits that flip between screens that look alike</h3>"
    if not len(quality.alike):
        return (
            f"{heading}<p>No two different screens here look that alike; more frames (<code>--num_screens</code>) or a "
            "larger <code>--alike_pixels</code> may find some.</p>"
        )
    worst = quality.alike[np.argsort(-quality.pairs.flips[quality.alike], kind="stable")]
    gallery = _gallery(
        findings,
        quality.restless(config.shown_features),
        quality.restlessness,
        "of the pairs",
    )
    return f"""{heading}
<p>Each screen was put beside the one most like it, where at most {config.alike_pixels:,} of its
{findings.encoded.screens[0].size:,} pixels differ: {plural(len(quality.alike), "pair")}. Novelty that comes from such
flips leads the planner astray.</p>
{_pairs(findings, worst[:_SHOWN_PAIRS], flipped=True)}
{"<h3>The features that flip most often between such screens</h3>" if gallery else ""}{gallery}"""


def _confused(findings: Findings) -> str:
    confused = findings.quality.confused
    heading = "<h3>Different screens with equal features</h3>"
    if not len(confused):
        return f'{heading}<p class="note good">None: every distinct screen has features of its own.</p>'
    return f"""{heading}
<p>{plural(len(confused), "pair")}, the most different first. To the planner the two are one screen, and the second
is pruned.</p>
{_pairs(findings, confused[:_SHOWN_PAIRS], flipped=False)}"""


def _pairs(findings: Findings, chosen: np.ndarray, flipped: bool) -> str:
    """Pairs of screens, the pixels in which they differ and, if asked for, where features do."""
    encoded, pairs = findings.encoded, findings.quality.pairs
    strips = []
    for pair in chosen:
        first, second = pairs.first[pair], pairs.second[pair]
        one, other = encoded.screens[first], encoded.screens[second]
        figures = [
            figure(feature_pictures.screen(one), f"frame {first}", kind="screen"),
            figure(feature_pictures.screen(other), f"frame {second}", kind="screen"),
            figure(
                feature_pictures.differing_pixels(one, other),
                f"{plural(int(pairs.pixels[pair]), 'pixel')} differ",
                kind="screen",
            ),
        ]
        if flipped:
            flips = encoded.by_place(encoded.bits[first] != encoded.bits[second])
            caption = f"{plural(int(pairs.flips[pair]), 'feature')} flipped"
            figures.append(
                figure(feature_pictures.bits(flips, max(1, flips.max())), caption, kind="screen")
            )
        strips.append(f'<div class="pairs" style="--n:{len(figures)}">{"".join(figures)}</div>')
    return f'<div class="card pairbox">{"".join(strips)}</div>'


def _foot(findings: Findings) -> str:
    validation = findings.description["about"].get("validation") or {}
    told = ", ".join(
        f"{label} {validation[name]:,.1f}"
        for name, label in (("loss", "loss"), ("excess_bce", "nats above the floor"), ("kl", "KL"))
        if name in validation
    )
    return f"""<footer><p>Model <code>{html.escape(str(findings.directory))}</code>, SHA-256
<code>{findings.digest}</code>.{f" Validation when it was saved: {told}." if told else ""} The pictures are in
<code>pictures/</code>, the numbers in <code>findings.json</code>.</p></footer>"""
