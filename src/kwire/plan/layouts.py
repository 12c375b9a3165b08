"""What `native/messages.c` needs to know of a plan and of the classes of its objects, as arrays of int64.

job       the addresses of the rows and of the constants; bytes of output to reserve for eight of input when encoding;
          the addresses of the layout of uuid.UUID and of NO_ELEMENTS
rows      those of the plan; the last operand of STRUCT is the address of a layout, 0 for the pair of a frame
layout    class, its allocator, number of fields; then for each field: its offset in an object, and its default, 0 for a
          new list

Objects of these classes are allocated and filled as msgspec does it: an object has room for a reference at the offset
of each field, which the type's member definitions state. Defaults and empty arrays are shared by all objects; the
attributes of those that may change (lists and structs) become SharedDefaults, which replace them on first access.
"""

from __future__ import annotations

from array import array
from types import MemberDescriptorType
from typing import Any
from uuid import UUID, SafeUUID

import msgspec

from kwire import native
from kwire.plan.rows import OPERANDS, Plan

__all__ = ["Job", "frame_count"]

ENCODE_EIGHTHS = 9
"""Tight, because unneeded large blocks cost page faults."""
LAST_OPERAND = OPERANDS - 1


class _NoElements(list[Any]):
    """The list that stands for all empty ones; a subclass, so that it can refuse changes."""

    __slots__ = ()

    def _refuse(self, *args: object, **named: object) -> None:
        raise TypeError("the shared empty list cannot be changed: get it from the attribute of its struct")

    append = extend = insert = __iadd__ = __setitem__ = _refuse  # type: ignore[assignment]


NO_ELEMENTS = _NoElements()


class Job:
    """The job of a plan. It has to be kept while its address is in use."""

    def __init__(self, plan: Plan, classes: tuple[type, ...]) -> None:
        """classes: of the message; of a frame: of the header and of the body."""
        self._layouts: dict[type, array[int]] = {}
        self._kept: list[object] = []
        rows = [list(row) for row in plan.rows]
        messages = iter(classes)
        for number, name in plan.structs.items():
            if not plan.paths[number] and not plan.fields[number]:
                cls = message = next(messages)
            else:
                cls = getattr(message, name)
            rows[number][LAST_OPERAND] = self._layout(cls)
        self._rows = array("q", [word for row in rows for word in row])
        self._constants = array("b", plan.pool + bytes(8))
        addresses = self._rows.buffer_info()[0], self._constants.buffer_info()[0]
        words = *addresses, ENCODE_EIGHTHS, self._uuid_layout(), id(NO_ELEMENTS)
        self._words = array("q", words)  # never replaced: its address is in use
        self.address = self._words.buffer_info()[0]

    def _layout(self, cls: type) -> int:
        if cls not in self._layouts:
            offsets = {name: offset for base in cls.__mro__ for name, offset in native.slots(base)[1].items()}
            fields = msgspec.structs.fields(cls)
            words = [id(cls), native.slots(cls)[0], len(fields)]
            for field in fields:
                default = _shared_default(cls, field, offsets[field.name])
                self._kept.append(default)
                words += offsets[field.name], 0 if default is msgspec.NODEFAULT else id(default)
            self._layouts[cls] = array("q", words)
        return self._layouts[cls].buffer_info()[0]

    def _uuid_layout(self) -> int:
        allocator, offsets = native.slots(UUID)
        unsafe = id(SafeUUID.unknown)
        self._layouts[UUID] = array("q", [id(UUID), allocator, 2, offsets["int"], 0, offsets["is_safe"], unsafe])
        return self._layouts[UUID].buffer_info()[0]


def _shared_default(cls: type, field: msgspec.structs.FieldInfo, offset: int) -> object:
    """Return the default of a field, NODEFAULT if each object needs a new list.

    If it may change, it is shared, and the attribute of the class becomes a SharedDefault.
    """
    factory = field.default_factory
    if factory is msgspec.NODEFAULT:
        return field.default
    owner = next(base for base in cls.__mro__ if field.name in vars(base))
    attribute = vars(owner)[field.name]
    if isinstance(attribute, MemberDescriptorType):
        attribute = native.shared_default(attribute, offset, factory, NO_ELEMENTS if factory is list else None)
        setattr(owner, field.name, attribute)
    return attribute.shared if isinstance(attribute, native.SharedDefault) else msgspec.NODEFAULT


def frame_count(plan: Plan) -> int:
    """Return how many structs and arrays of a plan are open at most, and what takes the message."""
    return 2 * max(len(path) for path in plan.paths) + 3
