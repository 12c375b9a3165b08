"""The fast path of appends: the slow path accepts the same batches and gives the same result."""

from __future__ import annotations

import gzip
import random
from typing import Any

import pytest
from tests import golden
from tests.fuzz import record_writing
from tests.fuzz.records import mutated
from tests.records.building import batch, record

from kwire.records import (
    AppendOrigin,
    Compression,
    Record,
    TimestampType,
    validate_and_assign_offsets,
    write_batch,
    write_batches,
)
from kwire.records.append.checks import analyze_append
from kwire.records.append.request_magic import check_produced
from kwire.records.append.settings import UNLIMITED_MS
from kwire.records.append.whole_batch import WholeBatch, WholeBatchConfig, take_whole_batch
from kwire.records.format.batch_header import DEFAULT_HEADER
from kwire.records.format.checksum import crc32c

NOW = 1_760_000_000_000
ROOM = 1 << 20


def both(
    data: bytes | bytearray | memoryview,
    first_offset: int = 40,
    *,
    now_ms: int = NOW,
    leader_epoch: int = 3,
    origin: AppendOrigin = AppendOrigin.CLIENT,
    **topic: Any,
) -> WholeBatch | None:
    """Return the result of the fast path; if it accepts a batch, the slow path must give the same bytes and times."""
    settings = {"max_message_bytes": ROOM} | topic
    whole = take_whole_batch(
        data, first_offset, now_ms=now_ms, leader_epoch=leader_epoch, topic=WholeBatchConfig(**settings)
    )
    if whole is None:
        return None
    codec = settings.pop("codec", None)
    check_produced(data, 9)
    info = analyze_append(
        data, origin=origin, leader_epoch=leader_epoch, max_message_bytes=settings["max_message_bytes"]
    )
    assert info.valid_bytes == len(data)
    checked = validate_and_assign_offsets(
        data,
        first_offset,
        now_ms=now_ms,
        leader_epoch=leader_epoch,
        origin=origin,
        compression_type="producer" if codec is None else codec,
        **settings,
    )
    assert checked.in_place
    assert checked.data == bytes(whole.head) + bytes(data[DEFAULT_HEADER.size :])
    assert checked.next_offset == whole.last_offset + 1
    assert (checked.max_timestamp_ms, checked.offset_of_max_timestamp) == (
        whole.max_timestamp,
        whole.offset_of_max_timestamp,
    )
    stored = DEFAULT_HEADER.unpack_from(checked.data)
    assert (stored[5], *stored[8:12]) == (
        whole.attributes, whole.max_timestamp, whole.producer_id, whole.producer_epoch, whole.base_sequence,
    )  # fmt: skip
    return whole


def produced(compression: Compression = Compression.NONE, count: int = 3, **fields: Any) -> bytes:
    """Return a batch as a producer sends it."""
    records = [
        Record(
            offset=0,
            timestamp=NOW - i,
            timestamp_type=TimestampType.CREATE_TIME,
            key=b"k%d" % i,
            value=b"v" * 50,
            headers=[("h", b"1")],
        )
        for i in range(count)
    ]
    return write_batch(records, compression=compression, **fields)


@pytest.mark.requirement("A-20", "A-24", "A-26")
@pytest.mark.parametrize("codec", list(Compression))
def test_common_batches_take_the_fast_path(codec: Compression) -> None:
    data = produced(codec)
    for settings in ({}, {"codec": codec}, {"compacted": True}, {"message_timestamp_before_max_ms": 5}):
        whole = both(data, **settings)
        assert whole is not None
        assert (whole.last_offset, whole.max_timestamp) == (42, NOW)
    assert both(produced(codec, producer_id=7, producer_epoch=1, base_sequence=2, is_transactional=True)) is not None
    assert both(produced(codec, 400)) is not None  # its checksum is not taken of a copy
    assert both(bytearray(data)) is not None
    assert both(memoryview(bytearray(data))) is not None
    assert both(data, 2**63 - 3) is not None
    assert both(data, origin=AppendOrigin.COORDINATOR) is not None
    assert both(data, max_message_bytes=len(data)) is not None
    assert both(data, leader_epoch=-1) is not None  # of a coordinator's own log
    assert both(data, leader_epoch=2**31 - 1) is not None


def test_records_without_timestamps_take_the_fast_path() -> None:
    whole = both(batch(record(), base_timestamp=-1, max_timestamp=-1))
    assert whole is not None
    assert (whole.max_timestamp, whole.offset_of_max_timestamp) == (-1, -1)


