"""Every message that Kafka wrote into tests/data, read and written by both interpreters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests import golden
from tests.plan.conftest import CodecOf

from kwire.errors import DecodeError
from kwire.messages import registry
from kwire.schema import Message

RELEASES = ("3.9.1", "4.4.0")


def struct_at(obj: Any, spec: Message, path: str) -> Any:
    """The struct at a path such as `topics[0].partitions[1]`, whose names are those of the JSON form."""
    attributes = {f.json_name: f.attr for s in (spec.struct, *spec.structs) for f in s.fields}
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        obj = obj[int(index)] if index else getattr(obj, attributes[name])
    return obj


def from_line(cls: Any, line: golden.Line) -> Any:
    """The object that a golden line describes: its JSON form and its unknown tagged fields."""
    obj = cls.from_json(line["json"], version=line["version"])
    for tag in line.get("unknown_tags", ()):
        unknown = struct_at(obj, cls.SPEC, tag["path"]).unknown_tagged_fields
        unknown.append((tag["tag"], bytes.fromhex(tag["hex"])))
        unknown.sort()
    return obj


@pytest.mark.sampled
@pytest.mark.requirement("S482-03")
@pytest.mark.requirement("W-05", "W-12", "W-20", "W-23", "W-26", "S482-02", "S482-05", "S482-20", "S482-62", "S482-66")
@pytest.mark.parametrize("release", RELEASES)
def test_every_message_is_read_and_written_as_kafka_has_it(codec_of: CodecOf, release: str) -> None:
    codecs: dict[tuple[str, int], Any] = {}
    count = 0
    for line in golden.lines(f"messages-{release}.jsonl.gz"):
        name, version, wire = line["message"], line["version"], golden.unpack(line["b64"])
        cls = registry.get(name, kafka=release)
        if (name, version) not in codecs:
            codecs[name, version] = codec_of(cls, version)
        codec, described = codecs[name, version], from_line(cls, line)
        assert wire is not None
        read = codec.decode(wire)
        assert read == described, f"{name} version {version}, {line['case']}"
        assert read.to_json(version=version) == line["json"]
        assert codec.encode(described) == wire
        assert codec.encode(read) == wire
        assert codec.encoded_size(read) == len(wire)
        seen, end = codec.decode_from(b"\xff" + wire + b"\xff", 1, views=True)
        assert (seen, end) == (described, 1 + len(wire))
        count += 1
    assert count == {"3.9.1": 2593, "4.4.0": 625}[release]


@pytest.mark.sampled
@pytest.mark.requirement("W-40", "W-43")
@pytest.mark.parametrize("release", RELEASES)
def test_every_cut_of_a_message_is_an_error_with_a_place(codec_of: CodecOf, release: str) -> None:
    """A cut can only be whole if nothing was cut off."""
    seen: set[tuple[str, int]] = set()
    for line in golden.lines(f"messages-{release}.jsonl.gz"):
        key, wire = (line["message"], line["version"]), golden.unpack(line["b64"])
        if line["case"] != "full" or key in seen or wire is None or len(wire) > 400:
            continue
        seen.add(key)
        codec = codec_of(registry.get(line["message"], kafka=release), line["version"])
        for cut in range(0, len(wire), 1 + len(wire) // 40):
            with pytest.raises(DecodeError) as caught:
                codec.decode(wire[:cut])
            assert 0 <= caught.value.position <= cut
