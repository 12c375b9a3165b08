"""`schema.compile`: the class of a definition.

Definitions are below messages and do not import them: the `kwire` package, which is above both, provides the function
that makes classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.schema.model import Message

__all__ = ["MessageClass", "compile", "provide_classes"]

MessageClass = Any
"""A class with the attributes of a definition, which type checkers do not know."""

_make_class: Callable[[Message], MessageClass] | None = None


def provide_classes(make_class: Callable[[Message], MessageClass]) -> None:
    """Set the function that `compile` calls."""
    global _make_class
    _make_class = make_class


def compile(spec: Message) -> MessageClass:
    """Return the class of a definition, with the API of a generated one; the same class for the same definition.

    spec: from `load`, `parse` or `load_all`. Objects pickle together with their definition.
    """
    assert _make_class is not None, "importing kwire provides it"
    return _make_class(spec)
