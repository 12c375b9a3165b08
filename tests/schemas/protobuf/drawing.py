"""Random message types, for google.protobuf and for kwire, and random bytes of their values."""

from __future__ import annotations

import base64
import random
from typing import Any

from google.protobuf import descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from kwire.schemas.protobuf import Message, parse

KNOWN = (timestamp_pb2, duration_pb2, wrappers_pb2)
KNOWN_TYPES = (
    *("Timestamp", "Duration", "Int64Value", "StringValue", "DoubleValue", "BoolValue", "UInt64Value", "BytesValue"),
    *("UInt32Value", "Int32Value", "FloatValue"),
)
SCALARS = tuple(number for number in range(1, 19) if number not in (10, 11, 14))  # without groups, messages and enums
KEYS = tuple(number for number in SCALARS if number not in (1, 2, 12))
STRING, GROUP, MESSAGE, BYTES, ENUM = 9, 10, 11, 12, 14
OPTIONAL, REQUIRED, REPEATED = 1, 2, 3
NUMBERS = (*range(1, 16), 16, 17, 255, 256, 257, 2047, 2048, 300_000, 2**29 - 1)
VARINT, LEN, START_GROUP, END_GROUP = 0, 2, 3, 4
OVER_LONG = (b"\x80\0", b"\x81\x80\0", b"\xff" * 9 + b"\x7f", b"\x80" * 9 + b"\x01", b"\xff" * 9 + b"\x01")


class Drawing:
    """A random file. maps, recursion: whether it may have maps, and messages inside of themselves."""

    def __init__(self, source: random.Random, *, maps: bool = True, recursion: bool = True) -> None:
        self.source = source
        self.is_proto2 = source.random() < 0.4
        self.maps, self.recursion = maps, recursion
        self.file = FileDescriptorProto(
            name="drawn.proto",
            syntax="proto2" if self.is_proto2 else "proto3",
            dependency=[each.DESCRIPTOR.name for each in KNOWN],
        )
        self.names: list[str] = []
        numbers = source.sample((1, 2, 3, 7, 100, -1, -(2**31), 2**31 - 1), source.randint(0, 4))
        kind = self.file.enum_type.add(name="E")
        for number in (0, *numbers):
            kind.value.add(name=f"V{number}".replace("-", "_"), number=number)
        for _ in range(source.randint(1, 4)):
            self.message()

    def message(self) -> None:
        """Add a message; its fields have types that are there before, or its own."""
        made = self.file.message_type.add(name=f"M{len(self.names)}")
        name = f".{made.name}"
        oneofs = self.source.choice((0, 0, 1, 2))
        numbers = self.source.sample(NUMBERS, self.source.randint(0, 9))
        for place, number in enumerate(numbers):
            if self.maps and self.source.random() < 0.1:
                self.map(made, f"f{place}", number)
                continue
            field = made.field.add(name=f"f{place}", number=number, label=OPTIONAL)
            self.set_type(field, name)
            if self.source.random() < 0.3:
                field.label = REPEATED
                if field.type not in (STRING, GROUP, MESSAGE, BYTES):
                    field.options.packed = self.source.random() < 0.5
            elif oneofs and self.source.random() < 0.5:
                field.oneof_index = self.source.randrange(oneofs)
        used = sorted({field.oneof_index for field in made.field if field.HasField("oneof_index")})
        for field in made.field:
            if field.HasField("oneof_index"):
                field.oneof_index = used.index(field.oneof_index)
        for each in used:
            made.oneof_decl.add(name=f"o{each}")
        for field in made.field:  # oneofs of one optional field come after the others
            is_plain = field.label == OPTIONAL and not field.HasField("oneof_index") and field.type != MESSAGE
            if is_plain and not self.is_proto2 and self.source.random() < 0.4:
                field.oneof_index, field.proto3_optional = len(made.oneof_decl), True
                made.oneof_decl.add(name=f"_{field.name}")
        self.names.append(name)

    def set_type(self, field: FieldDescriptorProto, own_name: str) -> None:
        """Give a field a random type."""
        kind = self.source.random()
        if kind < 0.55:
            field.type = self.source.choice(SCALARS)
        elif kind < 0.65:
            field.type, field.type_name = ENUM, ".E"
        elif kind < 0.75 or not (self.recursion or self.names):
            field.type, field.type_name = MESSAGE, f".google.protobuf.{self.source.choice(KNOWN_TYPES)}"
        else:
            field.type, field.type_name = (
                MESSAGE,
                self.source.choice([*self.names, own_name] if self.recursion else self.names),
            )
            if self.is_proto2 and field.type_name != own_name and self.source.random() < 0.3:
                field.type = GROUP

    def map(self, message: DescriptorProto, name: str, number: int) -> None:
        """Add a map."""
        entry = message.nested_type.add(name=f"{name.upper()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=OPTIONAL, type=self.source.choice(KEYS))
        value = entry.field.add(name="value", number=2, label=OPTIONAL)
        self.set_type(value, f".{message.name}")
        if value.type == GROUP:
            value.type = MESSAGE
        type_name = f".{message.name}.{entry.name}"
        message.field.add(name=name, number=number, label=REPEATED, type=MESSAGE, type_name=type_name)

    def ours(self) -> Message:
        """Return the last message as kwire has it."""
        found = parse(base64.b64encode(self.file.SerializeToString()).decode()).types[self.names[-1][1:]]
        assert isinstance(found, Message)
        return found

    def theirs(self) -> Any:
        """Return google.protobuf's class of the last message."""
        pool = descriptor_pool.DescriptorPool()
        for each in KNOWN:
            pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self.file.SerializeToString())
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(self.names[-1][1:]))


