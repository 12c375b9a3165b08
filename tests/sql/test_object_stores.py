"""Queries of a log directory in S3 make few requests, read a small share of it, and survive what happens there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kwire
from kwire.errors import LogError
from kwire.log import FileSystem
from kwire.log.reading.readable_log import LogSource, ReadableLog
from kwire.maintenance.new_directory import NewDirectory
from tests.log.writing import NOW, batch
from tests.object_store import ObjectStore

pytest.importorskip("duckdb")

from kwire.sql.session import Attached, Session

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # of boto

PARTITIONS, SEGMENTS, BATCHES, RECORDS = 2, 4, 128, 16
IN_PARTITION = SEGMENTS * BATCHES * RECORDS
LOG = f"{0:020}.log"


def written(folder: Path) -> Path:
    """Write 16 MB: the topic `events`, in closed segments of 2 MB. Records of a partition are one ms apart."""
    new = NewDirectory(FileSystem(), str(folder), now_ms=NOW, segment_bytes=1 << 30)
    new.create()
    for partition in range(PARTITIONS):
        log = new.open(("events", partition), 0)
        for offset in range(0, IN_PARTITION, RECORDS):
            if offset % (BATCHES * RECORDS) == 0:
                log.begin_segment(offset)
            values = [b"%d." % (offset + i) + bytes(1000) for i in range(RECORDS)]
            log.append(batch(*values, timestamp=NOW + offset, base_offset=offset))
        new.finish(("events", partition), IN_PARTITION)
    new.publish()
    return folder


@pytest.fixture
def uploaded(object_store: ObjectStore, tmp_path: Path) -> ObjectStore:
    object_store.fs.mkdir("bucket")
    object_store.upload(written(tmp_path / "data"), "bucket/copy")
    return object_store


@pytest.fixture
def logs(uploaded: ObjectStore) -> Iterator[LogSource[ReadableLog]]:
    with kwire.open("s3://bucket/copy", **uploaded.options) as logs:
        yield logs


def rows(session: Session, query: str) -> list[tuple[object, ...]]:
    result = session.run(query)
    assert result is not None
    return [tuple(row.values()) for row in result.read_all().to_pylist()]


@pytest.mark.parametrize(
    ("query", "expected", "most_requests", "most_share"),
    [
        ("SELECT count(*) FROM events", [(PARTITIONS * IN_PARTITION,)], 35, 1.05),
        ("SELECT count(*) FROM (SELECT value FROM events LIMIT 5)", [(5,)], 14, 0.12),
        (
            f"SELECT count(*) FROM events WHERE timestamp >= make_timestamptz({NOW + IN_PARTITION - 80}000)",
            [(PARTITIONS * 80,)],
            36,
            0.15,
        ),
        (
            "SELECT split_part(decode(value[:8]), '.', 1) FROM events WHERE partition = 1 AND \"offset\" = 5000",
            [("5000",)],
            16,
            0.08,
        ),
    ],
    ids=["count", "limit", "newest", "offset"],
)
def test_a_query_makes_few_requests(
    query: str, expected: list[tuple[object, ...]], most_requests: int, most_share: float, uploaded: ObjectStore
) -> None:
    whole = PARTITIONS * IN_PARTITION * 1000
    uploaded.requests.clear()
    uploaded.received_bytes = 0
    with kwire.open("s3://bucket/copy", **uploaded.options) as logs:
        session = Session()
        session.attach(Attached(logs=logs))
        assert rows(session, query) == expected
        first = len(uploaded.requests)
        assert first <= most_requests
        assert uploaded.received_bytes <= most_share * whole
        uploaded.requests.clear()
        assert rows(session, query) == expected
        assert len(uploaded.requests) <= first


def test_records_of_a_segment_that_is_deleted_while_it_is_read_are_missing(
    uploaded: ObjectStore, logs: LogSource[ReadableLog]
) -> None:
    """As in a log directory, where retention deletes the oldest segments first."""
    log = logs["events", 0]
    batches = log.read_arrow(columns=["offset"], max_bytes=1)
    objects = log.read()
    assert next(batches).column("offset")[0].as_py() == next(objects).offset == 0
    for base in (0, BATCHES * RECORDS):
        uploaded.fs.rm_file(f"bucket/copy/events-0/{base:020}.log")
    kept = range(2 * BATCHES * RECORDS, IN_PARTITION)
    offsets = [offset.as_py() for each in batches for offset in each.column("offset")]
    assert offsets[-len(kept) :] == [*kept]
    assert offsets == sorted(set(offsets))
    assert [record.offset for record in objects][-len(kept) :] == [*kept]


def test_a_segment_that_is_replaced_while_it_is_read_is_an_error(
    uploaded: ObjectStore, logs: LogSource[ReadableLog]
) -> None:
    """The offsets of its second half are in the first half of the new one."""
    batches = logs["events", 0].read_arrow(columns=["offset"], max_bytes=1)
    assert next(batches).column("offset")[0].as_py() == 0
    place = f"bucket/copy/events-0/{LOG}"
    data = uploaded.fs.cat_file(place)
    uploaded.fs.pipe_file(place, data[len(data) // 2 :])
    with pytest.raises(LogError, match=f"{place}: .*the object changed during the read"):
        list(batches)


def test_a_segment_that_is_lost_in_the_middle_is_an_error(uploaded: ObjectStore, logs: LogSource[ReadableLog]) -> None:
    batches = logs["events", 0].read_arrow(columns=["offset"], max_bytes=1)
    next(batches)
    lost = f"bucket/copy/events-0/{2 * BATCHES * RECORDS:020}.log"
    uploaded.fs.rm_file(lost)
    with pytest.raises(LogError, match=lost):
        list(batches)
