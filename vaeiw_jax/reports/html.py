"""Pieces of HTML: tables that sort, small plots, pictures inside the page."""

import html
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vaeiw_jax.reports.figures import COLOURS
from vaeiw_jax.reports.pages import embedded

escape = html.escape


@dataclass(frozen=True)
class Data:
    """A cell: what is shown (HTML), and the value it is sorted by."""

    shown: str
    value: float | str | None = None
    kind: str = ""


def plain(text: str, long: bool = False) -> Data:
    return Data(escape(text), text, "text long" if long else "text")


def figure(number: float, text: str | None = None) -> Data:
    return Data(escape(f"{number:,.1f}" if text is None else text), number)


def table(
    headings: Sequence[tuple[str, str]],
    rows: Sequence[Sequence[Data]],
    footer: Sequence[Sequence[str]] = (),
) -> str:
    """A table whose headings sort it.

    Args:
      headings: a title and a line below it for each column.
      rows: of cells.
      footer: rows of texts that stay below.
    """
    kinds = [row.kind for row in rows[0]] if rows else [""] * len(headings)
    head = "".join(
        f'<th scope="col" class="{"text" if kind.startswith("text") else ""}"><button type="button">{escape(title)}'
        f"{f'<small>{escape(below)}</small>' if below else ''}</button></th>"
        for (title, below), kind in zip(headings, kinds, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in rows)
    foot = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in footer
    )
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>'
        f"{f'<tfoot>{foot}</tfoot>' if foot else ''}</table></div>\n"
    )


def _cell(data: Data) -> str:
    value = "" if data.value is None else f' data-value="{escape(str(data.value))}"'
    return f'<td class="{data.kind}"{value}>{data.shown}</td>'


def command(line: str) -> str:
    """A command, broken between its words rather than inside them."""
    return " ".join(f"<span>{escape(shlex.quote(word))}</span>" for word in shlex.split(line))


def picture(content: bytes, kind: str, caption: str, name: str = "", wide: bool = False) -> str:
    described = escape(caption)
    identity = f' id="{escape(name)}"' if name else ""
    return (
        f'<figure{identity}{" class=wide" * wide}><img src="{embedded(content, kind)}" alt="{described}">'
        f"<figcaption>{described}</figcaption></figure>\n"
    )


_LEFT, _RIGHT, _WIDTH = 160, 24, 480


def _scale(low: float, high: float, start: float, end: float, value: float) -> float:
    return start + (value - low) / ((high - low) or 1.0) * (end - start)


def distribution(scores: Mapping[str, Sequence[float]], marks: Mapping[str, float]) -> str:
    """Each run a dot, a row for each method; marks are lines across, such as the human score."""
    values = [score for runs in scores.values() for score in runs] + list(marks.values())
    low, high = min(values), max(values)
    height = 34 * len(scores) + 46
    parts = []
    for title, at in marks.items():
        x = _scale(low, high, _LEFT, _WIDTH - _RIGHT, at)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="18" y2="{height - 28}" stroke="#888" stroke-dasharray="4 3"/>'
            f'<text x="{x:.1f}" y="12" text-anchor="middle">{escape(title)}</text>'
        )
    for row, (title, runs) in enumerate(scores.items()):
        y = 34 * row + 36
        colour = COLOURS[row % len(COLOURS)]
        parts.append(f'<text x="{_LEFT - 14}" y="{y + 4}" text-anchor="end">{escape(title)}</text>')
        for score in runs:
            x = _scale(low, high, _LEFT, _WIDTH - _RIGHT, score)
            parts.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{colour}" fill-opacity="0.65">'
                f"<title>{score:,.0f}</title></circle>"
            )
    parts.append(_ends(low, high, height - 8))
    return f'<svg class="plot" viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(parts)}</svg>\n'


def curve(lines: Mapping[str, Sequence[tuple[float, float]]], label: str) -> str:
    """Lines through points of positive height, drawn to a logarithmic scale, each with its name at its end."""
    points = [point for line in lines.values() for point in line]
    (x_low, x_high), (low, high) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))
    left, right, height = 64, _WIDTH - 90, 220
    low /= 1.2  # so that a round number just below the least is on the axis

    def level(value: float) -> float:
        return _scale(math.log(low), math.log(high), height - 34, 18, math.log(value))

    parts = [
        f'<path d="M{left},{level(tick):.1f}H{right}" stroke="#888" stroke-opacity="0.25"/>'
        f'<text x="{left - 8}" y="{level(tick) + 4:.1f}" text-anchor="end">{tick:,g}</text>'
        for tick in _ticks(low, high)
    ]
    labelled: list[float] = []
    for i, (title, line) in enumerate(lines.items()):
        places = [(_scale(x_low, x_high, left, right, x), level(y)) for x, y in line]
        colour = COLOURS[(i + 1) % len(COLOURS)]
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = places[-1]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>')
        beside = y if all(abs(y - other) > 14 for other in labelled) else max(labelled) + 15
        labelled.append(beside)
        parts.append(f'<text x="{x + 6:.1f}" y="{beside + 4:.1f}">{escape(title)}</text>')
    parts += [
        f'<text x="{left}" y="{height - 10}">{x_low:,.0f}</text>',
        f'<text x="{right}" y="{height - 10}" text-anchor="end">{x_high:,.0f} {escape(label)}</text>',
    ]
    return f'<svg class="plot" viewBox="0 0 {_WIDTH} {height}" role="img">{"".join(parts)}</svg>\n'


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis: powers of ten and, where those are few, twice and five times them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(powers) < 4 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high] or [low, high]


def _ends(low: float, high: float, y: float) -> str:
    return (
        f'<text x="{_LEFT}" y="{y}">{low:,.0f}</text>'
        f'<text x="{_WIDTH - _RIGHT}" y="{y}" text-anchor="end">{high:,.0f}</text>'
    )
