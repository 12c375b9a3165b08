"""`schema.compile`: where users look for it; the classes themselves are made above, in kwire.messages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwire.schema.model import Message


def compile(spec: Message) -> Any:
    """The class of a definition, with the surface of a generated one; the same class for the same definition.

    spec: from `load`, `parse` or `load_all`. Objects pickle: the definition travels with them.
    """
    # By name, like an entry point: definitions stand below messages and know nothing of classes.
    return import_module("kwire.messages.runtime").message_class(spec)
