"""Schema registries: values written with Confluent's serializers as Arrow columns, and back.

    from kwire.schemas import Registry

    Registry("http://localhost:8081").latest("orders-value")

Names import their modules on first access.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.schemas.registered import Reference as Reference
    from kwire.schemas.registered import RegisteredSchema as RegisteredSchema
    from kwire.schemas.registry import Registry as Registry
    from kwire.schemas.registry import subject_name as subject_name
    from kwire.schemas.wire_format import schema_ids as schema_ids

_HOMES = {
    "Reference": "kwire.schemas.registered",
    "RegisteredSchema": "kwire.schemas.registered",
    "Registry": "kwire.schemas.registry",
    "schema_ids": "kwire.schemas.wire_format",
    "subject_name": "kwire.schemas.registry",
}

__all__ = [
    "Reference",
    "RegisteredSchema",
    "Registry",
    "schema_ids",
    "subject_name",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
