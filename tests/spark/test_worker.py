"""What tasks do with their batches before Spark gets them, and against delays of Spark's workers."""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import pickle
import socket
import struct
import sys
import termios
import zipfile
import zipimport
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from kwire.records import ColumnReader, Record, write_batch
from kwire.spark.live.options import parse_options
from kwire.spark.live.source import LiveReader
from kwire.spark.process import worker
from kwire.spark.process.worker import FEW_BYTES, FEW_ROWS, join_small, report_null_timestamps, report_small_batches

OPTIONS = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "t"}


def batch(rows: int, first: int = 0) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array([b"x" * 10] * rows), "offset": pa.array(range(first, first + rows))})


def test_small_batches_are_joined_in_order_and_the_first_is_not_delayed() -> None:
    given = [batch(100, 100 * i) for i in range(1000)]
    taken: list[int] = []
    joined = join_small(taken.append(i) or each for i, each in enumerate(given))
    assert next(joined).num_rows == 100
    assert taken == [0]
    rest = list(joined)
    assert [each.num_rows for each in rest] == [32700, 32700, 32700, 1800]
    offsets = [offset for each in rest for offset in each.column("offset").to_pylist()]
    assert offsets == list(range(100, 100_000))
    assert all(each.schema == given[0].schema for each in rest)


def test_large_batches_pass_unchanged_and_keep_their_place() -> None:
    given = [batch(50_000), batch(5), batch(6), batch(40_000), batch(7)]
    joined = list(join_small(given))
    assert [each.num_rows for each in joined] == [50_000, 11, 40_000, 7]
    assert joined[2] is given[3]
    wide = pa.record_batch({"value": pa.array([b"x" * (5 << 20)])})
    assert [each.num_rows for each in join_small([wide] * 4)] == [1, 1, 1, 1]  # two of them exceed JOINED_BYTES
    assert list(join_small([])) == []


LARGEST_MS = (2**63 - 1) // 1000  # of Spark's microseconds


def decoded(
    *timestamps: int, columns: tuple[str, ...] = ("topic", "partition", "offset", "timestamp")
) -> pa.RecordBatch:
    """Return records with these timestamps as a task reads them."""
    records = [
        Record(offset=n, timestamp=each, timestamp_type=0, key=None, value=b"", headers=[])
        for n, each in enumerate(timestamps)
    ]
    (found,) = ColumnReader(columns, topic="t", partition=3).read(write_batch(records))
    return found


def test_a_task_warns_once_of_timestamps_that_become_null(caplog: pytest.LogCaptureFixture) -> None:
    fits, too_late = decoded(0, -1, LARGEST_MS), decoded(5, LARGEST_MS + 1, 2**63 - 1)
    assert [fits.column("timestamp").null_count, too_late.column("timestamp").null_count] == [0, 2]
    assert list(report_null_timestamps([fits])) == [fits]
    assert not caplog.records
    assert list(report_null_timestamps([fits, too_late, too_late])) == [fits, too_late, too_late]
    (said,) = caplog.messages
    assert said.startswith(
        "topic t, partition 3, offset 1: the timestamp of a record is outside of the range of Spark's"
    )
    caplog.clear()
    list(report_null_timestamps([decoded(2**62, columns=("timestamp",))]))
    list(report_null_timestamps([decoded(2**62, columns=("offset",))]))
    (said,) = caplog.messages
    assert said.startswith("the timestamp of a record")


def test_rows_of_corrupt_batches_are_no_lost_timestamps(caplog: pytest.LogCaptureFixture) -> None:
    type_ = pa.timestamp("us", tz="UTC")
    corrupt = pa.record_batch({"timestamp": pa.array([None, 1], type_), "_corrupt": pa.array(["wrong CRC", None])})
    both = pa.record_batch({"timestamp": pa.array([None, None], type_), "_corrupt": pa.array(["wrong CRC", None])})
    list(report_null_timestamps([corrupt]))
    assert not caplog.records
    list(report_null_timestamps([both]))
    assert len(caplog.records) == 1


def test_objects_are_frozen_after_imports_and_in_spark_workers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_frozen_modules", 0)
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    before = gc.get_freeze_count()
    worker.warm_up()
    assert gc.get_freeze_count() == before
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    try:
        worker.warm_up()
        frozen = gc.get_freeze_count()
        assert frozen > before + 1000
        mine = [[] for _ in range(1000)]  # type: ignore[var-annotated]
        worker.warm_up()
        assert gc.get_freeze_count() <= frozen
        monkeypatch.setitem(sys.modules, "imported_later", sys)
        worker.warm_up()
        assert gc.get_freeze_count() >= frozen + len(mine) / 2
    finally:
        gc.unfreeze()


