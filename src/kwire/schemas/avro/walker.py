"""The rows of a plan in plain Python: the oracle of the kernel, and what decodes without compiled code.

It makes the same columns and reports the same faults as `native/avro_reading.c`, row by row of the plan.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire.schemas.avro.faults import FAULT
from kwire.schemas.avro.plan import Plan
from kwire.schemas.buffers import Buffers
from kwire.schemas.column_plan import Column
from kwire.wire.value_rows import MAX_DEPTH, NUMBERS, OPERATIONS, SPARE_ITEMS

__all__ = ["Walker"]

LEAST_BLOCK = -(2**63)
INT, LONG = 5, 10
INT32, INT64, FLOAT32, FLOAT64 = range(len(NUMBERS))
NO_LIMIT = 2**63 - 1


class Fault(Exception):
    """A fault in the bytes. position: in the data."""

    def __init__(self, name: str, position: int) -> None:
        super().__init__(name)
        self.number, self.position = FAULT[name], position
        self.row = -1


class Values:
    """The values of one column: bytes for each, or ends of what other columns have."""

    def __init__(self, column: Column) -> None:
        self.column = column
        self.length = 0
        self.valid = bytearray()
        self.data = bytearray()
        self.ends = array("i", [0])
        self.children: list[Values] = []

    def add(self, data: bytes = b"", valid: bool = True) -> None:
        """Append a value; data: its bytes, one for a column of bits."""
        self.length += 1
        self.valid.append(valid)
        self.data += data
        if self.column.kind == "BINARY":
            self.ends.append(len(self.data))
        elif self.column.kind == "LIST":
            self.ends.append(self.children[0].length)

    def add_null(self) -> None:
        """Append a null, or any value where the column has no nulls."""
        column = self.column
        if column.kind == "STRUCT":
            for each in self.children:
                each.add_null()
        self.add(bytes(column.width if column.kind == "WIDE" else column.kind == "BITS"), valid=not column.nullable)

    def truncate(self, length: int) -> None:
        """Remove the values after the first `length` ones."""
        column = self.column
        self.length = length
        del self.valid[length:]
        if column.kind in ("BINARY", "LIST"):
            del self.ends[length + 1 :]
        if column.kind == "BINARY":
            del self.data[self.ends[length] :]
        elif column.kind in ("WIDE", "BITS"):
            del self.data[length * (column.width or 1) :]
        for each in self.children:
            each.truncate(self.ends[length] if column.kind == "LIST" else length)

    def buffers(self) -> Buffers:
        """Return the buffers of the column, as Arrow orders them."""
        kind, nullable = self.column.kind, self.column.nullable and self.column.kind != "NOTHING"
        buffers: Buffers = [_bits(self.valid) if nullable else None]
        if kind in ("BINARY", "LIST"):
            buffers.append(pa.py_buffer(self.ends))
        if kind in ("WIDE", "BINARY"):
            buffers.append(pa.py_buffer(bytes(self.data)))
        elif kind == "BITS":
            buffers.append(_bits(self.data))
        return buffers


def _bits(flags: bytearray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.frombuffer(flags, np.uint8), bitorder="little"))


class Walker:
    """Decodes values into columns. It is used once."""

    def __init__(self, plan: Plan, *, allow_trailing: bool = False) -> None:
        self.plan = plan
        self.allow_trailing = allow_trailing
        self.values = [Values(column) for column in plan.columns]
        for each in self.values:
            each.children = [self.values[child.number] for child in each.column.children]
        self.data: memoryview | bytes = b""
        self.pos = self.end = self.depth = self.spare_items = 0

    def run(
        self,
        data: pa.Buffer,
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        roots: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.int64]:
        """Decode data[starts[i]:ends[i]] for each i; returns the table of faults, as the kernel writes it."""
        faults = []
        source, root = memoryview(data).cast("B"), self.values[0]
        for i, (start, end, first) in enumerate(zip(starts.tolist(), ends.tolist(), roots.tolist(), strict=True)):
            if first < 0:
                root.add_null()
                continue
            self.data, self.pos, self.end = source, start, end
            self.depth, self.spare_items = 0, SPARE_ITEMS + end - start
            try:
                self.value(first)
                if self.pos != end and not self.allow_trailing:
                    fault = Fault("TRAILING", self.pos)
                    fault.row = first
                    raise fault
            except Fault as fault:
                root.truncate(i)
                root.add_null()
                faults.append((i, fault.number, fault.position - start, fault.row))
        return np.array(faults, np.int64).reshape(-1, 4)

    def finished(self, column: Column) -> tuple[int, Buffers]:
        """Return the number of values in a column, and its buffers."""
        values = self.values[column.number]
        return values.length, values.buffers()

    def value(self, number: int) -> None:
        """Read the value of a row."""
        row = self.plan.rows[number]
        operation = OPERATIONS[row[0]]
        try:
            if operation in LEAVES:
                LEAVES[operation](self, row, self.values[row[1]])
                return
            if self.depth >= MAX_DEPTH:
                raise Fault("TOO_DEEP", self.pos)
            self.depth += 1
            NESTED[operation](self, row, self.values[row[1]])
            self.depth -= 1
        except RecursionError:  # two calls for each level: Python's limit may be reached before MAX_DEPTH
            raise Fault("TOO_DEEP", self.pos) from None
        except Fault as fault:
            if fault.row < 0:
                fault.row = number
            raise

    # Bytes

    def varint(self, most: int) -> int:
        """Read a number of at most this many bytes; an int leaves the position where it is if it is invalid."""
        pos, bits, shift = self.pos, 0, 0
        last, greatest = (28, 15) if most == INT else (63, 1)
        while True:
            if pos >= self.end:
                raise Fault("TRUNCATED", self.pos)
            byte = self.data[pos]
            pos += 1
            if shift == last and byte > greatest:
                raise Fault("INT_TOO_LONG" if most == INT else "LONG_TOO_LONG", self.pos)
            bits |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self.pos = pos
        return (bits >> 1) ^ -(bits & 1)

    def length(self) -> int:
        """Read a length, checked against the remaining bytes."""
        start = self.pos
        size = self.varint(LONG)
        if 0 <= size <= self.end - self.pos:
            return size
        raise Fault("NEGATIVE_LENGTH" if size < 0 else "LENGTH_TOO_LARGE", start)

    def take(self, size: int) -> bytes:
        """Read this many bytes."""
        if self.end - self.pos < size:
            raise Fault("TRUNCATED", self.pos)
        self.pos += size
        return bytes(self.data[self.pos - size : self.pos])

    def index(self, count: int, fault: str) -> int:
        """Read an index below count."""
        start = self.pos
        index = self.varint(INT)
        if 0 <= index < count:
            return index
        raise Fault(fault, start)

    def block(self, least: int) -> tuple[int, int, int]:
        """Read the count of a block; returns it, where the block starts, and where it ends, -1 if that is not known."""
        start, block_end = self.pos, -1
        count = self.varint(LONG)
        if count == LEAST_BLOCK:
            raise Fault("TOO_MANY_ITEMS", start)
        if count < 0:
            count = -count
            size = self.length()
            block_end = self.pos + size
        if least and count > (self.end - self.pos) // least:
            raise Fault("TOO_MANY_ITEMS", start)
        if not least:
            if count > self.spare_items:
                raise Fault("TOO_MANY_EMPTY", start)
            self.spare_items -= count
        return count, start, block_end

    # Rows without rows inside

    def read_null(self, row: list[int], values: Values) -> None:
        """Append a null."""
        values.add_null()

    def read_boolean(self, row: list[int], values: Values) -> None:
        """Read a byte of 0 or 1."""
        start = self.pos
        data = self.take(1)
        if data[0] > 1:
            raise Fault("BAD_BOOLEAN", start)
        values.add(data)

    def read_int32(self, row: list[int], values: Values) -> None:
        """Read an int."""
        values.add(struct.pack("<i", self.varint(INT)))

    def read_int64(self, row: list[int], values: Values) -> None:
        """Read a long within limits."""
        start = self.pos
        number = self.varint(LONG)
        if not row[3] <= number <= row[4]:
            raise Fault("OUT_OF_RANGE", start)
        values.add(struct.pack("<q", number * row[2]))

    def read_real(self, row: list[int], values: Values) -> None:
        """Read a float or double."""
        values.add(self.take(values.column.width))

    def read_number(self, row: list[int], values: Values) -> None:
        """Read a number of one type as one of another."""
        start, (source, target, via) = self.pos, row[2:5]
        if source == FLOAT32:
            values.add(struct.pack("<d", *struct.unpack("<f", self.take(4))))
            return
        number = self.varint(INT if source == INT32 else LONG)
        if target == INT64:
            if not row[6] <= number <= row[7]:
                raise Fault("OUT_OF_RANGE", start)
            values.add(struct.pack("<q", number * row[5]))
        elif target == FLOAT32:
            values.add(np.float32(np.int64(number)).tobytes())
        else:
            values.add(struct.pack("<d", np.float32(np.int64(number)) if via else number))

    def read_bytes(self, row: list[int], values: Values) -> None:
        """Read a length, and bytes or UTF-8."""
        start = self.pos
        data = self.take(self.length())
        if row[2]:
            try:
                data.decode()
            except UnicodeDecodeError:
                raise Fault("BAD_UTF8", start) from None
        values.add(data)

    def read_fixed(self, row: list[int], values: Values) -> None:
        """Read bytes."""
        values.add(self.take(row[2]))

    def read_enum(self, row: list[int], values: Values) -> None:
        """Read the index of a symbol."""
        start = self.pos
        place = row[2] + 2 * self.index(row[3], "BAD_SYMBOL")
        offset, size = self.plan.operands[place : place + 2]
        if offset < 0:
            raise Fault("NO_SYMBOL", start)
        values.add(bytes(self.plan.constants[offset : offset + size]))

    def read_decimal(self, row: list[int], values: Values) -> None:
        """Read a big-endian number."""
        start, width = self.pos, values.column.width
        data = self.take(self.length() if row[2] < 0 else row[2])
        number = int.from_bytes(data, "big", signed=True)
        limit = int.from_bytes(self.plan.constants[row[3] : row[3] + width], "little")
        if not data or abs(number) >= limit:
            raise Fault("BAD_DECIMAL", start)
        values.add(number.to_bytes(width, "little", signed=True))

    def read_unresolved(self, row: list[int], values: Values) -> None:
        """Reject a branch that the reader's schema lacks."""
        raise Fault("NO_BRANCH", self.pos)

    def skip_fixed(self, row: list[int], values: Values) -> None:
        """Skip bytes."""
        self.take(row[2])

    def skip_number(self, row: list[int], values: Values) -> None:
        """Skip an int or a long."""
        self.varint(row[2])

    def skip_bytes(self, row: list[int], values: Values) -> None:
        """Skip a length and bytes."""
        self.take(self.length())

    def skip_enum(self, row: list[int], values: Values) -> None:
        """Skip the index of a symbol."""
        self.index(row[3], "BAD_SYMBOL")

    # Rows with rows inside

    def read_steps(self, row: list[int], values: Values) -> None:
        """Read or skip the fields of a record."""
        for number in self.plan.operands[row[2] : row[2] + row[3]]:
            self.value(number)

    def read_record(self, row: list[int], values: Values) -> None:
        """Read a record into a struct."""
        self.read_steps(row, values)
        values.add()

    def read_list(self, row: list[int], values: Values) -> None:
        """Read the blocks of an array or a map."""
        is_map = OPERATIONS[row[0]] == "MAP"
        while True:
            count, start, block_end = self.block(row[4])
            if not count:
                break
            for _ in range(count):
                if is_map:
                    self.value(row[5])
                self.value(row[2])
                if is_map:
                    values.children[0].add()
            if block_end not in (-1, self.pos):
                raise Fault("BAD_BLOCK", start)
        values.add()

    def skip_list(self, row: list[int], values: Values) -> None:
        """Skip the blocks of an array or a map."""
        is_map = OPERATIONS[row[0]] == "SKIP_MAP"
        while True:
            count, _, block_end = self.block(row[4])
            if not count:
                return
            if block_end >= 0:
                self.pos = block_end
            elif row[3] >= 0:
                self.pos += count * row[3]
            else:
                for _ in range(count):
                    if is_map:
                        self.take(self.length())
                    self.value(row[2])

    def read_union(self, row: list[int], values: Values) -> None:
        """Read or skip the index of a branch, and its value."""
        start = self.pos
        branch = self.plan.operands[row[2] + self.index(row[3], "BAD_BRANCH")]
        if OPERATIONS[self.plan.rows[branch][0]] == "UNRESOLVED":
            self.pos = start
        self.value(branch)

    def read_member(self, row: list[int], values: Values) -> None:
        """Read a value as one member of a struct."""
        for index, each in enumerate(values.children):
            if index != row[3]:
                each.add_null()
        self.value(row[2])
        values.add()

    def read_constant(self, row: list[int], values: Values) -> None:
        """Read a default."""
        before = self.data, self.pos, self.end, self.spare_items
        self.data, self.pos, self.end = bytes(self.plan.constants), row[3], row[3] + row[4]
        self.spare_items = NO_LIMIT
        self.value(row[2])
        self.data, self.pos, self.end, self.spare_items = before


