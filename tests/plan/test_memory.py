"""Memory of decoded messages."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import native, plan
from kwire.messages import registry
from kwire.schema.model import Field, Struct

ELEMENTS = 1000


def arrays(struct: Struct, version: int, above: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    """Find the arrays of structs of a version, with the structs and arrays around them."""
    for field in struct.fields:
        if field.struct is not None and version in field.versions:
            path = (*above, field)
            if field.is_array:
                yield path
            yield from arrays(field.struct, version, path)


def smallest(cls: Any, struct: Struct, version: int) -> Any:
    """Make an object of the fewest bytes."""
    made = cls()
    for field in struct.fields:
        if version in field.versions and version in field.nullable and field.tag is None:
            setattr(made, field.attr, None)
        elif field.type == "records":
            setattr(made, field.attr, b"")
    return made


def with_elements(cls: Any, path: tuple[Field, ...], version: int) -> Any:
    """Make a message with many elements in the last array of a path."""
    message = at = smallest(cls, cls.SPEC.struct, version)
    for field in path:
        assert field.struct is not None
        count = ELEMENTS if field is path[-1] else 1
        elements = [smallest(getattr(cls, field.struct.name), field.struct, version) for _ in range(count)]
        setattr(at, field.attr, elements if field.is_array else elements[0])
        at = elements[0]
    return message


@pytest.mark.slow
@pytest.mark.skipif(native.LEVEL is None, reason="no compiled code on this platform")
def test_a_message_takes_at_most_80_times_the_memory_of_its_bytes() -> None:
    largest = 0.0
    for name in registry.names():
        cls: Any = registry.get(name)
        version = cls.VALID_VERSIONS.highest
        codec = plan.codec(cls.SPEC, version, cls)
        for path in arrays(cls.SPEC.struct, version):
            wire = codec.encode(with_elements(cls, path, version))
            tracemalloc.start()
            message = codec.decode(wire)
            multiple = tracemalloc.get_traced_memory()[1] / len(wire)
            tracemalloc.stop()
            assert multiple < 80, f"{name}.{'.'.join(field.attr for field in path)}: {multiple:.0f} times"
            largest = max(largest, multiple)
            del message
    assert largest > 70  # else docs/plan.md says too much
