"""V-06: ranges of a field without any of the message's valid versions."""

from __future__ import annotations

from collections.abc import Iterator

from kwire.schema.evolution.released import struct_paths
from kwire.schema.model import Field, Message
from kwire.schema.versions import Versions


def dead_ranges(new: Message, old: Message) -> Iterator[tuple[str, str, Versions]]:
    """Yield (path, attribute, range) of each such range in new that is not in old, whose own can stay.

    A message without valid versions has been removed and is ignored. A field's flexibleVersions may be `none` (T-22).
    """
    if not new.valid:
        return
    known = {(where, what) for where, what, _ in _dead(old)}
    for where, what, versions in _dead(new):
        if (where, what) not in known:
            yield where, what, versions


def _dead(message: Message) -> Iterator[tuple[str, str, Versions]]:
    for struct, path in struct_paths(message).items():
        for field in struct.fields:
            for what, versions in _field_ranges(field):
                if not message.valid.intersect(versions):
                    yield f"{path}.{field.name}", what, versions


def _field_ranges(field: Field) -> Iterator[tuple[str, Versions]]:
    yield "versions", field.versions
    if field.nullable:
        yield "nullableVersions", field.nullable
    if field.tag is not None:
        yield "taggedVersions", field.tagged
    if field.flexible:
        yield "flexibleVersions", field.flexible
