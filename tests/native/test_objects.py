"""Objects that compiled code creates: where their fields are, and what happens when they are elsewhere."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from tests.compiled import needs_compiled_code

from kwire import native, plan
from kwire.messages import FetchRequest
from kwire.native.objects import UnknownLayout, layout_of
from kwire.plan import layout_check, message_codec
from kwire.records import Record, TimestampType, read_batches, write_batch
from kwire.records.format import record as records

pytestmark = needs_compiled_code
Slots = Callable[[type], tuple[int, dict[str, int]]]

REQUEST = FetchRequest(rack_id="r", topics=[FetchRequest.FetchTopic(topic="t", topic_id=UUID(int=5))])
RECORD = Record(
    offset=5, timestamp=6, timestamp_type=TimestampType.CREATE_TIME, key=b"k", value=None, headers=[("h", b"")]
)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let this test find out again whether objects come out right."""
    for check, places in ((layout_check.fills_objects, (layout_check, message_codec)), (records.factory, (records,))):
        for place in places:
            monkeypatch.setattr(place, check.__wrapped__.__name__, functools.cache(check.__wrapped__))
    return monkeypatch


def test_objects_come_out_right_with_this_msgspec_and_python() -> None:
    """If this fails, objects have another layout: kwire decodes in plain Python until native/messages.c follows."""
    assert layout_check.fills_objects()
    assert records.factory() is not None
    for cls in (FetchRequest, FetchRequest.FetchTopic, Record):
        _, offsets = layout_of(cls, cls.__struct_fields__)
        assert sorted(offsets) == [16 + 8 * i for i in range(len(offsets))]
        assert cls.__basicsize__ == 16 + 8 * len(offsets)


def test_the_requirement_has_an_upper_bound() -> None:
    """A msgspec that nobody has tested may store the fields of objects elsewhere."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    (bounds,) = (found[1] for each in project["dependencies"] if (found := re.fullmatch(r"msgspec(.*)", each)))
    lowest, highest = (tuple(map(int, bound.split("."))) for bound in re.findall(r"[\d.]+", bounds))
    assert re.fullmatch(r">=[\d.]+,<[\d.]+", bounds)
    assert lowest <= tuple(map(int, msgspec.__version__.split(".")[:2])) < highest


def swapped(slots: Slots) -> Slots:
    """Exchange the offsets of two fields."""

    def found(cls: type) -> tuple[int, dict[str, int]]:
        allocator, offsets = slots(cls)
        for a, b in (("rows", "unknown_tagged_fields"), ("text", "number"), ("key", "value"), ("int", "is_safe")):
            if a in offsets and b in offsets:
                offsets[a], offsets[b] = offsets[b], offsets[a]
        return allocator, offsets

    return found


def missing(slots: Slots) -> Slots:
    """Give no offsets."""
    return lambda cls: (slots(cls)[0], {})


def outside(slots: Slots) -> Slots:
    """Move all fields after the end of the object."""
    return lambda cls: (slots(cls)[0], {name: offset + cls.__basicsize__ for name, offset in slots(cls)[1].items()})


def at_the_start(slots: Slots) -> Slots:
    """Put all fields in the same place."""
    return lambda cls: (slots(cls)[0], dict.fromkeys(slots(cls)[1], 16))


@pytest.mark.parametrize("changed", [swapped, missing, outside, at_the_start])
def test_other_layouts_are_noticed_and_plain_python_decodes(changed: Any, unchecked: pytest.MonkeyPatch) -> None:
    unchecked.setattr(native, "slots", changed(native.slots))
    with pytest.warns(RuntimeWarning, match="cannot create messages with msgspec .*, so plain Python does"):
        codec = plan.codec(FetchRequest.SPEC, 12, FetchRequest)
    assert codec.decode.__name__ == "_decode"
    wire = codec.encode(REQUEST)
    assert codec.decode(wire).topics[0].topic == "t"
    assert codec.decode(wire).encode(version=12) == wire
    with pytest.raises(ImportError, match="compiled code"):
        plan.codec(FetchRequest.SPEC, 12, FetchRequest, kernels=True)
    with pytest.warns(RuntimeWarning, match="cannot create records with msgspec"):
        assert records.factory() is None


@pytest.mark.parametrize("changed", [missing, outside, at_the_start])
def test_fields_outside_of_an_object_are_refused(changed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "slots", changed(native.slots))
    with pytest.raises(UnknownLayout, match="the fields of Record are not in its objects"):
        layout_of(Record, Record.__struct_fields__)


def test_records_are_read_and_written_without_the_factory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_batch([RECORD], keep_offsets=True)
    for module in ("default_batch", "legacy_batch", "builder"):
        monkeypatch.setattr(f"kwire.records.format.{module}.factory", lambda: None)
    assert write_batch([RECORD], keep_offsets=True) == data
    assert [record for batch in read_batches(data) for record in batch.records()] == [RECORD]
