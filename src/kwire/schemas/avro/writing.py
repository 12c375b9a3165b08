"""Arrow values to Avro, row by row of a plan: writes what the kernel leaves, or says why it cannot be written.

Without compiled code it writes everything.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from kwire.errors import EncodeError
from kwire.schemas.avro.defaults import zigzag
from kwire.schemas.avro.encode_plan import EncodePlan
from kwire.wire.value_rows import WRITE_OPERATIONS

__all__ = ["ValueWriter"]


class Fault(Exception):
    """A value that cannot be written. what: with a place for the name of the type."""


class Source:
    """The values of an array."""

    def __init__(self, array: pa.Array) -> None:
        self.kind = array.type
        self.valid = array.is_valid().to_pylist()
        self.values: list[object] = []
        self.offsets: list[int] = []
        if pa.types.is_list(self.kind) or pa.types.is_map(self.kind):
            self.offsets = array.offsets.to_pylist()
        elif pa.types.is_decimal(self.kind):
            width = self.kind.bit_width // 8
            data = array.buffers()[1].to_pybytes()[array.offset * width :] if len(array) else b""
            self.values = [
                int.from_bytes(data[i : i + width], "little", signed=True) for i in range(0, len(data), width)
            ]
        elif pa.types.is_temporal(self.kind) or pa.types.is_floating(self.kind):
            self.values = array.view(pa.int64() if self.kind.bit_width == 64 else pa.int32()).to_pylist()
        elif pa.types.is_string(self.kind):
            self.values = array.view(pa.binary()).to_pylist()
        elif not pa.types.is_struct(self.kind):
            self.values = array.to_pylist()


class ValueWriter:
    """Encodes the rows of an array. bound: arrays by the columns' numbers."""

    def __init__(self, plan: EncodePlan, bound: Mapping[int, pa.Array]) -> None:
        self.plan = plan
        self.sources = {number: Source(array) for number, array in bound.items()}
        self.out = bytearray()

    def write(self, at: int) -> bytes:
        """Return the bytes of the value at an index. Raises EncodeError with the path."""
        self.out.clear()
        self.value(self.plan.root, at)
        return bytes(self.out)

    def value(self, number: int, at: int) -> None:
        """Write the value of a row, at an index of its source."""
        try:
            self.any(self.plan.rows[number], at)
        except Fault as fault:
            path, name = self.plan.paths[number], self.plan.types[number]
            raise EncodeError(str(fault).format(name=name), (path,) if path else ()) from None

    def any(self, row: list[int], at: int) -> None:
        """Write a value that may be null."""
        operation = WRITE_OPERATIONS[row[0]]
        if operation == "WRITE_NULL":
            return
        if operation == "WRITE_CONSTANT":
            self.out += self.plan.constants[row[2] : row[2] + row[3]]
        elif operation == "WRITE_MEMBERS":
            self.members(row, at)
        elif operation == "WRITE_BRANCH" or (operation == "WRITE_NULLABLE" and self.sources[row[1]].valid[at]):
            self.out += zigzag(row[4])
            self.value(row[2], at)
        elif operation == "WRITE_NULLABLE":
            self.out += zigzag(row[3])
        elif self.sources[row[1]].valid[at]:
            self.present(operation, row, self.sources[row[1]], at)
        else:
            raise Fault("null, but {name} has no null")

    def members(self, row: list[int], at: int) -> None:
        """Write the member of a union that is not null."""
        present = []
        for i in range(row[2], row[2] + 3 * row[3], 3):
            index, number, source = self.plan.operands[i : i + 3]
            if self.sources[row[1]].valid[at] and self.sources[source].valid[at]:
                present.append((index, number))
        if len(present) > 1:
            raise Fault("{name}: more than one member is not null")
        if present:
            self.out += zigzag(present[0][0])
            self.value(present[0][1], at)
        elif row[4] < 0:
            raise Fault("null, but {name} has no null")
        else:
            self.out += zigzag(row[4])

    def present(self, operation: str, row: list[int], source: Source, at: int) -> None:
        """Write a value that is not null."""
        if operation == "WRITE_RECORD":
            for number in self.plan.operands[row[2] : row[2] + row[3]]:
                self.value(number, at)
        elif operation in ("WRITE_ARRAY", "WRITE_MAP"):
            first, end = source.offsets[at : at + 2]
            if end > first:
                self.out += zigzag(end - first)
            for i in range(first, end):
                if operation == "WRITE_MAP":
                    self.value(row[3], i)
                self.value(row[2], i)
            self.out += b"\0"
        else:
            self.out += self.leaf(operation, row, source.values[at])

    def leaf(self, operation: str, row: list[int], value: object) -> bytes:
        """Return the bytes of a value without values inside."""
        if isinstance(value, bool):
            return bytes([value])
        if isinstance(value, int):
            if operation == "WRITE_PLAIN":
                return value.to_bytes(row[2], "little", signed=True)
            if operation == "WRITE_DECIMAL":
                return self.decimal(row, value)
            return zigzag(value // row[2] if operation == "WRITE_LONG" else value)
        assert isinstance(value, bytes)
        if operation == "WRITE_BYTES":
            return zigzag(len(value)) + value
        if operation == "WRITE_FIXED":
            if len(value) != row[2]:
                raise Fault("{name}: value of another size")
            return value
        for index in range(row[3]):
            place, size = self.plan.operands[row[2] + 2 * index : row[2] + 2 * index + 2]
            if self.plan.constants[place : place + size] == value:
                return zigzag(index)
        raise Fault("{name}: not one of the symbols")

    def decimal(self, row: list[int], value: int) -> bytes:
        """Return a number as bytes, as few as possible unless they are fixed."""
        least = (value + (value < 0)).bit_length() // 8 + 1
        if row[2] < 0:
            return zigzag(least) + value.to_bytes(least, "big", signed=True)
        if least > row[2]:
            raise Fault("{name}: number too large")
        return value.to_bytes(row[2], "big", signed=True)
