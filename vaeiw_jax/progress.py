"""How a job is asked to stop, and how it says how far it is."""

from collections.abc import Callable
from typing import NamedTuple


class Progress(NamedTuple):
    """How far a job is."""

    done: int
    total: int
    text: str = ""


Interrupted = Callable[[], bool]
"""Asked now and then; once it returns True, the job saves what it has and returns None."""

Tell = Callable[[Progress], object]
"""Called with the progress at the start, and after every step."""


def never() -> bool:
    return False


def silent(progress: Progress) -> None:
    pass
