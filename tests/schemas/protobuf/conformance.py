"""Cases in the manner of Protobuf's conformance suite (binary_json_conformance_suite.cc), for all fields of a message.

The suite is a program in C++, so these are its rules and its values, not its code: premature ends, illegal tags, groups
without an end, unknown wire types, each type with its limits and overlong forms, single, repeated, packed or not, in
maps and in oneofs. google.protobuf says what each case means; the suite only which have to be refused.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from tests.schemas.protobuf.drawing import varint

__all__ = ["Case", "cases"]

VARINT, I64, LEN, START, END, I32 = range(6)
UNKNOWN = 666
TYPES = {
    number: name.removeprefix("TYPE_").lower() for name, number in vars(FieldDescriptor).items() if "TYPE_" in name[:5]
}
FIXED = {"double": ("<d", I64), "fixed64": ("<Q", I64), "sfixed64": ("<q", I64)}
FIXED |= {"float": ("<f", I32), "fixed32": ("<I", I32), "sfixed32": ("<i", I32)}
INT32, INT64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
INCOMPLETE = {VARINT: b"\x80", I64: b"abcdefg", LEN: b"\x80", I32: b"abc"}
NOT_UTF8 = b"\xa0\xb0\xc0\xd0"


@dataclass(frozen=True)
class Case:
    """Bytes of a message. must_fail: a parser has to refuse them, by the suite."""

    name: str
    data: bytes
    must_fail: bool = False


def tag(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


def delimited(data: bytes) -> bytes:
    return varint(len(data)) + data


def field(number: int, data: bytes) -> bytes:
    return tag(number, LEN) + delimited(data)


def longer(number: int, extra: int) -> bytes:
    """Return a varint with bytes that add nothing."""
    data = bytearray(varint(number))
    data[-1] |= 0x80
    return bytes(data) + b"\x80" * (extra - 1) + b"\0"


def signed(*numbers: int) -> list[bytes]:
    return [varint(each & 0xFFFFFFFFFFFFFFFF) for each in numbers]


def zigzag(*numbers: int) -> list[bytes]:
    return [varint(2 * each if each >= 0 else -2 * each - 1) for each in numbers]


def packed(code: str, *numbers: float) -> list[bytes]:
    return [struct.pack(code, each) for each in numbers]


VALUES: dict[str, list[bytes]] = {
    "double": packed("<d", 0, 0.1, 1.7976931348623157e308, 2.22507385850720138309e-308, -0.0, float("inf")),
    "float": packed("<f", 0, 0.1, 1.00000075e-36, 3.402823e38, 1.17549435e-38, -0.0, float("-inf")),
    "int64": signed(0, 12345, *INT64),
    "uint64": signed(0, 12345, 2**64 - 1),
    "int32": [
        *signed(0, 12345, *INT32, 1 << 33, (1 << 33) - 1, INT64[1], INT64[0] + 1),
        *(longer(12345, 2), longer(12345, 7)),
    ],
    "uint32": [
        *signed(0, 12345, 2**32 - 1, 1 << 33, (1 << 33) + 1, (1 << 33) - 1, INT64[1], INT64[0] + 1),
        *(longer(12345, 2), longer(12345, 7)),
    ],
    "fixed64": packed("<Q", 0, 12345, 2**64 - 1),
    "fixed32": packed("<I", 0, 12345, 2**32 - 1),
    "sfixed64": packed("<q", 0, 12345, *INT64),
    "sfixed32": packed("<i", 0, 12345, *INT32),
    "bool": signed(0, 1, -1, 12345678, 1 << 33, *INT64),
    "sint32": [*zigzag(0, 12345, *INT32), *zigzag(INT32[1] + 2)],
    "sint64": zigzag(0, 12345, *INT64),
    "string": [delimited(each.encode()) for each in ("", "Hello world!", "'\"?\\\a\b\f\n\r\t\v", "谷歌", "😁", "a\0b")],
    "bytes": [delimited(each) for each in (b"", b"Hello world!", b"\1\2", b"\xfb")],
    "enum": signed(0, 1, 2, -1, INT64[1], INT64[0] + 1),
    "message": [
        delimited(each)
        for each in (
            b"",
            tag(1, VARINT) + varint(1234),
            field(2, tag(1, VARINT) + varint(7)),
            tag(UNKNOWN, VARINT) + b"\1",
        )
    ],
}


def wire_type(kind: str) -> int:
    if kind in FIXED:
        return FIXED[kind][1]
    return LEN if kind in ("string", "bytes", "message") else VARINT


def cases(message: Descriptor) -> Iterator[Case]:
    """Yield the cases of a message."""
    yield from _illegal_tags()
    yield from _groups()
    for kind in (6, 7):
        for number in range(4):
            for value in range(4):
                yield Case(f"wire type {kind}, field {number}, {value}", bytes([number << 3 | kind, value]), True)
    known: list[bytes] = []
    for each in message.fields:
        kind = TYPES[each.type]
        if kind == "group":
            continue
        if each.message_type is not None and each.message_type.GetOptions().map_entry:
            yield from _map(each)
            continue
        yield from _ends(each, kind)
        yield from _values(each, kind)
        if each.containing_oneof is not None:
            known += [tag(each.number, wire_type(kind)) + VALUES[kind][i] for i in (0, 1)]
    for first in known:  # the last member of a oneof counts
        for second in known:
            yield Case("two members of a oneof", first + second)
    unknown = tag(UNKNOWN, VARINT) + b"\1" + field(UNKNOWN + 1, b"x") + tag(UNKNOWN + 2, I32) + bytes(4)
    yield Case("unknown fields", unknown * 3)


def _illegal_tags() -> Iterator[Case]:
    for data in (b"\1DEADBEEF", b"\2\1\1", b"\3\4", b"\5DEAD"):
        yield Case(f"field number 0: {data.hex()}", data, True)
    long = bytes([tag(1, VARINT)[0] | 0x80])
    for more in (b"\x80" * 5 + b"\x0f", b"\x80" * 3 + b"\x40", b"\x80" * 7 + b"\0", b"\x80" * 11 + b"\0"):
        yield Case(f"tag of {len(more) + 1} bytes", long + more + varint(1234), True)
    for size in (2, 5):
        yield Case(f"tag padded to {size} bytes", longer(tag(1, VARINT)[0], size - 1) + varint(1234))
    yield Case("tag padded to 6 bytes", longer(tag(1, VARINT)[0], 5) + varint(1234), True)


def _groups() -> Iterator[Case]:
    """Groups of known, unknown and other fields, without their ends or their starts."""
    hello = field(2, b"hello world")
    for number in (201, 1234, 1):
        for kind in (START, END):
            yield Case(f"group {number} has one of {START}, {END}: {kind}", tag(number, kind), True)
            yield Case(f"group {number}, {kind} before data", tag(number, kind) + hello, True)
            yield Case(f"group {number}, {kind} in a message", field(18, tag(number, kind)), True)
            yield Case(
                f"group {number}, {kind} in a group", tag(201, START) + tag(number + 1, kind) + tag(201, END), True
            )
    yield Case("ends of other groups", tag(201, START) + hello + tag(202, END), True)
    inner = tag(202, START) + hello + tag(203, END)
    yield Case("ends of other groups inside", tag(201, START) + inner + tag(201, END), True)
    yield Case("an unknown group", tag(UNKNOWN, START) + hello + tag(UNKNOWN, END))
    yield Case("unknown groups in each other", tag(UNKNOWN, START) * 50 + tag(UNKNOWN, END) * 50)


def _ends(each: Any, kind: str) -> Iterator[Case]:
    """Yield messages that end too early, in the field or in an unknown one."""
    for number in (each.number, UNKNOWN):
        start = tag(number, wire_type(kind))
        yield Case(f"{each.name}: ends before the value", start, True)
        yield Case(f"{each.name}: ends inside of the value", start + INCOMPLETE[wire_type(kind)], True)
        if wire_type(kind) == LEN:
            yield Case(f"{each.name}: ends after the length", start + varint(1), True)
    if kind == "message":
        inner = tag(5, VARINT) + b"\x80"
        yield Case(f"{each.name}: the inner message ends", field(each.number, inner), True)
    elif wire_type(kind) != LEN and each.is_repeated:
        yield Case(f"{each.name}: packed, ends inside", field(each.number, INCOMPLETE[wire_type(kind)]), True)
        yield Case(f"{each.name}: packed, ends after the length", tag(each.number, LEN) + varint(1), True)
    if kind == "string":
        yield Case(f"{each.name}: not UTF-8", field(each.number, NOT_UTF8))


def _values(each: Any, kind: str) -> Iterator[Case]:
    start = tag(each.number, wire_type(kind))
    for value in VALUES[kind]:
        yield Case(f"{each.name}: {value.hex()}", start + value)
    yield Case(f"{each.name}: all, one after the other", b"".join(start + value for value in VALUES[kind]))
    if wire_type(kind) != LEN and each.is_repeated:
        together = b"".join(VALUES[kind])
        yield Case(f"{each.name}: packed", field(each.number, together))
        yield Case(f"{each.name}: packed, and not", start + VALUES[kind][0] + field(each.number, together))
        yield Case(f"{each.name}: nothing packed", field(each.number, b""))


def _map(each: Any) -> Iterator[Case]:
    key, value = each.message_type.fields
    kinds = TYPES[key.type], TYPES[value.type]
    keys = [tag(1, wire_type(kinds[0])) + data for data in VALUES[kinds[0]][:2]]
    values = [tag(2, wire_type(kinds[1])) + data for data in VALUES[kinds[1]][:2]]
    entries = {
        "default": keys[0] + values[0],
        "missing": b"",
        "only a key": keys[1],
        "only a value": values[1],
        "not default": keys[1] + values[1],
        "unordered": values[1] + keys[1],
        "two keys": keys[0] + keys[1] + values[1],
        "two values": keys[1] + values[0] + values[1],
        "unknown field": keys[1] + tag(UNKNOWN, VARINT) + b"\1" + values[1],
    }
    for name, data in entries.items():
        yield Case(f"{each.name}: {name}", field(each.number, data))
        yield Case(
            f"{each.name}: {name}, in pieces", field(each.number, keys[1] + values[0]) + field(each.number, data)
        )
        if data:
            yield Case(f"{each.name}: {name}, ends early", field(each.number, data)[:-1], True)
    if "string" in kinds:
        bad = keys[1] + field(2, NOT_UTF8) if kinds[1] == "string" else field(1, NOT_UTF8) + values[1]
        yield Case(f"{each.name}: not UTF-8", field(each.number, bad))
