"""Layouts of a plan and of the classes of its objects, as arrays of int64 for compiled code.

job       the addresses of the rows and of the layout of uuid.UUID
rows      the rows of the plan; the operand `layout` of STRUCT is the address of a layout, 0 for the pair of a frame
layout    class, its allocator, number of fields; then for each field: its offset in an object, and its default: the
          address of a value that cannot be changed, or 0 and the layout of a struct, or twice 0 for a list

Objects of these classes are allocated and filled as msgspec does it (`kwire.native.objects`). Each object gets its own
lists and structs.
"""

from __future__ import annotations

from array import array
from uuid import UUID, SafeUUID

from kwire.native.objects import Default, defaults_of, layout_of
from kwire.plan.rows import WORD, Plan

__all__ = ["Job", "frame_count"]


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
            rows[number][WORD["layout"]] = self._layout(cls)
        self._rows = array("q", [word for row in rows for word in row])
        self._words = array("q", (self._rows.buffer_info()[0], self._uuid_layout()))
        self.address = self._words.buffer_info()[0]

    def _layout(self, cls: type) -> int:
        if cls not in self._layouts:
            defaults = defaults_of(cls)
            allocator, offsets = layout_of(cls, [*defaults])
            words = [id(cls), allocator, len(defaults)]
            for default, offset in zip(defaults.values(), offsets, strict=True):
                words += offset, *self._default(default)
            self._layouts[cls] = array("q", words)
        return self._layouts[cls].buffer_info()[0]

    def _default(self, default: Default) -> tuple[int, int]:
        if default.factory is None:
            self._kept.append(default.value)
            return id(default.value), 0
        return (0, 0) if default.factory is list else (0, self._layout(default.factory))

    def _uuid_layout(self) -> int:
        allocator, (number, is_safe) = layout_of(UUID, ["int", "is_safe"])
        self._layouts[UUID] = array("q", [id(UUID), allocator, 2, number, 0, 0, is_safe, id(SafeUUID.unknown), 0])
        return self._layouts[UUID].buffer_info()[0]


def frame_count(plan: Plan) -> int:
    """Return how many structs and arrays of a plan are open at most, and what takes the message."""
    return 2 * max(len(path) for path in plan.paths) + 3
