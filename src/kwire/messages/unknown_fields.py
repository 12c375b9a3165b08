"""The unknown tagged fields of a struct: nearly always none, and then no list is made until somebody asks for it.

A decoder makes one object for each struct of a message; an empty list in each of them was a third of the time of
reading a FetchResponse. So all structs without unknown fields share one empty list, and the attribute gives each its
own at the first reading.
"""

from __future__ import annotations

from typing import Any

__all__ = ["NO_UNKNOWN_FIELDS", "UnknownFieldsAttribute"]


class NoUnknownFields(list[tuple[int, bytes]]):
    """The shared empty list. A class of its own, because msgspec makes a new list for every default that is a list."""

    __slots__ = ()


NO_UNKNOWN_FIELDS: list[tuple[int, bytes]] = NoUnknownFields()


class UnknownFieldsAttribute:
    """Stands before the slot: gives a list of the struct's own in place of the shared one. The codec sees the slot."""

    __slots__ = ("slot",)

    def __init__(self, slot: Any) -> None:
        self.slot = slot

    def __get__(self, struct: object, owner: type | None = None) -> Any:
        if struct is None:
            return self
        value = self.slot.__get__(struct)
        if value.__class__ is NoUnknownFields:
            value = []
            self.slot.__set__(struct, value)
        return value

    def __set__(self, struct: object, value: Any) -> None:
        self.slot.__set__(struct, value)
