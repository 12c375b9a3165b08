"""Decoding with a plan: by a kernel in columns whose memory grows as needed; what it leaves, in plain Python.

A kernel says of a row only that it left it. The reader of Python objects reads the row again, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, OptionError
from kwire.schemas.buffers import ColumnBuffers, assemble, binary_bounds
from kwire.schemas.column_plan import ColumnPlan
from kwire.schemas.schema_codec import Int32Array, Int64Array
from kwire.wire.value_rows import JOB, LEFT, NO_COLUMN, STATUSES

__all__ = ["PlanDecoder"]

WORD = {name: index for index, name in enumerate(JOB)}
FINISHED, NO_ROOM, _ = range(len(STATUSES))
LEAST_SCRATCH = 64


class PlanDecoder:
    """Decodes values with a plan. type: of the array.

    kernel: its name in kwire.native. read: decodes one value with a row of the plan, or raises DecodeError; called for
    the rows that the kernel leaves, without compiled code for all. allow_trailing: ignore bytes after a value.
    """

    def __init__(
        self,
        plan: ColumnPlan,
        kernel: Literal["decode_avro", "decode_json", "decode_protobuf"],
        read: Callable[[bytes, int], Any],
        *,
        allow_trailing: bool = False,
    ) -> None:
        self._plan, self._kernel, self._read, self._allow_trailing = plan, kernel, read, allow_trailing
        self._rows = np.array(plan.rows, np.int64).reshape(-1)
        self._operands = np.array([*plan.operands, 0], np.int64)
        self._constants = pa.py_buffer(bytes(plan.constants) or b"\0")
        self.type: pa.DataType = plan.columns[0].type

    def decode(
        self, values: pa.Array, skip: Int64Array, roots: Int64Array | int
    ) -> tuple[pa.Array, list[tuple[int, DecodeError]]]:
        """Decode an array of binary; returns it, and the errors of the rows that are null because of one.

        skip: bytes before each value. roots: the row of the plan for each value, below 0 for a null, or one for all.
        Raises OptionError if a column has more than 2 GiB.
        """
        data, starts, ends = binary_bounds(values)
        starts = starts + np.minimum(skip, ends - starts)
        if isinstance(roots, int):
            roots = np.full(len(values), roots, np.int64)
        if values.null_count:
            roots = np.where(values.is_null().to_numpy(zero_copy_only=False), -1, roots)
        if native.LEVEL is None:
            array, left = pa.nulls(len(values), self.type), np.flatnonzero(roots >= 0)
        else:
            array, left = self.run_kernel(data, starts, ends, roots)
        reread, errors = list[Any](), list[tuple[int, DecodeError]]()
        rows, view = list[int](), memoryview(data)
        for row in left.tolist():
            try:
                reread.append(self._read(bytes(view[starts[row] : ends[row]]), int(roots[row])))
                rows.append(row)
            except DecodeError as error:
                error.__traceback__ = error.__context__ = None  # and all that their frames refer to
                errors.append((row, error))
        if reread:
            made = pa.array(reread, self.type)
            if isinstance(made, pa.ChunkedArray):
                raise OptionError("the values: more than 2 GiB in one column; decode fewer values at a time")
            places = np.arange(len(array))
            places[rows] = np.arange(len(array), len(array) + len(rows))
            array = pa.concat_arrays([array, made]).take(pa.array(places))
        return array, errors

    def run_kernel(
        self, data: pa.Buffer, starts: Int64Array, ends: Int64Array, roots: Int64Array
    ) -> tuple[pa.Array, Int64Array]:
        """Decode data[starts[i]:ends[i]] for each i; returns the array, and the rows that the kernel left as nulls."""
        buffers = ColumnBuffers(self._plan, len(starts), int(ends[-1] - starts[0]) if len(starts) else 0)
        starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        roots = roots.copy()  # the kernel marks the rows that it leaves
        scratch = self.scratch(LEAST_SCRATCH)
        job = np.zeros(len(JOB), np.int64)
        job[WORD["COUNT"]], job[WORD["ALLOW_TRAILING"]] = len(starts), self._allow_trailing
        places = {"ROWS": self._rows, "OPERANDS": self._operands, "COLUMNS": buffers.words, "STARTS": starts}
        for name, array in (places | {"ENDS": ends, "ROOTS": roots}).items():
            job[WORD[name]] = array.ctypes.data
        job[WORD["CONSTANTS"]], job[WORD["BYTES"]] = self._constants.address, data.address
        while True:
            job[WORD["SCRATCH"]], job[WORD["SCRATCH_CAPACITY"]] = scratch.ctypes.data, len(scratch)
            status = getattr(native, self._kernel)(job)
            if status == FINISHED:
                finished = [buffers.finished(each) for each in self._plan.columns]
                left = np.flatnonzero(roots == LEFT) if job[WORD["LEFT_COUNT"]] else np.zeros(0, np.int64)
                return assemble(self._plan.columns[0], finished), left
            column, needed = int(job[WORD["ROOM_COLUMN"]]), int(job[WORD["ROOM_NEEDED"]])
            if status == NO_ROOM and column == NO_COLUMN:
                scratch = self.scratch(needed)
            elif status == NO_ROOM:
                done = int(job[WORD["DONE"]]) / max(len(starts), 1)
                buffers.grow(column, needed, bool(job[WORD["ROOM_IS_DATA"]]), done)
            else:
                path = ".".join(self._plan.columns[column].path)
                raise OptionError(
                    f"{path or 'the values'}: more than 2 GiB in one column; decode fewer values at a time"
                )

    def scratch(self, slots: int) -> Int32Array:
        """Allocate memory for what a kernel has to remember of one row."""
        return np.empty(slots, np.int32)
