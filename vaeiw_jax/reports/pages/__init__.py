"""Pages for reading: each one HTML file that needs no other and no network, in the look all of them share."""

import base64
import html
import string
from pathlib import Path

_HERE = Path(__file__).parent


def page(title: str, body: str, style: Path, script: Path) -> str:
    """A whole page.

    Args:
      title: of the window, as text.
      body: HTML.
      style: a CSS file, for what is this page's own.
      script: a JavaScript file.
    """
    return string.Template((_HERE / "page.html").read_text()).substitute(
        title=html.escape(title),
        style=(_HERE / "page.css").read_text() + style.read_text(),
        script=script.read_text(),
        body=body,
    )


def embedded(content: bytes, kind: str) -> str:
    """A file as an address that holds it; `kind` is its media type, such as image/png."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
