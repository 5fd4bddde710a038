"""Files damaged in every way that a disk, a crash or an editor may damage them."""

from collections.abc import Iterator
from pathlib import Path

FLIPS = 12
"""Places in a file at which a bit is flipped, one at a time."""


def damaged(path: Path, flips: int = FLIPS) -> Iterator[str]:
    """Damages a file in one way after another, naming each; in the end it is as it was."""
    whole = path.read_bytes()
    contents = {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "zeros": bytes(len(whole)),
        "null": b"null",
        "list": b"[]",
        "object": b"{}",
    }
    for i in range(flips):
        flipped = bytearray(whole)
        flipped[(2 * i + 1) * len(whole) // (2 * flips)] ^= 1 << i % 8
        contents[f"bit {i % 8} of byte {(2 * i + 1) * len(whole) // (2 * flips)} flipped"] = bytes(
            flipped
        )
    try:
        for name, content in contents.items():
            path.write_bytes(content)
            yield name
    finally:
        path.write_bytes(whole)