GOOD = produced()
LEFT_TO_THE_LONG_WAY: dict[str, tuple[Any, dict[str, Any]]] = {
    "nothing": (b"", {}),
    "a cut header": (GOOD[:60], {}),
    "a cut batch": (GOOD[:-1], {}),
    "bytes after it": (GOOD + b"\0", {}),
    "two batches": (GOOD + GOOD, {}),
    "other items than bytes": (memoryview(GOOD).cast("b"), {}),
    "too large": (GOOD, {"max_message_bytes": len(GOOD) - 1}),
    "a base offset": (batch(base_offset=1), {}),
    "a wrong checksum": (batch(crc=1), {}),
    "a wrong largest timestamp": (batch(max_timestamp=1001), {}),
    "append time": (batch(attributes=8), {}),
    "a control batch": (batch(attributes=0x20), {}),
    "a delete horizon": (batch(attributes=0x40), {}),
    "an unknown codec": (batch(attributes=5), {}),
    "a payload that does not decompress": (batch(attributes=1), {}),
    "a wrong count": (batch(count=2), {}),
    "no records": (batch(b"", count=0, last_offset_delta=-1), {}),
    "a producer without sequence": (batch(producer_id=1, producer_epoch=0), {}),
    "a damaged record": (batch(record()[:-1]), {}),
    "the topic's codec": (GOOD, {"codec": Compression.GZIP}),
    "a topic without codec": (produced(Compression.GZIP), {"codec": Compression.NONE}),
    "no key": (batch(record(key=None)), {"compacted": True}),
    "too old": (GOOD, {"message_timestamp_before_max_ms": 1}),
    "too new": (GOOD, {"message_timestamp_after_max_ms": 5, "now_ms": NOW - 6}),
    "no offset left": (GOOD, {"first_offset": 2**63 - 2}),
    "a time before 1970": (GOOD, {"now_ms": -1}),
    "a leader epoch that cannot be": (GOOD, {"leader_epoch": 2**31}),
}


@pytest.mark.parametrize(("data", "settings"), LEFT_TO_THE_LONG_WAY.values(), ids=LEFT_TO_THE_LONG_WAY)
def test_batches_that_change_or_fail_take_the_slow_path(data: Any, settings: dict[str, Any]) -> None:
    assert both(data, **settings) is None


def test_a_compressed_batch_with_gaps_takes_the_slow_path() -> None:
    section = record(1) + record(0)
    assert both(batch(section, count=2)) is not None  # uncompressed, Kafka does not look at them
    assert both(batch(gzip.compress(section), count=2, attributes=int(Compression.GZIP))) is None
    in_order = record(0) + record(1)
    assert both(batch(gzip.compress(in_order), count=2, attributes=int(Compression.GZIP))) is not None


@pytest.mark.requirement("A-10", "A-13", "A-14", "A-16", "A-17")
def test_both_paths_agree_with_kafkas_validator() -> None:
    taken = 0
    for name in ("conversions.jsonl.gz", "invalid.jsonl.gz"):
        for line in golden.cached(name):
            if line["op"] != "validate" or (line["to_magic"], line["timestamp_type"]) != (2, "CreateTime"):
                continue
            if line["origin"] not in ("CLIENT", "COORDINATOR") or "inter-broker-protocol-2.0" in line["case"]:
                continue  # no broker of ours is that old
            data = golden.unpack(line["from_b64"])
            whole = take_whole_batch(
                data,
                line["first_offset"],
                now_ms=line["now_ms"],
                leader_epoch=line["leader_epoch"],
                topic=WholeBatchConfig(
                    codec=Compression[line["target_codec"].upper()],
                    max_message_bytes=ROOM,
                    message_timestamp_before_max_ms=line["before_max_ms"],
                    message_timestamp_after_max_ms=line["after_max_ms"],
                    compacted=line["compacted"],
                ),
            )
            if whole is not None:
                taken += 1
                assert not line.get("exception"), line["case"]
                assert golden.unpack(line["to_b64"]) == bytes(whole.head) + data[DEFAULT_HEADER.size :], line["case"]
    assert taken > 10


def test_both_paths_detect_any_changed_byte() -> None:
    source = random.Random(5)
    for codec in (Compression.NONE, Compression.LZ4):
        data = produced(codec)
        for at in range(len(data)):
            changed = bytearray(data)
            changed[at] ^= 1 << source.randrange(8)
            both(changed)
            fixed = bytearray(changed)
            fixed[17:21] = crc32c(bytes(fixed[21:])).to_bytes(4, "big")
            before_ms = source.choice((3, UNLIMITED_MS))
            both(fixed, compacted=source.random() < 0.5, message_timestamp_before_max_ms=before_ms)


def test_both_paths_agree_on_random_batches() -> None:
    source = random.Random(9)
    taken = 0
    for _ in range(150):
        rows = record_writing.random_rows(source, headers=True)
        for data in write_batches(rows, compression=source.choice(list(Compression))):
            own = bytearray(data)
            own[:8] = bytes(8)  # as producers number them
            taken += both(own, now_ms=NOW, compacted=source.random() < 0.2) is not None
    assert taken > 50
    for _ in range(400):
        own = bytearray(mutated(source.choice(record_writing.corpus()), record_writing.corpus(), source))
        own[:8] = bytes(8)
        both(own)
