"""Decoding of Avro values, many at a time, into Arrow arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire import native
from kwire.errors import DecodeError, OptionError
from kwire.schemas.avro.buffers import ColumnBuffers, assemble, binary_bounds
from kwire.schemas.avro.faults import fault_error
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.plan import Plan, compile_plan
from kwire.schemas.avro.walker import Walker
from kwire.wire.value_rows import JOB, STATUSES

__all__ = ["Decoded", "Decoder", "Errors"]

Int64Array = npt.NDArray[np.int64]
WORD = {name: index for index, name in enumerate(JOB)}
FINISHED, NO_ROOM, TOO_LARGE, FAULTS_FULL = range(len(STATUSES))
FIRST_FAULTS = 64
FAULT_WORDS = 4


class Errors:
    """The values that cannot be decoded. rows: their indexes. positions: of the fault, from the start of the value."""

    def __init__(self, plan: Plan, table: Int64Array) -> None:
        self._plan = plan
        self._table = table
        self.rows: Int64Array = table[:, 0]
        self.positions: Int64Array = table[:, 2]

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[DecodeError]:
        return (self.error(index) for index in range(len(self)))

    def error(self, index: int) -> DecodeError:
        """Return the error of rows[index], with the path of the field."""
        _, fault, position, row = map(int, self._table[index])
        return fault_error(fault, position, self._plan.paths[row], self._plan.names[row])

    def message(self, index: int) -> str:
        """Return the error of rows[index] as text."""
        return str(self.error(index))


@dataclass(frozen=True, slots=True)
class Decoded:
    """The array, null where the value is null or has an error, and the errors."""

    array: pa.Array
    errors: Errors


class Decoder:
    """Decodes values of one or more writers' schemas into the Arrow type of the reader's schema.

    columns: dotted paths of the fields to decode, such as "id" and "items.price"; None for all. Values of others are
    skipped: their lengths are checked, their contents are not. allow_trailing: ignore bytes after a value.
    Raises InvalidSchema if a writer's values cannot be read as the reader's, OptionError for an unknown column.
    """

    def __init__(
        self,
        writers: Sequence[Schema],
        reader: Schema,
        *,
        columns: Sequence[str] | None = None,
        allow_trailing: bool = False,
    ) -> None:
        self._plan = compile_plan(writers, reader, columns)
        self._allow_trailing = allow_trailing
        self._rows = np.array(self._plan.rows, np.int64).reshape(-1)
        self._operands = np.array([*self._plan.operands, 0], np.int64)
        self._constants = pa.py_buffer(bytes(self._plan.constants) or b"\0")
        self._roots = np.array([*self._plan.roots, -1], np.int64)  # the last one for writer -1

    @property
    def type(self) -> pa.DataType:
        """The type of decoded arrays."""
        return self._plan.columns[0].type

    def decode(self, values: pa.Array, *, skip: npt.ArrayLike = 0, writer: npt.ArrayLike | None = None) -> Decoded:
        """Decode an array of binary.

        skip: number of bytes before each value, or one number for all. writer: for each value the index of its writer's
        schema, by default the first one; -1 makes it null.
        """
        data, starts, ends = binary_bounds(values)
        roots = self._row_roots(values, writer)
        before = np.asarray(skip, np.int64)
        if before.shape not in ((), (len(values),)) or (before < 0).any():
            raise OptionError("skip: expected a number of bytes, or one for each value")
        return self.decode_bounds(data, starts + np.minimum(before, ends - starts), ends, roots)

    def _row_roots(self, values: pa.Array, writer: npt.ArrayLike | None) -> Int64Array:
        """Return the first row of the plan for each value, -1 for nulls."""
        if writer is None:
            roots = np.full(len(values), self._roots[0], np.int64)
        else:
            index = np.asarray(writer, np.int64)
            count = len(self._plan.roots)
            if index.shape != (len(values),) or ((index < -1) | (index >= count)).any():
                raise OptionError(f"writer: expected an index below {count} for each value")
            roots = self._roots[index]
        if values.null_count:
            roots[values.is_null().to_numpy(zero_copy_only=False)] = -1
        return roots

    def decode_bounds(self, data: pa.Buffer, starts: Int64Array, ends: Int64Array, roots: Int64Array) -> Decoded:
        """Decode data[starts[i]:ends[i]] for each i with the plan's row roots[i]; -1 is a null."""
        if native.LEVEL is None:
            walker = Walker(self._plan, allow_trailing=self._allow_trailing)
            table = walker.run(data, starts, ends, roots)
            finished = [walker.finished(each) for each in self._plan.columns]
        else:
            buffers = ColumnBuffers(self._plan, len(starts), int((ends - starts).sum()))
            table = self._run(buffers, data, starts, ends, roots)
            finished = [buffers.finished(each) for each in self._plan.columns]
        return Decoded(assemble(self._plan.columns[0], finished), Errors(self._plan, table))

    def _run(
        self, buffers: ColumnBuffers, data: pa.Buffer, starts: Int64Array, ends: Int64Array, roots: Int64Array
    ) -> Int64Array:
        """Run the kernel; returns the table of faults."""
        starts, ends = np.ascontiguousarray(starts), np.ascontiguousarray(ends)
        table = np.empty((FIRST_FAULTS, FAULT_WORDS), np.int64)
        job = np.zeros(len(JOB), np.int64)
        job[WORD["COUNT"]], job[WORD["ALLOW_TRAILING"]] = len(starts), self._allow_trailing
        places = {"ROWS": self._rows, "OPERANDS": self._operands, "COLUMNS": buffers.words, "STARTS": starts}
        for name, array in (places | {"ENDS": ends, "ROOTS": roots}).items():
            job[WORD[name]] = array.ctypes.data
        job[WORD["CONSTANTS"]], job[WORD["BYTES"]] = self._constants.address, data.address
        while True:
            job[WORD["FAULTS"]], job[WORD["FAULT_CAPACITY"]] = table.ctypes.data, len(table)
            status = native.decode_values(job)
            if status == FINISHED:
                return table[: int(job[WORD["FAULT_COUNT"]])].copy()
            if status == FAULTS_FULL:
                table = np.concatenate((table, np.empty((len(starts), FAULT_WORDS), np.int64)))
            elif status == NO_ROOM:
                done = int(job[WORD["DONE"]]) / max(len(starts), 1)
                column, needed = int(job[WORD["ROOM_COLUMN"]]), int(job[WORD["ROOM_NEEDED"]])
                buffers.grow(column, needed, bool(job[WORD["ROOM_IS_DATA"]]), done)
            else:
                path = ".".join(self._plan.columns[int(job[WORD["ROOM_COLUMN"]])].path)
                raise OptionError(
                    f"{path or 'the values'}: more than 2 GiB in one column; decode fewer values at a time"
                )
