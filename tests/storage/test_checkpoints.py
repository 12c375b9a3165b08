"""Checkpoint files, partition.metadata and meta.properties."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import LogError, Malformed
from kwire.identifiers import parse_uuid
from kwire.log import LeaderEpoch, LogDirectory
from kwire.storage.checkpoints import (
    end_offset_for,
    parse_leader_epochs,
    parse_offset_checkpoint,
    parse_partition_metadata,
    parse_properties,
    render_clean_shutdown,
    render_leader_epochs,
    render_offset_checkpoint,
    render_partition_metadata,
    render_properties,
)
from tests.log.expected import ARCHIVES


@pytest.mark.requirement("F-01", "F-02")
def test_offset_checkpoints_are_lines_of_topic_partition_and_offset() -> None:
    assert parse_offset_checkpoint(b"0\n2\ntrimmed 0 555\na.b-c\t12  9223372036854775807\n") == {
        ("trimmed", 0): 555,
        ("a.b-c", 12): (1 << 63) - 1,
    }
    assert parse_offset_checkpoint(b"0\n1\nt 0 -9223372036854775808\n") == {("t", 0): -1 << 63}  # as Long.parseLong
    assert parse_offset_checkpoint(b"") == {}
    assert parse_offset_checkpoint(b"0\n0\n") == {}


@pytest.mark.parametrize(
    ("data", "what", "position"),
    [
        (b"1\n0\n", "unrecognised checkpoint version '1'", 0),
        (b"zero\n0\n", "unrecognised", 0),
        (b"0\nmany\n", "number of entries is 'many'", 2),
        (b"0\n2\nt 0 1\n", "has 1 entries, expected 2", 10),
        (b"0\n1\nt 0 1\nt 1 1\n", "has 2 entries, expected 1", 16),
        (b"0\n1\nt 0\n", "expected 'topic partition offset', found 't 0'", 4),
        (b"0\n1\nt 0 9223372036854775808\n", "is not a number", 4),
        (b"0\n1\nt 0 -9223372036854775809\n", "is not a number", 4),
        (b"0\n1\nt 0 0x1\n", "is not a number", 4),
        (b"0\n1\nt\xff 0 1\n", "UTF-8", 5),
        (b"0", "has 0 entries, expected -1", 1),
    ],
)
@pytest.mark.requirement("F-02")
def test_a_corrupt_checkpoint_is_reported_with_its_line(data: bytes, what: str, position: int) -> None:
    with pytest.raises(Malformed, match=what) as caught:
        parse_offset_checkpoint(data)
    assert caught.value.position == position


@pytest.mark.requirement("F-04")
def test_leader_epochs_must_increase() -> None:
    data = b"0\n3\n0 0\n2 3639\n4 7015\n"
    assert parse_leader_epochs(data) == [
        LeaderEpoch(leader_epoch=e, start_offset=s) for e, s in [(0, 0), (2, 3639), (4, 7015)]
    ]
    without_records = parse_leader_epochs(b"0\n2\n1 5\n2 5\n")
    assert [each.start_offset for each in without_records] == [5, 5]
    for wrong in (b"0\n2\n2 0\n1 5\n", b"0\n2\n2 0\n2 5\n", b"0\n2\n1 7\n2 5\n", b"0\n2\n1 7\n2 6\n"):
        with pytest.raises(Malformed, match="must increase"):
            parse_leader_epochs(wrong)


@pytest.mark.requirement("F-05")
def test_end_offsets_of_leader_epochs_equal_kafkas() -> None:
    entries = parse_leader_epochs(b"0\n3\n2 10\n4 20\n7 30\n")
    responses = {epoch: end_offset_for(epoch, entries, 99) for epoch in (-1, 0, 2, 3, 4, 6, 7, 8)}
    assert responses == {
        -1: (-1, -1), 0: (0, 10), 2: (2, 20), 3: (2, 20), 4: (4, 30), 6: (4, 30), 7: (7, 99), 8: (-1, -1),
    }  # fmt: skip
    assert end_offset_for(1, [], 99) == (-1, -1)


def test_topic_ids_and_properties_of_real_directories_are_read(kafka_logs: dict[str, Path]) -> None:
    directory = LogDirectory(kafka_logs["modern"] / "data")
    assert directory.meta_properties["cluster.id"] == "PJuiyMRnSBisYdqR0oiR-A"
    assert directory.meta_properties["node.id"] == "1"
    assert directory.is_clean_shutdown
    assert not LogDirectory(kafka_logs["unclean"] / "killed" / "data").is_clean_shutdown
    assert LogDirectory(kafka_logs["legacy"] / "data").meta_properties["broker.id"] == "0"
    ids = {log.topic_id for (topic, _), log in directory.items() if topic == "orders"}
    assert ids == {parse_uuid("F4VtuKJYR4CXO_1Lm2b8jg")}
    assert LogDirectory(kafka_logs["legacy"] / "data")["v0", 0].topic_id is None


@pytest.mark.parametrize("archive", ARCHIVES)
def test_leader_epochs_of_real_directories_equal_those_of_the_batches(
    kafka_logs: dict[str, Path], archive: str
) -> None:
    for log in LogDirectory(kafka_logs[archive] / "data").values():
        if log.topic.startswith("compacted") or log.topic == "mixed-format":
            continue  # the cleaner removes batches, and older formats clear the cache
        seen: dict[int, int] = {}
        for segment in log.segments:
            for header in segment.headers():
                if header.magic == 2:
                    seen.setdefault(header.leader_epoch, max(header.stored_offset, log.log_start_offset))
        known = {each.leader_epoch: each.start_offset for each in log.leader_epochs}
        assert {epoch: known.get(epoch) for epoch in seen} == seen, log


def test_corrupt_partition_files_are_reported(kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").touch()
    (folder / "partition.metadata").write_text("version: 7\ntopic_id: x")
    (folder / "leader-epoch-checkpoint").write_text("0\n1\n")
    log = LogDirectory(tmp_path)["t", 0]
    with pytest.raises(LogError, match="unrecognised version '7'") as caught:
        _ = log.topic_id
    assert caught.value.file == str(folder / "partition.metadata")
    with pytest.raises(LogError, match="has 0 entries, expected 1") as caught:
        _ = log.leader_epochs
    assert caught.value.file == str(folder / "leader-epoch-checkpoint")
    assert list(log.read()) == []


def test_partition_metadata_and_properties_round_trip() -> None:
    assert parse_partition_metadata(b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA").int == 0
    for wrong in (b"", b"version: 0", b"version: 0\ntopic_id: AAAA", b"version: 0\ntopic_id: \xff\xff"):
        with pytest.raises(Malformed):
            parse_partition_metadata(wrong)
    assert parse_properties(b"#c\n! d\n a = b=c \nkey\\:x=v\n\n") == {"a": "b=c", "key:x": "v"}
    continued = b"# no \\\na: one \\\n   two\nb three\\u0041\\tfour\nc=\\\\\nd\ne=last\\"
    assert parse_properties(continued) == {"a": "one two", "b": "threeA\tfour", "c": "\\", "d": "", "e": "last"}


@given(st.binary(max_size=80) | st.text(alphabet="0123456789 t-\n\t\r\x0b", max_size=60).map(str.encode))
def test_random_bytes_are_entries_or_malformed(data: bytes) -> None:
    for parse in (parse_offset_checkpoint, parse_leader_epochs, parse_partition_metadata, parse_properties):
        with suppress(Malformed):
            parse(data)


# ---- written


@pytest.mark.parametrize("archive", ["modern", "legacy", "unclean/killed"])
@pytest.mark.requirement("F-01", "F-02", "F-04")
def test_checkpoints_equal_the_brokers(kafka_logs: dict[str, Path], archive: str) -> None:
    data = kafka_logs[archive.split("/")[0]] / "/".join([*archive.split("/")[1:], "data"])
    seen = 0
    for path in sorted(data.glob("*/leader-epoch-checkpoint")):
        assert render_leader_epochs(parse_leader_epochs(path.read_bytes())) == path.read_bytes()
        seen += 1
    for path in sorted(data.glob("*/partition.metadata")):
        assert render_partition_metadata(parse_partition_metadata(path.read_bytes())) == path.read_bytes()
        seen += 1
    for path in sorted(data.glob("*-offset-checkpoint")):
        original = path.read_bytes() or b"0\n0\n"
        rendered = render_offset_checkpoint(parse_offset_checkpoint(original))
        assert rendered.splitlines() == [*original.splitlines()[:2], *sorted_entries(original)]
        assert len(rendered) == len(original)
        seen += 1
    assert seen > 10


def sorted_entries(data: bytes) -> list[bytes]:
    def key(line: bytes) -> tuple[str, int]:
        topic, partition, _ = line.decode().split()
        return topic, int(partition)

    return sorted(data.splitlines()[2:], key=key)


@pytest.mark.parametrize("archive", ["modern", "modern44", "unclean/killed"])
@pytest.mark.requirement("F-01")
def test_meta_properties_equal_the_brokers(kafka_logs: dict[str, Path], archive: str) -> None:
    data = kafka_logs[archive.split("/")[0]] / "/".join([*archive.split("/")[1:], "data"])
    original = (data / "meta.properties").read_bytes()
    date = original.decode().splitlines()[1].removeprefix("#")
    written = datetime.strptime(date, "%a %b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC)
    assert render_properties(parse_properties(original), written) == original


def test_special_characters_in_properties_are_escaped() -> None:
    properties = {"a b": " x=y:z#!\\", "ü": "é\t\n"}
    rendered = render_properties(properties, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
    assert rendered.startswith(b"#\n#Fri Jan 02 03:04:05 UTC 2026\n")
    assert sorted(rendered.splitlines()[2:]) == [b"\\u00FC=\\u00E9\\t\\n", b"a\\ b=\\ x\\=y\\:z\\#\\!\\\\"]


def test_the_clean_shutdown_file_round_trips(kafka_logs: dict[str, Path]) -> None:
    original = (kafka_logs["modern"] / "data" / ".kafka_cleanshutdown").read_bytes()
    assert render_clean_shutdown(json.loads(original)["brokerEpoch"]) == original
