"""Columns of kwire.schemas that end at guard pages, and are as small as they can be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from tests.fuzz.records import GuardedMemory

from kwire.schemas import buffers
from kwire.schemas.buffers import ColumnBuffers
from kwire.schemas.column_plan import Column
from kwire.schemas.plan_decoder import PlanDecoder
from kwire.schemas.schema_codec import Int32Array


@contextmanager
def guarded_columns() -> Iterator[GuardedMemory]:
    """Place columns, and what kernels remember of a row, before guard pages."""
    guard = GuardedMemory()
    originals = ColumnBuffers.resize, ColumnBuffers.shrunk, PlanDecoder.scratch
    together = buffers.allocate_together
    smallest = buffers.LEAST_VALUES, buffers.LEAST_BYTES
    buffers.LEAST_VALUES, buffers.LEAST_BYTES = 1, 1

    def resize(self: ColumnBuffers, column: Column, part: str, n_bytes: int) -> None:
        held = self.buffers[column.number]
        memory = guard.allocate(n_bytes)
        if part in held:
            kept = min(n_bytes, held[part].size)
            memory[:kept] = np.frombuffer(held[part], np.uint8)[:kept]
        held[part] = pa.py_buffer(memory)
        self.words[column.number, buffers.WORD[part]] = held[part].address

    def shrunk(self: ColumnBuffers, buffer: pa.Buffer, n_bytes: int) -> pa.Buffer:
        return buffer.slice(0, n_bytes)

    def scratch(self: PlanDecoder, slots: int) -> Int32Array:
        found: Int32Array = guard.allocate(4 * slots).view(np.int32)
        return found

    buffers.allocate_together = guard.allocate_apart
    ColumnBuffers.resize, ColumnBuffers.shrunk = resize, shrunk  # type: ignore[method-assign]
    PlanDecoder.scratch = scratch  # type: ignore[method-assign]
    try:
        yield guard
    finally:
        buffers.allocate_together = together
        buffers.LEAST_VALUES, buffers.LEAST_BYTES = smallest
        ColumnBuffers.resize, ColumnBuffers.shrunk, PlanDecoder.scratch = originals  # type: ignore[method-assign]
