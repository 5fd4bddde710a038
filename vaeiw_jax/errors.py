"""What a user can mend, said in a sentence."""

import difflib
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in what was asked for. The message says what was wrong, what was given, what would work."""


def unknown(kind: str, given: str, valid: Iterable[str]) -> UserError:
    """The error for a name that is not among the valid ones; it offers the nearest."""
    valid = list(valid)
    folded = {name.lower(): name for name in valid}
    near = difflib.get_close_matches(given.lower(), folded, n=3, cutoff=0.5)
    if near:
        return UserError(
            f"unknown {kind} {given!r}; did you mean {_alternatives(folded[name] for name in near)}?"
        )
    return UserError(f"unknown {kind} {given!r}; choose {_alternatives(sorted(valid))}")


def _alternatives(names: Iterable[str]) -> str:
    *others, last = (repr(name) for name in names)
    return f"{', '.join(others)} or {last}" if others else last
