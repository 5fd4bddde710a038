"""Python objects by name: `package.module:qualified.name`, as entry points are written."""

import importlib
import re
from typing import Any

from vaeiw_jax.errors import UserError

_PATTERN = re.compile(r"\w+(\.\w+)*:[\w<>]+(\.[\w<>]+)*")


def is_object_name(name: str) -> bool:
    return _PATTERN.fullmatch(name) is not None


def object_name(thing: Any) -> str:
    """The name of a function or a class or, for any other object, of its class."""
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}:{named.__qualname__}"


def load_object(name: str) -> Any:
    """The object of that name, whose module is imported if need be."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in path.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"there is no {name} to import ({error}); put it at the top level of a module that "
            "Python finds, or give the object itself to Episode"
        ) from error
    return found
