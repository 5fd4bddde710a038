"""Episodes, emulator processes, records of runs, films, collected screens."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaeiw_jax.playing.collecting import collect
    from vaeiw_jax.playing.runs import play

__all__ = ["collect", "play"]


def __getattr__(name: str) -> Any:
    """Loads what is asked for: emulator processes import this package too, and need none of it."""
    if name == "collect":
        from vaeiw_jax.playing.collecting import collect

        return collect
    if name == "play":
        from vaeiw_jax.playing.runs import play

        return play
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
