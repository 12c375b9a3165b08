"""Values of Avro to Python objects, row by row of a plan: reads what the kernel leaves, and says what is wrong with it.

Without compiled code it reads everything. It accepts the same bytes as `native/avro_reading.c`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from kwire.errors import DecodeError, Malformed, Truncated
from kwire.schemas.avro.plan import Plan
from kwire.schemas.column_plan import Column
from kwire.wire.value_rows import MAX_DEPTH, NUMBERS, OPERATIONS, SPARE_ITEMS

__all__ = ["ValueReader"]

LEAST_BLOCK = -(2**63)
INT, LONG = 5, 10
INT32, INT64, FLOAT32, FLOAT64 = range(len(NUMBERS))
NO_LIMIT = 2**63 - 1
ENDS_EARLY = "{name}: the value ends early"
BAD_SYMBOL = "{name}: no symbol has this index"
TOO_DEEP = "{name}: nested too deep"
TOO_MANY_ITEMS = "{name}: more items than the remaining bytes can hold"


class Fault(Exception):
    """A fault in the bytes. what: with a place for the name of the type. position: in the value."""

    def __init__(self, what: str, position: int, kind: type[DecodeError] = Malformed) -> None:
        super().__init__(what)
        self.what, self.position, self.kind = what, position, kind


class ValueReader:
    """Reads values one after the other. allow_trailing: ignore bytes after a value."""

    def __init__(self, plan: Plan, *, allow_trailing: bool = False) -> None:
        self.plan = plan
        self.allow_trailing = allow_trailing
        self.made: list[Any] = [None] * len(plan.columns)  # the last value of each column
        self.constants = bytes(plan.constants)
        self.data = b""
        self.pos = self.end = self.depth = self.spare_items = 0

    def read(self, data: bytes, root: int) -> Any:
        """Return a value as Arrow takes it, read with the plan's row `root`. Raises DecodeError with the path."""
        self.data, self.pos, self.end = data, 0, len(data)
        self.depth, self.spare_items = 0, SPARE_ITEMS + len(data)
        self.value(root)
        if self.pos != self.end and not self.allow_trailing:
            raise Malformed("bytes remaining after the value; was it written with another schema?", self.pos)
        return self.made[0]

    def value(self, number: int) -> None:
        """Read the value of a row."""
        row = self.plan.rows[number]
        operation = OPERATIONS[row[0]]
        try:
            if operation in LEAVES:
                return LEAVES[operation](self, row, self.plan.columns[row[1]])
            if self.depth >= MAX_DEPTH:
                raise Fault(TOO_DEEP, self.pos)
            self.depth += 1
            NESTED[operation](self, row, self.plan.columns[row[1]])
            self.depth -= 1
            return None
        except RecursionError:  # two calls for each level: Python's limit may be reached before MAX_DEPTH
            fault = Fault(TOO_DEEP, self.pos)
        except Fault as error:
            fault = error
        path, name = self.plan.paths[number], self.plan.types[number]
        raise fault.kind(fault.what.format(name=name), fault.position, (path,) if path else ())

    # Bytes

    def varint(self, most: int) -> int:
        """Read a number of at most this many bytes; an int leaves the position where it is if it is invalid."""
        pos, bits, shift = self.pos, 0, 0
        last, greatest = (28, 15) if most == INT else (63, 1)
        while True:
            if pos >= self.end:
                raise Fault(ENDS_EARLY, self.pos, Truncated)
            byte = self.data[pos]
            pos += 1
            if shift == last and byte > greatest:
                raise Fault(f"{{name}}: number above {32 if most == INT else 64} bits", self.pos)
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
        if size < 0:
            raise Fault("{name}: negative length", start)
        if size > self.end - self.pos:
            raise Fault("{name}: length above the remaining bytes", start, Truncated)
        return size

    def take(self, size: int) -> bytes:
        """Read this many bytes."""
        if self.end - self.pos < size:
            raise Fault(ENDS_EARLY, self.pos, Truncated)
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def index(self, count: int, what: str) -> int:
        """Read an index below count."""
        start = self.pos
        index = self.varint(INT)
        if 0 <= index < count:
            return index
        raise Fault(what, start)

    def block(self, least: int) -> tuple[int, int, int]:
        """Read the count of a block; returns it, where the block starts, and where it ends, -1 if that is not known."""
        start, block_end = self.pos, -1
        count = self.varint(LONG)
        if count == LEAST_BLOCK:
            raise Fault(TOO_MANY_ITEMS, start, Truncated)
        if count < 0:
            count = -count
            size = self.length()
            block_end = self.pos + size
        if least and count > (self.end - self.pos) // least:
            raise Fault(TOO_MANY_ITEMS, start, Truncated)
        if not least:
            if count > self.spare_items:
                raise Fault("{name}: too many items that take no bytes", start)
            self.spare_items -= count
        return count, start, block_end

    # Rows without rows inside

    def read_null(self, row: list[int], column: Column) -> None:
        """Make a null."""
        self.made[column.number] = None

    def read_boolean(self, row: list[int], column: Column) -> None:
        """Read a byte of 0 or 1."""
        start = self.pos
        data = self.take(1)
        if data[0] > 1:
            raise Fault("boolean: expected a byte of 0 or 1", start)
        self.made[column.number] = data == b"\1"

    def read_int32(self, row: list[int], column: Column) -> None:
        """Read an int."""
        self.made[column.number] = self.varint(INT)

    def read_int64(self, row: list[int], column: Column) -> None:
        """Read a long within limits."""
        start = self.pos
        number = self.varint(LONG)
        if not row[3] <= number <= row[4]:
            raise Fault("{name}: out of range", start)
        self.made[column.number] = number * row[2]

    def read_real(self, row: list[int], column: Column) -> None:
        """Read a float or double."""
        (self.made[column.number],) = struct.unpack("<f" if column.width == 4 else "<d", self.take(column.width))

    def read_number(self, row: list[int], column: Column) -> None:
        """Read a number of one type as one of another."""
        start, (source, target, via) = self.pos, row[2:5]
        if source == FLOAT32:
            (self.made[column.number],) = struct.unpack("<f", self.take(4))
            return
        number = self.varint(INT if source == INT32 else LONG)
        if target == INT64:
            if not row[6] <= number <= row[7]:
                raise Fault("{name}: out of range", start)
            self.made[column.number] = number * row[5]
        else:
            is_single = target == FLOAT32 or via
            self.made[column.number] = float(np.float32(np.int64(number))) if is_single else float(number)

    def read_bytes(self, row: list[int], column: Column) -> None:
        """Read a length, and bytes or UTF-8."""
        start = self.pos
        data = self.take(self.length())
        try:
            self.made[column.number] = data.decode() if row[2] else data
        except UnicodeDecodeError:
            raise Fault("{name}: not UTF-8", start) from None

    def read_fixed(self, row: list[int], column: Column) -> None:
        """Read bytes."""
        self.made[column.number] = self.take(row[2])

    def read_enum(self, row: list[int], column: Column) -> None:
        """Read the index of a symbol."""
        start = self.pos
        place = row[2] + 2 * self.index(row[3], BAD_SYMBOL)
        offset, size = self.plan.operands[place : place + 2]
        if offset < 0:
            raise Fault("{name}: the reader's schema lacks this symbol, and has no default", start)
        self.made[column.number] = self.constants[offset : offset + size].decode()

    def read_decimal(self, row: list[int], column: Column) -> None:
        """Read a big-endian number."""
        start = self.pos
        data = self.take(self.length() if row[2] < 0 else row[2])
        number = int.from_bytes(data, "big", signed=True)
        limit = int.from_bytes(self.constants[row[3] : row[3] + column.width], "little")
        if not data or abs(number) >= limit:
            raise Fault("{name}: not a number of this precision", start)
        digits = tuple(map(int, str(abs(number))))
        self.made[column.number] = Decimal((int(number < 0), digits, -column.type.scale))

    def read_unresolved(self, row: list[int], column: Column) -> None:
        """Reject a branch that the reader's schema lacks."""
        raise Fault("the writer's {name} cannot be read with the reader's schema", self.pos)

    def skip_fixed(self, row: list[int], column: Column) -> None:
        """Skip bytes."""
        self.take(row[2])

    def skip_number(self, row: list[int], column: Column) -> None:
        """Skip an int or a long."""
        self.varint(row[2])

    def skip_bytes(self, row: list[int], column: Column) -> None:
        """Skip a length and bytes."""
        self.take(self.length())

    def skip_enum(self, row: list[int], column: Column) -> None:
        """Skip the index of a symbol."""
        self.index(row[3], BAD_SYMBOL)

    # Rows with rows inside

    def read_steps(self, row: list[int], column: Column) -> None:
        """Read or skip the fields of a record."""
        for number in self.plan.operands[row[2] : row[2] + row[3]]:
            self.value(number)

    def read_record(self, row: list[int], column: Column) -> None:
        """Read a record into a struct."""
        self.read_steps(row, column)
        fields = zip(column.names, column.children, strict=True)
        self.made[column.number] = {name: self.made[child.number] for name, child in fields}

    def read_list(self, row: list[int], column: Column) -> None:
        """Read the blocks of an array or a map."""
        is_map, item = OPERATIONS[row[0]] == "MAP", column.children[0]
        items = list[Any]()
        while True:
            count, start, block_end = self.block(row[4])
            if not count:
                break
            for _ in range(count):
                if is_map:
                    self.value(row[5])
                self.value(row[2])
                if is_map:
                    items.append(tuple(self.made[each.number] for each in item.children))
                else:
                    items.append(self.made[item.number])
            if block_end not in (-1, self.pos):
                raise Fault("{name}: the size of a block differs from its items", start)
        self.made[column.number] = items

    def skip_list(self, row: list[int], column: Column) -> None:
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

    def read_union(self, row: list[int], column: Column) -> None:
        """Read or skip the index of a branch, and its value."""
        start = self.pos
        branch = self.plan.operands[row[2] + self.index(row[3], "{name}: no type of the union has this index")]
        if OPERATIONS[self.plan.rows[branch][0]] == "UNRESOLVED":
            self.pos = start
        self.value(branch)

    def read_member(self, row: list[int], column: Column) -> None:
        """Read a value as one member of a struct."""
        self.value(row[2])
        members = dict.fromkeys(column.names)
        if row[3] >= 0:
            members[list(column.names)[row[3]]] = self.made[column.children[row[3]].number]
        self.made[column.number] = members

    def read_constant(self, row: list[int], column: Column) -> None:
        """Read a default."""
        before = self.data, self.pos, self.end, self.spare_items
        self.data, self.pos, self.end = self.constants, row[3], row[3] + row[4]
        self.spare_items = NO_LIMIT
        self.value(row[2])
        self.data, self.pos, self.end, self.spare_items = before


