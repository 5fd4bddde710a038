"""Templates become pages: each one HTML file that needs no other and no network."""

import base64
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from vaeiw_jax.reports import charts, images

FILM_BYTES = 24_000_000
"""What a page may hold of films; further ones it links to."""

TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=jinja2.select_autoescape(["html", "svg"]),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def render(template: str, **values: Any) -> str:
    return TEMPLATES.get_template(template).render(values)


def plural(number: int, noun: str, nouns: str = "") -> str:
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def ended_by(record: Mapping[str, Any]) -> str:
    """What ended a run, in words: `action_limit` is "action limit"."""
    return str(record["stop"]).replace("_", " ")


def embedded(content: bytes, kind: str) -> str:
    """A file as an address that holds it; `kind` is its media type, such as image/png."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _png(image: np.ndarray) -> str:
    return embedded(images.png(image), "image/png")


def _svg(chart: charts.Chart, dark: bool = False) -> str:
    return embedded(chart.svg(charts.DARK if dark else charts.LIGHT), "image/svg+xml")


TEMPLATES.filters.update(
    number=format, plural=plural, png=_png, svg=_svg, words=shlex.split, quoted=shlex.quote
)
TEMPLATES.globals.update(light=charts.LIGHT._asdict(), dark=charts.DARK._asdict())


@dataclass(frozen=True)
class Film:
    source: str
    caption: str


class Films:
    """Films go into the page while there is room, and are linked to from then on.

    Args:
      output: the folder of the page.
    """

    def __init__(self, output: Path):
        self._output = output
        self._room = FILM_BYTES

    def show(self, path: Path, caption: str) -> Film:
        size = path.stat().st_size
        if size > self._room:
            return Film(Path(os.path.relpath(path, self._output)).as_posix(), caption)
        self._room -= size
        return Film(embedded(path.read_bytes(), "video/mp4"), caption)
