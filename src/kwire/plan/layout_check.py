"""Whether objects of messages that compiled code fills come out as those that msgspec makes, checked once a process."""

from __future__ import annotations

import functools
import sys
from uuid import UUID

import msgspec

from kwire import native
from kwire.native.objects import trusts
from kwire.plan.compiler import compile_message
from kwire.plan.layouts import Job
from kwire.schema.model import STRUCT_DEFAULTS, Field, Message, Struct
from kwire.schema.versions import Versions

__all__ = ["fills_objects"]

ALL = Versions(0, 0)
INNER = Struct(
    name="Inner",
    versions=ALL,
    fields=(
        Field(name="Number", attr="number", type="int32", versions=ALL, default=7),
        Field(name="Text", attr="text", type="string", versions=ALL, default=""),
    ),
)
OUTER = Struct(
    name="Outer",
    versions=ALL,
    fields=(
        Field(name="First", attr="first", type="int32", versions=ALL),
        Field(name="Id", attr="id", type="uuid", versions=ALL, default=UUID(int=0)),
        Field(name="Rows", attr="rows", type="Inner", is_array=True, struct=INNER, versions=ALL, default=()),
        Field(name="Data", attr="data", type="bytes", versions=ALL, default=b""),
        Field(
            name="Absent",
            attr="absent",
            type="Inner",
            struct=INNER,
            versions=ALL,
            tag=0,
            tagged=ALL,
            default=STRUCT_DEFAULTS,
        ),
    ),
)
MESSAGE = Message(name="Outer", kind="data", valid=ALL, flexible=ALL, struct=OUTER, structs=(INNER,))
WIRE = bytes.fromhex("00000400") + bytes(range(16)) + bytes.fromhex("03 00000005 02 61 00 00000200 03 6263 00 02 78 00")


class Inner(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """A struct like the structs of messages."""

    number: int = 7
    text: str = ""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class Outer(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """A message."""

    first: int = 0
    id: UUID = UUID(int=0)
    rows: list[Inner] = []
    data: bytes = b""
    absent: Inner = msgspec.field(default_factory=Inner)
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    Inner = Inner


def _is_right() -> bool:
    job = Job(compile_message(MESSAGE, 0), (Outer,))
    decode, _ = native.decoders(job.address, _refuse, job)
    wanted = Outer(
        first=1024,
        id=UUID(bytes=bytes(range(16))),
        rows=[Inner(number=5, text="a"), Inner(number=512, text="bc")],
        data=b"x",
    )
    references = sys.getrefcount(Outer)
    made = decode(WIRE)
    if type(made) is not Outer or sys.getsizeof(made) != sys.getsizeof(wanted):
        return False
    values = [getattr(made, name) for name in Outer.__struct_fields__]
    same = values == [getattr(wanted, name) for name in Outer.__struct_fields__] and made == wanted
    same = same and [type(each) for each in values] == [int, UUID, list, bytes, Inner, list]
    same = same and hash(made.id) == hash(wanted.id) and str(made.id) == str(wanted.id)
    same = same and msgspec.msgpack.encode(made) == msgspec.msgpack.encode(wanted)
    made.first, made.absent.text = 5, "text"
    same = same and (made.first, made.absent) == (5, Inner(text="text")) and decode(WIRE) == wanted
    del made
    return same and sys.getrefcount(Outer) == references


def _refuse(*arguments: object) -> tuple[object, int]:
    raise AssertionError("compiled code rejects the message")


@functools.cache
def fills_objects() -> bool:
    """Return whether compiled code may create the objects of messages; warn if it may not."""
    return native.LEVEL is not None and trusts("messages", _is_right)
