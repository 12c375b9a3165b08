"""What tasks do with their batches before Spark gets them."""

from __future__ import annotations

import gc
import os

import pyarrow as pa
import pytest

from kwire.spark import worker
from kwire.spark.worker import join_small


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


def test_objects_are_frozen_once_and_in_spark_workers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_is_frozen", False)
    monkeypatch.delenv("SPARK_REUSE_WORKER", raising=False)
    before = gc.get_freeze_count()
    worker.freeze_modules()
    assert gc.get_freeze_count() == before
    monkeypatch.setitem(os.environ, "SPARK_REUSE_WORKER", "1")
    try:
        worker.freeze_modules()
        frozen = gc.get_freeze_count()
        assert frozen > before + 1000
        worker.freeze_modules()
        assert gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()
