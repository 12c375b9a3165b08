"""The unknown tagged fields of a struct: nearly always none, so the list is created on first access.

A decoder creates an object for each struct of a message; creating an empty list for each took a third of the time to
decode a FetchResponse. So all structs without unknown fields share one empty list, which the attribute replaces on
first access.
"""

from __future__ import annotations

from typing import Any

__all__ = ["NO_UNKNOWN_FIELDS", "Slot", "UnknownFieldsAttribute"]

Slot = Any
"""A member descriptor, for which Python has no type."""


class NoUnknownFields(list[tuple[int, bytes]]):
    """The shared empty list. It is a subclass because msgspec copies every default of type list."""

    __slots__ = ()


NO_UNKNOWN_FIELDS: list[tuple[int, bytes]] = NoUnknownFields()


class UnknownFieldsAttribute:
    """Descriptor that replaces the shared empty list by a new one. The codec uses the slot directly."""

    __slots__ = ("slot",)

    def __init__(self, slot: Slot) -> None:
        self.slot = slot

    def __get__(self, struct: object, owner: type | None = None) -> object:
        if struct is None:
            return self
        value = self.slot.__get__(struct)
        if value.__class__ is NoUnknownFields:
            value = []
            self.slot.__set__(struct, value)
        return value

    def __set__(self, struct: object, value: object) -> None:
        self.slot.__set__(struct, value)
