"""Messages in records: all such lines of the golden files, and invalid ones."""

from __future__ import annotations

import pytest
from tests import golden

from kwire.errors import DecodeError, EncodeError, Malformed, Truncated, UnsupportedVersion
from kwire.messages import registry
from kwire.protocol import read_metadata_record, read_prefixed, write_metadata_record, write_prefixed


@pytest.mark.requirement("S482-02")
@pytest.mark.parametrize("release", ["3.9.1", "4.4.0"])
def test_every_framed_message_of_kafka(release: str) -> None:
    kinds: dict[str, int] = {}
    for line in golden.lines(f"messages-{release}.jsonl.gz"):
        framed, body, version = golden.unpack(line.get("framed_b64")), golden.unpack(line["b64"]), line["version"]
        if framed is None or body is None:
            continue
        cls = registry.get(line["message"], kafka=release)
        message = cls.decode(body, version=version)
        if line["kind"] == "metadata":
            module = "storage" if line["message"].startswith("Remote") else "metadata"
            assert read_metadata_record(framed, module=module, kafka=release) == (message, version)
            assert write_metadata_record(message, version) == framed
        else:
            assert read_prefixed(cls, framed) == (message, version)
            assert write_prefixed(message, version) == framed
        kinds[line["kind"]] = kinds.get(line["kind"], 0) + 1
    assert kinds["metadata"] > 20
    assert sum(kinds.values()) > 100


def test_metadata_records_that_are_none() -> None:
    good = write_metadata_record(registry.get("NoOpRecord")(), 0)
    assert read_metadata_record(good)[1] == 0
    for frame_version in (b"\0", b"\2", b"\x80\x01"):
        with pytest.raises(UnsupportedVersion, match="frame version"):
            read_metadata_record(frame_version + good[1:])
    with pytest.raises(UnsupportedVersion):
        read_metadata_record(b"\1\xff\x7f\0\0")  # an unknown record type
    with pytest.raises(UnsupportedVersion):
        read_metadata_record(good[:2] + b"\x05\0")
    with pytest.raises(Malformed, match="at most 32767"):
        read_metadata_record(b"\1\x80\x80\x02\0\0")
    with pytest.raises(Malformed, match="1 byte remaining"):
        read_metadata_record(good + b"\0")
    for cut in range(len(good)):
        with pytest.raises(DecodeError):
            read_metadata_record(good[:cut])
    with pytest.raises(EncodeError, match="no api key"):
        write_metadata_record(registry.get("RequestHeader")(), 1)


def test_prefixed_messages_that_are_none() -> None:
    cls = registry.get("ConsumerProtocolSubscription")
    good = write_prefixed(cls(), 1)
    assert read_prefixed(cls, good) == (cls(), 1)
    for short in range(2):
        with pytest.raises(Truncated, match="version of 2 bytes"):
            read_prefixed(cls, good[:short])
    with pytest.raises(UnsupportedVersion):
        read_prefixed(cls, b"\x7f\xff" + good[2:])
    with pytest.raises(UnsupportedVersion):
        read_prefixed(cls, b"\xff\xff" + good[2:])
    with pytest.raises(Malformed, match="1 byte remaining"):
        read_prefixed(cls, good + b"\0")
    key = registry.get("OffsetCommitKey", kafka="4.4.0")
    framed = write_prefixed(key(group="g", topic="t"), 0)
    assert read_prefixed(key, framed)[0].group == "g"  # type: ignore[attr-defined]
    with pytest.raises(Malformed, match="record type 99"):
        read_prefixed(key, b"\0\x63" + framed[2:])