Operation = Callable[[ValueReader, list[int], Column], None]
LEAVES: dict[str, Operation] = {
    "NULL": ValueReader.read_null,
    "BOOLEAN": ValueReader.read_boolean,
    "INT": ValueReader.read_int32,
    "LONG": ValueReader.read_int64,
    "FLOAT": ValueReader.read_real,
    "DOUBLE": ValueReader.read_real,
    "NUMBER": ValueReader.read_number,
    "BYTES": ValueReader.read_bytes,
    "FIXED": ValueReader.read_fixed,
    "ENUM": ValueReader.read_enum,
    "DECIMAL": ValueReader.read_decimal,
    "UNRESOLVED": ValueReader.read_unresolved,
    "SKIP_FIXED": ValueReader.skip_fixed,
    "SKIP_NUMBER": ValueReader.skip_number,
    "SKIP_BYTES": ValueReader.skip_bytes,
    "SKIP_ENUM": ValueReader.skip_enum,
}
NESTED: dict[str, Operation] = {
    "RECORD": ValueReader.read_record,
    "ARRAY": ValueReader.read_list,
    "MAP": ValueReader.read_list,
    "UNION": ValueReader.read_union,
    "MEMBER": ValueReader.read_member,
    "CONSTANT": ValueReader.read_constant,
    "SKIP_RECORD": ValueReader.read_steps,
    "SKIP_ARRAY": ValueReader.skip_list,
    "SKIP_MAP": ValueReader.skip_list,
    "SKIP_UNION": ValueReader.read_union,
}
