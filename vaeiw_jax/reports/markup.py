"""Pieces of HTML that the sections of the page are made of."""

import html

import numpy as np

from vaeiw_jax.reports import feature_pictures
from vaeiw_jax.reports.inspection_charts import Chart
from vaeiw_jax.reports.pages import embedded

_PNG = "image/png"
_SCALES = {"bits": feature_pictures.BITS_COLOURS, "difference": feature_pictures.DIFFERENCE_COLOURS}


def figure(image: np.ndarray, caption: str, alt: str = "", kind: str = "frame") -> str:
    """An image with a caption, which is HTML; `alt` is needed where there is none."""
    source = embedded(feature_pictures.png(image), _PNG)
    below = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure><img class="{kind}" src="{source}" alt="{html.escape(alt)}">{below}</figure>'


def chart(drawn: Chart) -> str:
    """A chart in the theme of the page."""
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{embedded(drawn.dark, _PNG)}">'
        f'<img src="{embedded(drawn.light, _PNG)}" alt="{html.escape(drawn.alt)}"></picture>'
    )


def scale(colours: str, low: str, high: str) -> str:
    """What the colours of `bits` or `difference` mean."""
    source = embedded(feature_pictures.png(feature_pictures.scale(_SCALES[colours])), _PNG)
    return f'<div class="scale">{low}<img src="{source}" alt="">{high}</div>'


def tile(number: str, label: str) -> str:
    """A number that stands out; both are HTML."""
    return f'<div class="tile"><b>{number}</b><small>{label}</small></div>'


def count(number: float) -> str:
    return f"{number:,.0f}"


def plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