def varint(number: int) -> bytes:
    """Encode a number of up to 64 bits."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


class Writer:
    """Writes random messages of a type as no serializer does: any order, again and again, with unknown fields."""

    def __init__(self, source: random.Random) -> None:
        self.source = source

    def message(self, kind: Any, depth: int = 0) -> bytes:
        """Return a message of a descriptor."""
        fields = list(kind.fields)
        if kind.GetOptions().map_entry:  # google.protobuf's C parser takes entries with unknown fields out of a map
            return b"".join(
                self.known(self.source.choice(fields), depth) for _ in range(self.source.choice((0, 1, 2, 3)))
            )
        out = bytearray()
        for _ in range(self.source.choice((0, 1, len(fields), len(fields), 2 * len(fields)))):
            if self.source.random() < 0.05:
                out += self.unknown(self.source.randrange(3000, 300_000), depth)
            elif fields and depth < 5:
                out += self.field(self.source.choice(fields), depth)
        return bytes(out)

    def field(self, field: Any, depth: int) -> bytes:
        """Return one occurrence of a field, rarely with another wire type.

        Enums of proto2 always have their own: other bytes may be numbers without a name, which google.protobuf hides.
        """
        if self.source.random() < 0.02 and not (field.type == ENUM and field.enum_type.is_closed):
            return self.unknown(field.number, depth)
        return self.known(field, depth)

    def known(self, field: Any, depth: int) -> bytes:
        """Return one occurrence of a field."""
        if field.type == GROUP:
            start, end = (varint(field.number << 3 | each) for each in (START_GROUP, END_GROUP))
            return start + self.message(field.message_type, depth + 1) + end
        if field.type == MESSAGE:
            return self.sized(field.number, self.message(field.message_type, depth + 1))
        if field.type in (STRING, BYTES):
            return self.sized(
                field.number, self.source.choice((b"", b"a", "é中😀".encode(), b"x" * 40, b"\xc3\xa9" * 9))
            )
        if field.is_repeated and self.source.random() < 0.5:
            return self.sized(field.number, b"".join(self.scalar(field) for _ in range(self.source.randrange(4))))
        wire_type = {1: 1, 6: 1, 16: 1, 2: 5, 7: 5, 15: 5}.get(field.type, VARINT)
        return varint(field.number << 3 | wire_type) + self.scalar(field)

    def sized(self, number: int, data: bytes) -> bytes:
        """Return a field with a length."""
        return varint(number << 3 | LEN) + varint(len(data)) + data

    def scalar(self, field: Any) -> bytes:
        """Return a number."""
        if field.type in (1, 6, 16):
            return self.source.choice((bytes(8), b"\xff" * 8, b"\0" * 6 + b"\xf0\x3f", self.source.randbytes(8)))
        if field.type in (2, 7, 15):
            return self.source.choice((bytes(4), b"\xff" * 4, b"\0\0\x80\x3f", self.source.randbytes(4)))
        if field.type == ENUM:
            number = self.source.choice(field.enum_type.values).number
            return varint(number % 2**64 if field.enum_type.is_closed or self.source.random() < 0.9 else 12345)
        return self.source.choice(
            (b"\0", b"\1", varint(self.source.getrandbits(self.source.randint(1, 64))), *OVER_LONG)
        )

    def unknown(self, number: int, depth: int) -> bytes:
        """Return a field of any wire type."""
        wire_type = self.source.choice((0, 1, 2, 3, 5))
        tag = varint(number << 3 | wire_type)
        if wire_type == START_GROUP:
            inner = self.unknown(self.source.randrange(1, 20), depth + 1) if depth < 9 else b""
            return tag + inner + varint(number << 3 | END_GROUP)
        return tag + (b"\x96\1", bytes(8), b"\2ab", b"", b"", bytes(4))[wire_type]