def test_archives_are_listed_again_only_after_a_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    archive = tmp_path / "job.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr("kwire_first_module.py", "VALUE = 1")
    monkeypatch.syspath_prepend(str(archive))
    assert importlib.import_module("kwire_first_module").VALUE == 1
    listed = []
    listing = zipimport.zipimporter.invalidate_caches
    monkeypatch.setattr(
        zipimport.zipimporter, "invalidate_caches", lambda finder: listed.append(finder.archive) or listing(finder)
    )
    try:
        importlib.invalidate_caches()
        assert listed.count(str(archive)) == 1  # what Spark makes each task do
        worker.warm_up()
        importlib.invalidate_caches()
        assert listed.count(str(archive)) == 1
        with zipfile.ZipFile(archive, "a") as written:
            written.writestr("kwire_second_module.py", "VALUE = 2")
        importlib.invalidate_caches()
        assert listed.count(str(archive)) == 2
        assert importlib.import_module("kwire_second_module").VALUE == 2
        archive.unlink()
        importlib.invalidate_caches()
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("kwire_third_module")
    finally:
        gc.unfreeze()
        for finder in sys.path_importer_cache.values():
            if isinstance(finder, zipimport.zipimporter):
                vars(finder).pop("invalidate_caches", None)
        for name in ("kwire_first_module", "kwire_second_module"):
            sys.modules.pop(name, None)


def _unacknowledged(sender: socket.socket) -> int:
    """Return the number of sent bytes that the other side has not acknowledged (SIOCOUTQ)."""
    return struct.unpack("i", fcntl.ioctl(sender.fileno(), termios.TIOCOUTQ, b"\0" * 4))[0]  # type: ignore[no-any-return]


@contextmanager
def _talking() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return the ends of a TCP connection with requests and answers, as of Spark's JVM and a reused worker."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as jvm:
        ours, _ = server.accept()
        with ours:
            for _ in range(40):
                jvm.sendall(b"task")
                assert ours.recv(100) == b"task"
                ours.sendall(b"rows")
                assert jvm.recv(100) == b"rows"
            yield jvm, ours


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_QUICKACK")
def test_the_first_packet_of_a_task_is_acknowledged_when_its_reader_is_unpickled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARK_REUSE_WORKER", "1")
    reader = pickle.dumps(LiveReader(parse_options(OPTIONS, "batch"), ("value",)))
    delayed = 0
    with _talking() as (jvm, ours):
        worker._connections.cache_clear()
        try:
            for _ in range(20):
                jvm.sendall(b"init")
                assert ours.recv(100) == b"init"
                delayed += _unacknowledged(jvm) > 0
                pickle.loads(reader)
                assert _unacknowledged(jvm) == 0
                ours.sendall(b"rows")
                assert jvm.recv(100) == b"rows"
            assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        finally:
            worker._connections.cache_clear()
    assert delayed  # else this proves nothing


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_QUICKACK")
@pytest.mark.parametrize(("reuse", "timeout"), [(None, None), ("1", 5.0)])
def test_sockets_of_other_programs_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch, reuse: str | None, timeout: float | None
) -> None:
    if reuse is None:
        monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    else:
        monkeypatch.setenv("SPARK_REUSE_WORKER", reuse)
    with _talking() as (_, ours):
        worker._connections.cache_clear()
        socket.setdefaulttimeout(timeout)
        try:
            worker.avoid_tcp_delays()
        finally:
            socket.setdefaulttimeout(None)
            worker._connections.cache_clear()
        assert os.get_blocking(ours.fileno())
        assert not ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("sizes", "width", "reports"),
    [
        ([10_000] * 7 + [9_999] * 9, 10, 0),  # one less
        ([10_000, 5] * 8, 10, 1),  # with the ends of tasks
        ([10_000] * 40, 10, 1),  # once
        ([5] * 7 + [10_000] * 7 + [5] * 7, 10, 0),
        ([FEW_ROWS - 1] * 8, 10, 1),
        ([FEW_ROWS] * 8, 10, 0),
        ([100] * 8, FEW_BYTES // 100, 0),  # large rows
        ([0] * 3, 10, 0),
    ],
)
def test_settings_that_hold_a_query_back_are_reported_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, sizes: list[int], width: int, reports: int
) -> None:
    monkeypatch.setattr(worker, "_largest_batch", 0)
    monkeypatch.setattr(worker, "_full_batches", 0)
    given = [pa.record_batch({"value": pa.array([b"x" * width] * size, pa.binary())}) for size in sizes]
    assert list(report_small_batches(given)) == given
    assert len(caplog.records) == reports
    assert all("set spark.sql.execution.arrow.maxRecordsPerBatch to 50000" in text for text in caplog.messages)