Operation = Callable[[Walker, list[int], Values], None]
LEAVES: dict[str, Operation] = {
    "NULL": Walker.read_null,
    "BOOLEAN": Walker.read_boolean,
    "INT": Walker.read_int32,
    "LONG": Walker.read_int64,
    "FLOAT": Walker.read_real,
    "DOUBLE": Walker.read_real,
    "NUMBER": Walker.read_number,
    "BYTES": Walker.read_bytes,
    "FIXED": Walker.read_fixed,
    "ENUM": Walker.read_enum,
    "DECIMAL": Walker.read_decimal,
    "UNRESOLVED": Walker.read_unresolved,
    "SKIP_FIXED": Walker.skip_fixed,
    "SKIP_NUMBER": Walker.skip_number,
    "SKIP_BYTES": Walker.skip_bytes,
    "SKIP_ENUM": Walker.skip_enum,
}
NESTED: dict[str, Operation] = {
    "RECORD": Walker.read_record,
    "ARRAY": Walker.read_list,
    "MAP": Walker.read_list,
    "UNION": Walker.read_union,
    "MEMBER": Walker.read_member,
    "CONSTANT": Walker.read_constant,
    "SKIP_RECORD": Walker.read_steps,
    "SKIP_ARRAY": Walker.skip_list,
    "SKIP_MAP": Walker.skip_list,
    "SKIP_UNION": Walker.read_union,
}
