"""The searches by name, each with all that the rest of the program asks about it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vaeiw_jax.errors import UserError, unknown
from vaeiw_jax.object_names import is_object_name, load_object

if TYPE_CHECKING:
    from vaeiw_jax.planning.search import Search

SearchFunction = Callable[["Search"], str]
"""Grows `search.tree` from its root, receives all it asked for, and returns why it ended: one of `search.ENDINGS`."""


@dataclass(frozen=True)
class SearchEntry:
    """A search in the registry."""

    name: str
    title: str
    """In tables and videos."""
    function: SearchFunction | str
    """Or its name, `package.module:function`: the module is imported when it is first needed."""
    looks_ahead: bool = True
    """Whether it generates nodes; if not, features and budget change nothing."""
    labels_solved: bool = True
    """Whether it labels nodes as solved where it does not go on."""

    def load(self) -> SearchFunction:
        if not isinstance(self.function, str):
            return self.function
        function: SearchFunction = load_object(self.function)
        if not callable(function):
            raise UserError(f"{self.function} is not a function; a planner is one of a Search")
        return function


SEARCHES: dict[str, SearchEntry] = {
    entry.name: entry
    for entry in (
        SearchEntry("rollout_iw", "RolloutIW", "vaeiw_jax.planning.rollout_iw:rollout_iw"),
        SearchEntry("iw", "IW", "vaeiw_jax.planning.iw:iw", labels_solved=False),
        SearchEntry(
            "iw_by_reward",
            "IW by reward",
            "vaeiw_jax.planning.iw_by_reward:iw_by_reward",
            labels_solved=False,
        ),
        SearchEntry(
            "random", "random play", "vaeiw_jax.planning.search:no_search", looks_ahead=False
        ),
    )
}
"""To add one, write a function like `iw.iw` in a file of its own and a line here, or call `register_search`."""

_OWN = frozenset(SEARCHES)


def register_search(entry: SearchEntry) -> None:
    """Makes a search known by name to the whole program, for as long as this process lives."""
    if entry.name in _OWN:
        raise UserError(f"there is a planner {entry.name!r} already; choose another name")
    if not entry.name.isidentifier():
        raise UserError(f"the name of a planner is like a variable's, not {entry.name!r}")
    SEARCHES[entry.name] = entry


def lookup_search(planner: str) -> SearchEntry:
    """The entry of a name, or of `package.module:function` for a search that is not registered."""
    entry = SEARCHES.get(planner)
    if entry is None and is_object_name(planner):
        entry = SearchEntry(planner, planner.rpartition(":")[2], planner)
    if entry is None:
        raise unknown("planner", planner, SEARCHES)
    return entry
