"""Bytes and records as views of the input.

The interpreters store position and size in place of bytes (`reading.VIEW`). Then a patch visits the fields that can
hold bytes, and replaces these placeholders with memoryviews. Fields that the version lacks, or that were not sent, keep
their default.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from kwire.plan.reading import VIEW
from kwire.schema.model import Message, Struct

Source = bytes | memoryview
Patch = Callable[[Any, Any], None]


def patch_for(message: Message, version: int) -> Patch | None:
    """Make patch(obj, source), which replaces the placeholders in a message of that version with slices of source.

    source: memoryview or bytes. Returns None if the version has no bytes fields.
    """
    return _patch(message.struct, version)


def _patch(struct: Struct, version: int) -> Patch | None:
    steps: list[Patch] = []
    for f in struct.fields:
        if version not in f.versions:
            continue
        if f.struct is not None:
            inner = _patch(f.struct, version)
            if inner is not None:
                steps.append(_each_element(f.attr, inner) if f.is_array else _nested(f.attr, inner))
        elif f.type in ("bytes", "records"):
            steps.append(_elements(f.attr) if f.is_array else _field(f.attr))
    if len(steps) < 2:
        return steps[0] if steps else None

    def patch(obj: object, source: Source) -> None:
        for step in steps:
            step(obj, source)

    return patch


def _field(attr: str) -> Patch:
    get, unpack, size = attrgetter(attr), VIEW.unpack, VIEW.size

    def patch(obj: object, source: Source) -> None:
        value = get(obj)
        if value is not None and len(value) == size:
            start, n = unpack(value)
            setattr(obj, attr, source[start : start + n])

    return patch


def _elements(attr: str) -> Patch:
    def patch(obj: object, source: Source) -> None:
        values = getattr(obj, attr)
        for i, value in enumerate(values or ()):
            if len(value) == VIEW.size:
                start, n = VIEW.unpack(value)
                values[i] = source[start : start + n]

    return patch


def _each_element(attr: str, inner: Patch) -> Patch:
    def patch(obj: object, source: Source) -> None:
        for element in getattr(obj, attr) or ():
            inner(element, source)

    return patch


def _nested(attr: str, inner: Patch) -> Patch:
    def patch(obj: object, source: Source) -> None:
        value = getattr(obj, attr)
        if value is not None:
            inner(value, source)

    return patch
