"""Encoding of Arrow arrays as Avro values, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.schemas.avro.columns import arrow_type
from kwire.schemas.avro.encode_plan import EncodePlan, bind, compile_encode_plan
from kwire.schemas.avro.model import Schema
from kwire.schemas.avro.writing import PlainWriter
from kwire.wire.value_rows import MAX_OFFSET, SOURCE, STATUSES, WRITE_FAULTS, WRITE_JOB

__all__ = ["EncodeErrors", "Encoded", "Encoder"]

Int64Array = npt.NDArray[np.int64]
WORD = {name.removeprefix("WRITE_JOB_"): index for index, name in enumerate(WRITE_JOB)}
FINISHED, NO_ROOM, _, FAULTS_FULL = range(len(STATUSES))
FIRST_FAULTS, FAULT_WORDS = 64, 3
ROW_BYTES = 32
TEXTS = {
    "WRITE_IS_NULL": "null, but {name} has no null",
    "WRITE_BAD_SIZE": "{name}: value of another size",
    "WRITE_BAD_SYMBOL": "{name}: not one of the symbols",
    "WRITE_BAD_DECIMAL": "{name}: number too large",
    "WRITE_MANY_MEMBERS": "{name}: more than one member is not null",
    "WRITE_NO_MEMBER": "null, but {name} has no null",
}


class EncodeErrors:
    """The values that cannot be encoded. rows: their indexes."""

    def __init__(self, plan: EncodePlan, table: Int64Array) -> None:
        self._plan = plan
        self._table = table
        self.rows: Int64Array = table[:, 0]

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[EncodeError]:
        return (self.error(index) for index in range(len(self)))

    def error(self, index: int) -> EncodeError:
        """Return the error of rows[index], with the path of the field."""
        _, fault, row = map(int, self._table[index])
        path = self._plan.paths[row]
        return EncodeError(TEXTS[WRITE_FAULTS[fault]].format(name=self._plan.types[row]), (path,) if path else ())

    def message(self, index: int) -> str:
        """Return the error of rows[index] as text."""
        return str(self.error(index))


@dataclass(frozen=True, slots=True)
class Encoded:
    """The values as binary, null where the value is null or has an error, and the errors."""

    array: pa.Array
    errors: EncodeErrors


class Encoder:
    """Encodes Arrow values with a schema.

    type: of the values; by default what a Decoder of the schema makes. Columns are matched to fields by name; fields
    without a column have their default. Raises InvalidSchema for columns that do not fit.
    """

    def __init__(self, schema: Schema, type: pa.DataType | None = None) -> None:
        self.type = arrow_type(schema) if type is None else type
        self._plan = compile_encode_plan(schema, self.type)
        self._rows = np.array(self._plan.rows, np.int64).reshape(-1)
        self._operands = np.array([*self._plan.operands, 0], np.int64)
        self._constants = pa.py_buffer(bytes(self._plan.constants) or b"\0")

    def encode(self, values: pa.Array, *, prefix: bytes = b"") -> Encoded:
        """Encode an array; prefix: bytes before each value.

        Raises OptionError for an array of another type or above 2 GiB of output, EncodeError if a column cannot be
        converted to the schema's type, such as a number above 32 bits for an int.
        """
        if values.type != self.type:
            raise OptionError(f"values are {values.type}, expected {self.type}")
        bound: dict[int, pa.Array] = {}
        bind(values, self._plan.columns[0], bound)
        nulls = values.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
        ends = np.zeros(len(values) + 1, np.int32)
        if native.LEVEL is None:
            out, table = PlainWriter(self._plan, bound).run(prefix, nulls, ends)
        else:
            out, table = self._run(bound, prefix, nulls, ends)
        validity = pa.py_buffer(np.packbits(nulls == 0, bitorder="little")) if nulls.any() else None
        array = pa.Array.from_buffers(pa.binary(), len(values), [validity, pa.py_buffer(ends), out])
        return Encoded(array, EncodeErrors(self._plan, table))

    def _run(
        self, bound: dict[int, pa.Array], prefix: bytes, nulls: npt.NDArray[np.uint8], ends: npt.NDArray[np.int32]
    ) -> tuple[pa.Buffer, Int64Array]:
        """Run the kernel; returns the output and the table of faults."""
        sources = np.zeros((len(self._plan.columns), len(SOURCE)), np.int64)
        for number, array in bound.items():
            sources[number] = source_words(array)
        table = np.empty((FIRST_FAULTS, FAULT_WORDS), np.int64)
        job = np.zeros(len(WRITE_JOB), np.int64)
        places: dict[str, npt.NDArray[np.generic]] = {
            "ROWS": self._rows,
            "OPERANDS": self._operands,
            "SOURCES": sources,
            "NULLS": nulls,
            "ENDS": ends,
        }
        for name, place in places.items():
            job[WORD[name]] = place.ctypes.data
        before = pa.py_buffer(prefix or b"\0")
        job[WORD["CONSTANTS"]], job[WORD["PREFIX"]] = self._constants.address, before.address
        job[WORD["PREFIX_SIZE"]], job[WORD["ROOT"]], job[WORD["COUNT"]] = len(prefix), self._plan.root, len(nulls)
        out = self.allocate(min(MAX_OFFSET, len(nulls) * (len(prefix) + ROW_BYTES) + 64))
        while True:
            job[WORD["OUT"]], job[WORD["CAPACITY"]] = out.address, out.size
            job[WORD["FAULTS"]], job[WORD["FAULT_CAPACITY"]] = table.ctypes.data, len(table)
            status = native.encode_avro(job)
            if status == FINISHED:
                used = int(job[WORD["USED"]])
                return self.resized(out, used, used), table[: int(job[WORD["FAULT_COUNT"]])].copy()
            if status == FAULTS_FULL:
                table = np.concatenate((table, np.empty((len(nulls), FAULT_WORDS), np.int64)))
                continue
            if out.size == MAX_OFFSET:
                raise OptionError("the values: more than 2 GiB in one column; encode fewer values at a time")
            done, used = int(job[WORD["DONE"]]), int(job[WORD["USED"]])
            estimate = int(used / done * len(nulls) * 1.1) if done > 100 else 0
            out = self.resized(out, min(MAX_OFFSET, max(2 * out.size, estimate)), used)

    def allocate(self, n_bytes: int) -> pa.Buffer:
        """Allocate memory for output."""
        return pa.allocate_buffer(n_bytes, resizable=True)

    def resized(self, buffer: pa.Buffer, n_bytes: int, used: int) -> pa.Buffer:
        """Return the buffer with another size; its first `used` bytes are kept."""
        buffer.resize(n_bytes, shrink_to_fit=True)
        return buffer


def source_words(array: pa.Array) -> tuple[int, int, int, int]:
    """Return the words that the kernel reads an array by."""
    kind, offset = array.type, array.offset
    buffers = [each.address if each is not None else 0 for each in array.buffers()[:3]]
    validity = buffers[0] if array.null_count else 0
    if pa.types.is_struct(kind) or pa.types.is_null(kind):
        return validity, offset, 0, 0
    if pa.types.is_boolean(kind):
        return validity, offset, buffers[1], 0
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return validity, offset, buffers[2], buffers[1] + 4 * offset
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return validity, offset, 0, buffers[1] + 4 * offset
    return validity, offset, buffers[1] + offset * (kind.bit_width // 8), 0
