"""What a user can mend, said in a sentence."""

import difflib
import errno
from collections.abc import Iterable


class UserError(ValueError):
    """A mistake in what was asked for. The message says what was wrong, what was given, what would work."""


def describe(error: OSError) -> str:
    """What the system refused, and what to do about it where that is known."""
    reason = error.strerror or str(error) or type(error).__name__
    path = error.filename
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return (
                f"no space left{f' to write {path}' if path else ''}; make some and run the same command again: "
                "what was recorded before is safe"
            )
        case errno.EROFS if path:
            return f"{path} cannot be written ({reason}); choose another --workdir"
        case errno.EACCES | errno.EPERM if path:
            return f"no permission to use {path}; change its permissions, or give another place"
    return f"{path}: {reason}" if path else reason


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
