"""Encoding with a plan: by a kernel into output that grows as needed; what it leaves, in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire import native
from kwire.errors import EncodeError, OptionError
from kwire.schemas.column_plan import Column, RowPlan
from kwire.wire.value_rows import MAX_OFFSET, ROW_IS_LEFT, SOURCE, STATUSES, WRITE_JOB

__all__ = ["PlanEncoder", "bind"]

WORD = {name.removeprefix("WRITE_JOB_"): index for index, name in enumerate(WRITE_JOB)}
FINISHED = STATUSES.index("FINISHED")
ROW_BYTES = 32
NO_BYTES = pa.py_buffer(b"\0")
"""Stands for the bytes of an array without any: C's memcpy and memcmp take no null pointer, not even for 0 bytes."""
Kernel = Literal["encode_avro", "encode_json", "encode_protobuf"]
Write = Callable[[pa.Array], Iterable[bytes | EncodeError]]


class PlanEncoder:
    """Encodes values with the row `root` of a plan. kernel: its name in kwire.native.

    write: encodes an array in plain Python, or says for each value why it cannot be encoded; called for the rows that
    the kernel leaves, without compiled code for all.
    """

    def __init__(self, plan: RowPlan, root: int, kernel: Kernel, write: Write) -> None:
        self._kernel, self._root, self._write, self._columns = kernel, root, write, len(plan.columns)
        self._rows = np.array(plan.rows, np.int64).reshape(-1)
        self._operands = np.array([*plan.operands, 0], np.int64)
        self._constants = pa.py_buffer(bytes(plan.constants) or b"\0")

    def encode(
        self, values: pa.Array, bound: Mapping[int, pa.Array], prefix: bytes
    ) -> tuple[pa.Array, list[tuple[int, EncodeError]]]:
        """Encode an array; returns it as binary, and the errors of the rows that are null because of one.

        bound: the arrays inside of it, by the numbers that the plan's rows have. prefix: bytes before each value.
        Raises OptionError above 2 GiB of output.
        """
        nulls = values.is_null().to_numpy(zero_copy_only=False).astype(np.uint8)
        if native.LEVEL is None:
            array = pa.nulls(len(values), pa.binary())
            left = np.flatnonzero(nulls == 0)
        else:
            array = self._run_kernel(bound, prefix, nulls)
            left = np.flatnonzero(nulls == ROW_IS_LEFT)
        if not len(left):
            return array, []
        written, errors = list[bytes](), list[tuple[int, EncodeError]]()
        places = np.arange(len(array))
        for row, each in zip(left.tolist(), self._write(values.take(pa.array(left))), strict=True):
            if isinstance(each, EncodeError):
                errors.append((row, each))
            else:
                written.append(prefix + each)
                places[row] = len(array) + len(written) - 1
        if written:
            made = pa.array(written, pa.binary())
            if isinstance(made, pa.ChunkedArray):
                raise _too_large()
            array = pa.concat_arrays([array, made]).take(pa.array(places))
        return array, errors

    def _run_kernel(self, bound: Mapping[int, pa.Array], prefix: bytes, nulls: npt.NDArray[np.uint8]) -> pa.Array:
        """Return the array, and mark the rows that the kernel leaves."""
        sources = np.zeros((self._columns, len(SOURCE)), np.int64)
        for number, array in bound.items():
            sources[number] = source_words(array)
        ends = np.zeros(len(nulls) + 1, np.int32)
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
        job[WORD["PREFIX_SIZE"]], job[WORD["ROOT"]], job[WORD["COUNT"]] = len(prefix), self._root, len(nulls)
        out = self.allocate(min(MAX_OFFSET, len(nulls) * (len(prefix) + ROW_BYTES) + 64))
        while True:
            job[WORD["OUT"]], job[WORD["CAPACITY"]] = out.address, out.size
            status = getattr(native, self._kernel)(job)
            done, used = int(job[WORD["DONE"]]), int(job[WORD["USED"]])
            if status == FINISHED:
                break
            if out.size == MAX_OFFSET:
                raise _too_large()
            estimate = int(used / done * len(nulls) * 1.1) if done > 100 else 0
            out = self.resized(out, min(MAX_OFFSET, max(2 * out.size, estimate)), used)
        out = self.resized(out, used, used)
        validity = pa.py_buffer(np.packbits(nulls == 0, bitorder="little")) if nulls.any() else None
        return pa.Array.from_buffers(pa.binary(), len(nulls), [validity, pa.py_buffer(ends), out])

    def allocate(self, n_bytes: int) -> pa.Buffer:
        """Allocate memory for output."""
        return pa.allocate_buffer(n_bytes, resizable=True)

    def resized(self, buffer: pa.Buffer, n_bytes: int, used: int) -> pa.Buffer:
        """Return the buffer with another size; its first `used` bytes are kept."""
        buffer.resize(n_bytes, shrink_to_fit=True)
        return buffer


def bind(array: pa.Array, column: Column, bound: dict[int, pa.Array]) -> None:
    """Add an array of the column's type and those inside to bound, by the columns' numbers."""
    bound[column.number] = array
    if not column.children:  # also of a value that plain Python writes
        return
    if pa.types.is_struct(array.type):
        inside = [array.field(index) for index in range(array.type.num_fields)]
    elif pa.types.is_map(array.type):
        inside = [array.keys, array.items]
    else:
        inside = [array.values]
    for child, each in zip(column.children, inside, strict=True):
        bind(each, child, bound)


def _too_large() -> OptionError:
    return OptionError("the values: more than 2 GiB in one column; encode fewer values at a time")


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
        return validity, offset, buffers[2] or NO_BYTES.address, buffers[1] + 4 * offset
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        return validity, offset, 0, buffers[1] + 4 * offset
    return validity, offset, buffers[1] + offset * (kind.bit_width // 8), 0
