"""Annotations: every byte with its field, type and value."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests import golden
from tests.plan.definitions import Everything, FooResponse, Probe

from kwire import plan
from kwire.errors import Truncated
from kwire.messages import registry


def codec(cls: Any, version: int) -> plan.Codec:
    return plan.codec(cls.SPEC, version, cls, kernels=False)


def test_the_example_of_kip_482_byte_by_byte() -> None:
    annotation = codec(FooResponse, 9).annotate(bytes.fromhex("0200070100030368690100040461626" + "3"))
    assert [(n.start, n.end, n.path, n.type, n.value) for n in annotation.notes] == [
        (0, 1, ("foos",), "count", 1),
        (1, 3, ("foos", 0, "baz"), "int16", 7),
        (3, 4, ("foos", 0), "count of tagged fields", 1),
        (4, 6, ("foos", 0), "tag 0, size", 3),
        (6, 9, ("foos", 0, "bar"), "string", "hi"),
        (9, 10, (), "count of tagged fields", 1),
        (10, 12, (), "tag 0, size", 4),
        (12, 16, ("user_agent",), "string", "abc"),
    ]
    assert annotation.value == FooResponse(user_agent="abc", foos=[FooResponse.Foo(bar="hi", baz=7)])
    assert annotation.error is None


def test_lists_markers_unknown_fields_and_uuids() -> None:
    obj = Probe(u=UUID(int=5), isr=[1, 2], t2=Probe.Ns(p="x"), unknown_tagged_fields=[(9, b"\xab")])
    notes = codec(Probe, 1).annotate(codec(Probe, 1).encode(obj)).notes
    found = {(n.path, n.type): n.value for n in notes}
    assert found[("u",), "uuid"] == UUID(int=5)
    assert found[("isr", 1), "int32"] == 2
    assert found[("t2",), "presence"] == "present"
    assert found[("t2", "p"), "string"] == "x"
    assert found[("unknown_tagged_fields", 0), "unknown tagged field"] == b"\xab"


@pytest.mark.sampled
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_notes_cover_every_byte_once_and_in_order(release: str) -> None:
    seen: set[tuple[str, int, str]] = set()
    for line in golden.lines(f"messages-{release}.jsonl.gz"):
        key = line["message"], line["version"], line["case"]
        wire = golden.unpack(line["b64"])
        if key in seen or wire is None or len(wire) > 2000:
            continue
        seen.add(key)
        cls = registry.get(line["message"], kafka=release)
        annotation = codec(cls, line["version"]).annotate(wire)
        assert annotation.error is None
        assert annotation.value == codec(cls, line["version"]).decode(wire)
        position = 0
        for note in annotation.notes:
            assert note.start == position < note.end
            position = note.end
        assert position == len(wire)


def test_an_error_ends_the_notes() -> None:
    whole = codec(Everything, 1).encode(Everything(onestring="abc"))
    for cut in range(len(whole)):
        annotation = codec(Everything, 1).annotate(whole[:cut])
        assert isinstance(annotation.error, Truncated)
        assert annotation.value is None
        assert all(note.end <= cut for note in annotation.notes)


def test_frames_are_annotated_from_their_length() -> None:
    header, metadata = registry.get("RequestHeader"), registry.get("MetadataRequest")
    frames = plan.frame_codec(header.SPEC, 2, header, metadata.SPEC, 9, metadata, kernels=False)
    wire = frames.encode((header(client_id="me", correlation_id=5), metadata()))
    notes = frames.annotate(wire).notes
    assert (notes[0].type, notes[0].value, notes[0].end) == ("frame length", len(wire) - 4, 4)
    assert [n.path for n in notes[1:5]] == [
        ("request_api_key",), ("request_api_version",), ("correlation_id",), ("client_id",),
    ]  # fmt: skip
