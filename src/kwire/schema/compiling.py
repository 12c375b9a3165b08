"""`schema.compile`: the class of a definition.

`schema` does not import `messages`, which is above it. The package `kwire`, above both, makes the class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kwire

if TYPE_CHECKING:
    from kwire.schema.model import Message

__all__ = ["MessageClass", "compile"]

MessageClass = Any
"""A class with an attribute for each field of a definition; type checkers do not know them."""


def compile(spec: Message) -> MessageClass:
    """Return the class of a definition, with the API of a generated one; the same class for the same definition.

    spec: from `load`, `parse` or `load_all`. Objects pickle together with their definition.
    """
    return kwire._message_class(spec)
