"""Index and snapshot files, compared with the output of Kafka's DumpLogSegments."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.errors import Malformed
from kwire.log.files.file_names import SEGMENT_FILE
from kwire.log.files.offset_index import OffsetIndex
from kwire.log.files.producer_snapshot import parse_producer_snapshot
from kwire.log.files.time_index import TimeIndex
from kwire.log.files.transaction_index import parse_transaction_index
from kwire.storage.store import LocalFile
from tests.log.expected import ARCHIVES, dumped_indexes


def optional(offset: int) -> str:
    """Render a value like Java's OptionalLong."""
    return f"OptionalLong[{offset}]" if offset >= 0 else "OptionalLong.empty"


def render(path: Path) -> list[str]:
    """Render the entries of an index or snapshot like DumpLogSegments."""
    match = SEGMENT_FILE.fullmatch(path.name)
    assert match is not None
    base = int(match["base"])
    with LocalFile(str(path)) as file:
        if match["kind"] == "index":
            index = OffsetIndex.read(file, base)
            assert index is not None
            return [f"offset: {offset} position: {position}" for offset, position in index]
        if match["kind"] == "timeindex":
            times = TimeIndex.read(file, base)
            assert times is not None
            return [f"timestamp: {timestamp} offset: {offset}" for timestamp, offset in times]
    if match["kind"] == "txnindex":
        entries = parse_transaction_index(path.read_bytes(), base, None)
        assert entries is not None
        return [
            f"version: 0 producerId: {e.producer_id} firstOffset: {e.first_offset} lastOffset: {e.last_offset} "
            f"lastStableOffset: {e.last_stable_offset}"
            for e in entries
        ]
    return [
        f"producerId: {e.producer_id} producerEpoch: {e.producer_epoch} coordinatorEpoch: {e.coordinator_epoch} "
        f"currentTxnFirstOffset: {optional(e.current_transaction_first_offset)}"
        for e in parse_producer_snapshot(path.read_bytes())
    ]


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.requirement("F-10", "F-12", "F-20", "F-30", "F-40", "F-41")
def test_entries_equal_the_output_of_kafkas_tool(kafka_logs: dict[str, Path], archive: str) -> None:
    kinds = set()
    for name, lines in dumped_indexes(kafka_logs[archive] / "expected"):
        path = kafka_logs[archive] / "data" / name
        if path.suffix not in (".index", ".timeindex", ".txnindex", ".snapshot"):
            continue
        kinds.add(path.suffix)
        got = render(path)
        if path.suffix == ".snapshot":  # the lines go on with what can be computed from these
            assert len(got) == len(lines), name
            lines = [line.replace("Offset: None", "Offset: OptionalLong.empty") for line in lines]  # Kafka 2.8
            assert all(line.startswith(g) for line, g in zip(lines, got, strict=True)), name
        else:
            assert got == [line for line in lines if not line.startswith("Found")], name
    assert {".index", ".timeindex", ".snapshot"} <= kinds


@pytest.mark.requirement("F-14")
@pytest.mark.parametrize("entries", [0, 1, 2, 3, 100, 1000])
def test_a_preallocated_index_ends_at_its_first_unused_entry(tmp_path: Path, entries: int) -> None:
    path = tmp_path / "index"
    used = b"".join((10 * i + 10).to_bytes(4) + (100 * i).to_bytes(4) for i in range(entries))
    for tail in (0, 8, 64, 10 << 20):
        path.write_bytes(used + bytes(tail))
        with LocalFile(str(path)) as file:
            index = OffsetIndex.read(file, 1000)
        assert index is not None
        assert index.entries == used
        assert index.lookup(999) == (1000, 0)
        for i in range(entries):
            offset = 1010 + 10 * i
            assert index.lookup(offset) == index.lookup(offset + 9) == (offset, 100 * i)


@pytest.mark.requirement("F-15", "F-23", "F-33")
def test_an_index_of_an_invalid_size_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "index"
    for n in (1, 7, 9, 13, 33, 35):
        path.write_bytes(b"\1" * n)
        with LocalFile(str(path)) as file:
            assert OffsetIndex.read(file, 0) is None or n % 8 == 0
            assert TimeIndex.read(file, 0) is None
        assert parse_transaction_index(b"\0" * n, 0, None) is None
    backwards = b"".join(t.to_bytes(8) + o.to_bytes(4) for t, o in [(9, 1), (5, 2)])
    path.write_bytes(backwards)
    with LocalFile(str(path)) as file:
        assert TimeIndex.read(file, 0) is None


@pytest.mark.requirement("F-30", "F-31", "F-33")
def test_implausible_transaction_index_entries_are_ignored() -> None:
    entry = bytes.fromhex("0000 0000000000000009 000000000000000a 000000000000000e 000000000000000f")
    entries = parse_transaction_index(entry, 10, 15)
    assert entries == [(9, 10, 14, 15)]
    assert parse_transaction_index(b"\0\1" + entry[2:], 10, 15) == entries  # only the first byte is the version
    assert parse_transaction_index(b"\1\0" + entry[2:], 10, 15) is None
    assert parse_transaction_index(entry, 15, None) is None  # a marker below its segment
    assert parse_transaction_index(entry, 0, 14) is None  # a marker behind its segment
    assert parse_transaction_index(entry * 2, 10, 15) is None  # markers must increase
    assert parse_transaction_index(entry + b"\xff" * 20, 10, 15) is None
    assert parse_transaction_index(b"\xff" * 34, 0, None) is None
    assert parse_transaction_index(b"", 0, None) == []


@pytest.mark.requirement("F-40", "F-42")
def test_a_producer_snapshot_is_read_whole_or_rejected() -> None:
    data = bytes.fromhex(
        "0001 e11f89b0 00000001 0000000000000009 0002 00000004 000000000000000e 00000004 00000000000003ed ffffffff"
        "000000000000000a"
    )
    (state,) = parse_producer_snapshot(data)
    assert state == (9, 2, 4, 14, 4, 1005, -1, 10)
    for cut in range(len(data)):
        with pytest.raises(Malformed):
            parse_producer_snapshot(data[:cut])
    for i in range(len(data)):
        with pytest.raises(Malformed):
            parse_producer_snapshot(data[:i] + bytes([data[i] ^ 0x40]) + data[i + 1 :])
    with pytest.raises(Malformed):
        parse_producer_snapshot(data + b"\0")


@given(st.binary(max_size=200))
def test_random_bytes_are_a_snapshot_or_malformed(data: bytes) -> None:
    parse_transaction_index(data, 0, None)
    with suppress(Malformed):
        parse_producer_snapshot(data)
