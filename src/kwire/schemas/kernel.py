"""Kernels that decode many values into columns, run with memory that grows as needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, OptionError
from kwire.schemas.buffers import ColumnBuffers, assemble, binary_bounds
from kwire.schemas.column_plan import ROOT, ColumnPlan
from kwire.schemas.decoder import Decoded, Int32Array, Int64Array, RowError, row_error
from kwire.wire.value_rows import JOB, NO_COLUMN, STATUSES

__all__ = ["FAULT_WORDS", "KernelPlan", "decode_column"]

WORD = {name: index for index, name in enumerate(JOB)}
FINISHED, NO_ROOM, TOO_LARGE, FAULTS_FULL = range(len(STATUSES))
FIRST_FAULTS = 64
FAULT_WORDS = 4
LEAST_SCRATCH = 64


class KernelPlan:
    """A plan in the form that kernels read."""

    def __init__(self, plan: ColumnPlan) -> None:
        self._plan = plan
        self._rows = np.array(plan.rows, np.int64).reshape(-1)
        self._operands = np.array([*plan.operands, 0], np.int64)
        self._constants = pa.py_buffer(bytes(plan.constants) or b"\0")

    def scratch(self, slots: int) -> Int32Array:
        """Allocate memory for what a kernel has to remember of one row."""
        return np.empty(slots, np.int32)

    def decode(
        self,
        kernel: Callable[[Int64Array], int],
        data: pa.Buffer,
        starts: Int64Array,
        ends: Int64Array,
        roots: Int64Array,
        *,
        allow_trailing: bool = False,
    ) -> tuple[pa.Array, Int64Array]:
        """Decode data[starts[i]:ends[i]] for each i with the plan's row roots[i]; -1 is a null.

        kernel: a function of kwire.native that takes a job. Returns the array and the table of faults. Raises
        OptionError if a column has more than 2 GiB.
        """
        buffers = ColumnBuffers(self._plan, len(starts), int((ends - starts).sum()))
        starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        table = np.empty((FIRST_FAULTS, FAULT_WORDS), np.int64)
        scratch = self.scratch(LEAST_SCRATCH)
        job = np.zeros(len(JOB), np.int64)
        job[WORD["COUNT"]], job[WORD["ALLOW_TRAILING"]] = len(starts), allow_trailing
        places = {"ROWS": self._rows, "OPERANDS": self._operands, "COLUMNS": buffers.words, "STARTS": starts}
        for name, array in (places | {"ENDS": ends, "ROOTS": roots}).items():
            job[WORD[name]] = array.ctypes.data
        job[WORD["CONSTANTS"]], job[WORD["BYTES"]] = self._constants.address, data.address
        while True:
            job[WORD["FAULTS"]], job[WORD["FAULT_CAPACITY"]] = table.ctypes.data, len(table)
            job[WORD["SCRATCH"]], job[WORD["SCRATCH_CAPACITY"]] = scratch.ctypes.data, len(scratch)
            status = kernel(job)
            if status == FINISHED:
                finished = [buffers.finished(each) for each in self._plan.columns]
                return assemble(self._plan.columns[0], finished), table[: int(job[WORD["FAULT_COUNT"]])].copy()
            column, needed = int(job[WORD["ROOM_COLUMN"]]), int(job[WORD["ROOM_NEEDED"]])
            if status == FAULTS_FULL:
                table = np.concatenate((table, np.empty((len(starts), FAULT_WORDS), np.int64)))
            elif status == NO_ROOM and column == NO_COLUMN:
                scratch = self.scratch(needed)
            elif status == NO_ROOM:
                done = int(job[WORD["DONE"]]) / max(len(starts), 1)
                buffers.grow(column, needed, bool(job[WORD["ROOM_IS_DATA"]]), done)
            else:
                path = ".".join(self._plan.columns[column].path)
                raise OptionError(
                    f"{path or 'the values'}: more than 2 GiB in one column; decode fewer values at a time"
                )


def decode_column(
    plan: KernelPlan,
    kernel: Literal["decode_json", "decode_protobuf"],
    read: Callable[[bytes], Any],
    type: pa.DataType,
    values: pa.Array,
    skip: Int64Array,
    writer: Int32Array,
) -> Decoded:
    """Decode an array of binary with the row ROOT of a plan; see SchemaDecoder.

    kernel: its name in kwire.native. read: decodes one value in plain Python, or raises DecodeError; called for rows
    that the kernel leaves, without compiled code for all. Raises OptionError if a column has more than 2 GiB.
    """
    data, starts, ends = binary_bounds(values)
    starts = starts + np.minimum(skip, ends - starts)
    wanted = (writer >= 0) & values.is_valid().to_numpy(zero_copy_only=False)
    array, rows = pa.nulls(len(values), type), np.flatnonzero(wanted)
    if native.LEVEL is not None:
        array, left = plan.decode(getattr(native, kernel), data, starts, ends, np.where(wanted, ROOT, -1))
        rows = left[:, 0]
    reread, errors = list[Any](), list[RowError]()
    places, view = np.arange(len(array)), memoryview(data)
    for row in rows.tolist():
        try:
            reread.append(read(bytes(view[starts[row] : ends[row]])))
            places[row] = len(array) + len(reread) - 1
        except DecodeError as error:
            errors.append(row_error(row, error))
    if reread:
        array = pa.concat_arrays([array, pa.array(reread, type)]).take(pa.array(places))
    return Decoded(array, errors)
