"""The encoder of the walker: a Python function for each row of a plan.

    step(out, values) -> None      encodes some of values, the attributes of a struct in class order, and appends them

Values have the types that msgspec encodes, so kernel and walker accept the same objects: a tuple or a set for an array,
any bytes-like object, an enum's value, an int for float64, 16 bytes for a uuid.
An EncodeError collects its path while it propagates through arrays and structs.
"""

from __future__ import annotations

import operator
import reprlib
import struct
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from kwire.errors import EncodeError
from kwire.plan import rows as r
from kwire.plan.rows import Plan
from kwire.wire.integer_encoding import ENCODINGS, IntegerEncoding
from kwire.wire.lengths import write_compact_length, write_length
from kwire.wire.tagged_fields import write_tagged_fields

Values = Sequence[Any]
Step = Callable[[bytearray, Values], None]

TYPES = {r.BOOL: bool, r.FLOAT64: float, r.UUID: UUID}
_pack = msgspec.msgpack.Encoder(uuid_format="bytes").encode
_unpack = msgspec.msgpack.decode
_PLAIN = (bytes, bytearray, memoryview, UUID)


class Writer:
    """Writes one version of one message, or frame."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.framed = plan.rows[0][0] == r.LENGTH
        self._makers: dict[int, Callable[[int, int], Step]] = {
            r.FIXED: self._fixed,
            r.VARINTS: self._varints,
            r.STRING: self._string,
            r.BYTES: self._bytes,
            r.LIST: self._list,
            r.VARLIST: self._varlist,
            r.ARRAY: self._array,
            r.NULLABLE: self._nullable,
            r.ABSENT: self._absent,
            r.TAGS: self._tags,
        }
        self.root, _ = self._value(int(self.framed), 0)

    def write(self, obj: object) -> bytes:
        """Encode a message. Raises EncodeError with the path of a value that does not fit."""
        out = bytearray(4 if self.framed else 0)
        self.root(out, (obj,))
        if self.framed:
            out[:4] = (len(out) - 4).to_bytes(4, "big")
        return bytes(out)

    # From rows to steps. index: of the value in its struct. Each returns the step and the number of the row behind.

    def _value(self, number: int, index: int) -> tuple[Step, int]:
        operation = self.plan.rows[number][0]
        if operation == r.STRUCT:
            return self._struct(number, index)
        if operation == r.MARK:
            step, number = self._value(number + 1, index)
            return step, number + 1
        return self._makers[operation](number, index), self.plan.row_after(number)

    def _struct(self, number: int, index: int) -> tuple[Step, int]:
        rows = self.plan.rows
        count, name = rows[number][2], self.plan.attribute(number)
        steps: list[Step] = []
        number += 1
        at = 0
        while at < count:
            op = rows[number][0]
            if op == r.SEEK:
                step, number = self._value(number + 1, rows[number][1])
                steps.append(step)
                number += 1  # past BACK
            elif op == r.SKIP:
                at += 1
                number += 1
            else:
                made = rows[number][2] if op in (r.FIXED, r.VARINTS) else rows[number][1] + 1 if op == r.TAGS else 1
                step, number = self._value(number, at)
                steps.append(step)
                at += made

        def write(out: bytearray, values: Values) -> None:
            try:
                mine = attributes(values[index], count)
                for step in steps:
                    step(out, mine)
            except EncodeError as error:
                raise under(error, name) if name else error  # noqa: B904  # the same error, with more of its path

        return write, number

    def _fixed(self, number: int, index: int) -> Step:
        _, codes, count, *_ = self.plan.rows[number]
        kinds = [codes >> 4 * i & 15 for i in range(count)]
        names = [f.attr for f in self.plan.fields[number]]
        words = r.fixed_words(kinds, self.plan.fields[number])
        expected = [TYPES.get(kind, int) for kind in kinds]
        pack = struct.Struct(">" + "".join(r.FORMATS[kind] for kind in kinds)).pack
        uuids = [i for i, kind in enumerate(kinds) if kind == r.UUID]

        def write(out: bytearray, values: Values) -> None:
            mine = list(values[index : index + count])
            if list(map(type, mine)) == expected:
                for i in uuids:
                    mine[i] = mine[i].bytes
                try:
                    out += pack(*mine)
                except (struct.error, OverflowError):
                    pass
                else:
                    return
            for kind, word, name, value in zip(kinds, words, names, values[index : index + count], strict=True):
                write_number(out, kind, word, value, name)

        return write

    def _varints(self, number: int, index: int) -> Step:
        _, codes, count, *_ = self.plan.rows[number]
        encodings = [ENCODINGS[r.PACKED_NAMES[codes >> 4 * i & 15]] for i in range(count)]
        names = [f.attr for f in self.plan.fields[number]]

        def write(out: bytearray, values: Values) -> None:
            for encoding, name, value in zip(encodings, names, values[index : index + count], strict=True):
                write_encoded(out, encoding, value, name)

        return write

    def _string(self, number: int, index: int) -> Step:
        flags, name = self.plan.rows[number][1], self.plan.attribute(number)
        here = (name,) if name else ()

        def write(out: bytearray, values: Values) -> None:
            value = values[index]
            if value is None:
                write_null(out, flags, 2, here)
                return
            text = value if type(value) is str else plain(value)
            if not isinstance(text, str):
                raise EncodeError(f"{shown(value)} is not a string", here)
            try:
                data = text.encode()
            except UnicodeEncodeError:
                raise EncodeError(f"{shown(value)} contains a lone surrogate", here) from None
            if len(data) > r.MAX_STRING_BYTES:
                raise EncodeError(
                    f"string of {len(data)} bytes in UTF-8 exceeds the maximum of {r.MAX_STRING_BYTES}", here
                )
            write_size(out, flags, 2, len(data))
            out += data

        return write

    def _bytes(self, number: int, index: int) -> Step:
        flags, name = self.plan.rows[number][1], self.plan.attribute(number)
        here = (name,) if name else ()

        def write(out: bytearray, values: Values) -> None:
            value = values[index]
            if value is None:
                write_null(out, flags, 4, here)
                return
            data = octets(value)
            if data is None:
                raise EncodeError(f"{shown(value)} is not bytes", here)
            write_size(out, flags, 4, len(data))
            out += data

        return write

    def _elements(self, number: int) -> Callable[[bytearray, object], Values]:
        """Make a writer of the count of an array, or null, that returns the elements."""
        flags, name = self.plan.rows[number][1], self.plan.attribute(number)

        def write(out: bytearray, value: object) -> Values:
            if value is None:
                write_null(out, flags, 4, (name,))
                return ()
            elements = value if type(value) is list else sequence(value, name)
            write_size(out, flags, 4, len(elements))
            return elements

        return write

    def _list(self, number: int, index: int) -> Step:
        code, name, write_count = self.plan.rows[number][2], self.plan.attribute(number), self._elements(number)
        expected = {TYPES.get(code, int)}
        [word] = r.fixed_words([code], self.plan.fields[number])

        def write(out: bytearray, values: Values) -> None:
            elements = write_count(out, values[index])
            if not elements:
                return
            if code != r.UUID and set(map(type, elements)) <= expected:
                try:
                    out += struct.pack(f">{len(elements)}{r.FORMATS[code]}", *elements)
                except (struct.error, OverflowError):
                    pass
                else:
                    return
            for i, element in enumerate(elements):
                write_number(out, code, word, element, name, i)

        return write

    def _varlist(self, number: int, index: int) -> Step:
        name, write_count = self.plan.attribute(number), self._elements(number)
        encoding = ENCODINGS[r.PACKED_NAMES[self.plan.rows[number][2]]]

        def write(out: bytearray, values: Values) -> None:
            for i, element in enumerate(write_count(out, values[index])):
                write_encoded(out, encoding, element, name, i)

        return write

    def _array(self, number: int, index: int) -> Step:
        name, write_count = self.plan.attribute(number), self._elements(number)
        step, _ = self._value(number + 1, 0)

        def write(out: bytearray, values: Values) -> None:
            elements = write_count(out, values[index])
            written = 0
            try:
                for element in elements:
                    step(out, (element,))
                    written += 1
            except EncodeError as error:
                raise under(error, name, written)  # noqa: B904  # the same error, with more of its path

        return write

    def _nullable(self, number: int, index: int) -> Step:
        tagged = self.plan.rows[number][1]
        step, _ = self._value(number + 1, index)

        def write(out: bytearray, values: Values) -> None:
            if values[index] is None:
                out.append(0 if tagged else 0xFF)
            else:
                out.append(1)
                step(out, values)

        return write

    def _absent(self, number: int, index: int) -> Step:
        ignorable = self.plan.rows[number][4]
        name, equal = self.plan.attribute(number) or r.UNKNOWN, equals(self.plan.default(number))

        def write(out: bytearray, values: Values) -> None:
            if not ignorable and not equal(values[index]):
                raise EncodeError(f"{shown(values[index])} in a field that this version does not have", (name,))

        return write

    def _tags(self, number: int, index: int) -> Step:
        count = self.plan.rows[number][1]
        tags: set[int] = set()
        fields: list[tuple[int, int, str, Callable[[object], bool], Step | None]] = []
        for i in range(count):
            _, tag, state, sub, ignorable, *_ = self.plan.rows[number + 2 + i]
            tags.add(tag)
            if state == r.ELSEWHERE or (state == r.LACKING and ignorable):
                continue
            step = self._value(sub, index + i)[0] if state == r.LIVE else None
            equal = equals(self.plan.default(number + 2 + i))
            fields.append((tag, index + i, self.plan.attribute(number + 2 + i), equal, step))

        def write(out: bytearray, values: Values) -> None:
            section: list[tuple[int, bytes]] = []
            for tag, at, name, equal, step in fields:
                if equal(values[at]):
                    continue
                if step is None:
                    raise EncodeError(f"{shown(values[at])} in a field that this version does not have", (name,))
                data = bytearray()
                step(data, values)
                section.append((tag, bytes(data)))
            section += unknown_fields(values[index + count], tags)
            write_tagged_fields(out, section)

        return write


def equals(constant: bytes) -> Callable[[object], bool]:
    """Make a function that tells whether a value is the default, which is packed in `constant` (W-21)."""
    default = _unpack(constant)
    floats = any_float(default)

    def equal(value: object) -> bool:
        if type(value) is type(default) and not isinstance(default, (list, float)):
            return value == default
        try:
            packed = _pack(value)
        except Exception:  # a value that msgspec cannot write is not the default
            return False
        return equal_with_floats(_unpack(packed), default) if floats else packed == constant

    return equal


def any_float(value: object) -> bool:
    """Whether a default holds a float: it is compared as IEEE 754 does, not byte by byte."""
    return any(any_float(x) for x in value) if isinstance(value, list) else isinstance(value, float)


def attributes(value: object, count: int) -> Values:
    """Return the values of a struct in class order."""
    if isinstance(value, msgspec.Struct) and value.__struct_config__.array_like:
        try:
            values: Values = msgspec.structs.astuple(value)
        except AttributeError as error:
            raise EncodeError(f"struct {type(value).__name__} without a value in a field: {error}") from None
    elif isinstance(value, (tuple, list)):
        values = value
    elif value is None:
        raise EncodeError("null where null is not allowed")
    else:
        raise EncodeError(f"{shown(value)} is not a struct of this message")
    if len(values) != count:
        raise EncodeError(f"{shown(value)} has {len(values)} fields, the struct has {count}")
    return values


def sequence(value: object, name: str) -> Values:
    """Return the elements of an array."""
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, msgspec.Struct) and value.__struct_config__.array_like:
        return msgspec.structs.astuple(value)
    raise EncodeError(f"{shown(value)} is not an array", (name,))


def octets(value: object) -> bytes | bytearray | memoryview | None:
    """Return the bytes of a bytes-like value or a uuid; None for other values."""
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, memoryview):
        try:
            return value.cast("B") if value.c_contiguous else bytes(value)
        except ValueError:  # released
            return None
    return value.bytes if isinstance(value, UUID) else None


def fixed(code: int, value: object, *path: str | int) -> bytes:
    """Encode one value of fixed width. Raises EncodeError with path."""
    kind = r.CODE_NAMES[code]
    if value is None:
        raise EncodeError("null where null is not allowed", path)
    number: Any = value if isinstance(value, (int, float, UUID, bytes, bytearray, memoryview)) else plain(value)
    if code == r.UUID:
        data = octets(number)
        if data is None or len(data) != 16:
            raise EncodeError(f"{shown(value)} is not a uuid", path)
        return bytes(data)
    if isinstance(number, bool) != (code == r.BOOL):
        raise EncodeError(f"{shown(value)} is not a valid {kind} value", path)
    if code == r.FLOAT64 and not isinstance(number, (int, float)):
        raise EncodeError(f"{shown(value)} is not a valid {kind} value", path)
    if code not in (r.BOOL, r.FLOAT64):
        number = integer(number, value, kind, path)
    try:
        return struct.pack(f">{r.FORMATS[code]}", number)
    except (struct.error, OverflowError):
        raise EncodeError(f"{shown(value)} does not fit {kind}", path) from None


def write_number(out: bytearray, code: int, word: str, value: object, *path: str | int) -> None:
    """Append one value of fixed width. word: its type, or its narrower encoding. Raises EncodeError with path."""
    if word in ENCODINGS:
        write_encoded(out, ENCODINGS[word], value, *path)
    else:
        out += fixed(code, value, *path)


def write_encoded(out: bytearray, encoding: IntegerEncoding, value: object, *path: str | int) -> None:
    """Append one integer in an encoding of KIP-625. Raises EncodeError with path, value and width (I-20)."""
    if value is None:
        raise EncodeError("null where null is not allowed", path)
    number = integer(value if isinstance(value, int) else plain(value), value, encoding.name, path)
    if not encoding.smallest <= number <= encoding.largest:
        raise EncodeError(encoding.refusal(shown(value)), path)
    encoding.write(out, number)


def integer(number: object, value: object, kind: str, path: tuple[str | int, ...]) -> int:
    """Convert a number to an int, but not a boolean. value: its original form, for the error."""
    try:
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]  # the TypeError tells
    except TypeError:
        pass
    raise EncodeError(f"{shown(value)} is not a valid {kind} value", path)


def plain(value: object) -> object:
    """Convert an object as msgspec does, such as an enum to its value; other objects are returned unchanged."""
    try:
        return msgspec.to_builtins(value, builtin_types=_PLAIN)
    except Exception:  # of another library's type; the caller says what it is not
        return value


def unknown_fields(value: object, known: set[int]) -> list[tuple[int, bytes]]:
    """Return the unknown tagged fields of a struct; they must ascend (W-24) and not belong to a field (T-12)."""
    path = (r.UNKNOWN,)
    fields = []
    previous = -1
    for i, element in enumerate(sequence(value, r.UNKNOWN)):
        pair = sequence(element, r.UNKNOWN)
        data = octets(pair[1]) if len(pair) == 2 else None
        if data is None or not isinstance(pair[0], int) or isinstance(pair[0], bool):
            raise EncodeError(f"{shown(element)} is not a pair of tag and bytes", (*path, i))
        tag = int(pair[0])
        if not 0 <= tag <= r.MAX_TAG:
            raise EncodeError(f"tag {tag} does not fit 31 bits", (*path, i))
        if tag in known:
            raise EncodeError(f"tag {tag} belongs to a field of the definition", (*path, i))
        if tag <= previous:
            raise EncodeError(f"tag {tag} {'twice' if tag == previous else f'after tag {previous}'}", (*path, i))
        previous = tag
        fields.append((tag, bytes(data)))
    return fields


def equal_with_floats(value: object, default: object) -> bool:
    """Compare unpacked values; where the default is a float, by the rules of IEEE 754."""
    if isinstance(default, float):
        return type(value) in (int, float) and value == default
    if isinstance(default, list):
        return (
            isinstance(value, list)
            and len(value) == len(default)
            and all(equal_with_floats(v, d) for v, d in zip(value, default, strict=True))
        )
    return type(value) is type(default) and value == default


def write_size(out: bytearray, flags: int, width: int, n: int) -> None:
    """Append a length or count; -1 is null. width: bytes if not compact."""
    if flags & r.COMPACT:
        write_compact_length(out, n)
    else:
        write_length(out, n, width)


def write_null(out: bytearray, flags: int, width: int, path: tuple[str, ...]) -> None:
    """Append null, if the field is nullable."""
    if not flags & r.MAY_BE_NULL:
        raise EncodeError("null where null is not allowed", path)
    write_size(out, flags, width, -1)


def shown(value: object) -> str:
    """Format a value for an error message: short, and without raising."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an int of thousands of digits
        return f"<{type(value).__name__}>"


def under(error: EncodeError, *steps: str | int) -> EncodeError:
    """Prepend steps to the path of the error."""
    error.path = (*steps, *error.path)
    error.args = (error.what, error.path)
    return error
