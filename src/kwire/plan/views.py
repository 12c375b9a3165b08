"""Bytes and records as views of the input.

The interpreters leave position and size where bytes will be (`reading.VIEW`), in whatever order the class has its
fields; then the objects are visited along the paths that can hold bytes, and each gets its memoryview. A field that
this version lacks, or that was not sent, keeps its default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwire.plan.reading import VIEW
from kwire.schema.model import Message, Struct

Patch = Callable[[Any, memoryview], None]


def patch_for(message: Message, version: int) -> Patch | None:
    """What gives a message of that version its views; None when it holds no bytes."""
    return _patch(message.struct, version)


def _patch(struct: Struct, version: int) -> Patch | None:
    blobs: list[str] = []
    arrays: list[str] = []
    nested: list[tuple[str, bool, Patch]] = []
    for f in struct.fields:
        if version not in f.versions:
            continue
        if f.struct is not None:
            inner = _patch(f.struct, version)
            if inner is not None:
                nested.append((f.attr, f.is_array, inner))
        elif f.type in ("bytes", "records"):
            (arrays if f.is_array else blobs).append(f.attr)
    if not (blobs or arrays or nested):
        return None

    def patch(obj: Any, view: memoryview) -> None:
        for attr in blobs:
            value = getattr(obj, attr)
            if value:
                start, size = VIEW.unpack(value)
                setattr(obj, attr, view[start : start + size])
        for attr in arrays:
            values = getattr(obj, attr)
            for i, value in enumerate(values or ()):
                start, size = VIEW.unpack(value)
                values[i] = view[start : start + size]
        for attr, is_array, inner in nested:
            value = getattr(obj, attr)
            if value is None:
                continue
            if is_array:
                for element in value:
                    inner(element, view)
            else:
                inner(value, view)

    return patch
