"""A record, of any magic."""

from __future__ import annotations

import functools
import re

import msgspec

from kwire import native
from kwire.native.objects import layout_of, trusts
from kwire.records.attributes import TimestampType

__all__ = ["Record", "decode_header_key", "factory"]

ENCODED_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


class Record(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A key, a value and their metadata. The garbage collector does not track records, which hold no other objects.

    offset: in the partition, absolute. timestamp: milliseconds since 1970, -1 for none (always in magic 0).
    key, value: None is null, not empty; a null value is a tombstone.
    headers: (key, value) in the order written, keys may repeat, values may be null; magic 0 and 1 have none.
    sequence: the producer's number of this record, -1 for none.
    leader_epoch: the epoch of the partition's leader when the batch was appended, None where there is none.
    """

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    sequence: int = -1
    leader_epoch: int | None = None


def decode_header_key(raw: bytes) -> str:
    """Decode a header key as Kafka's consumer does: invalid UTF-8 becomes U+FFFD, without an error.

    An encoded surrogate (`ed a0 80`) is one bad sequence in Java and three bad bytes in Python; this follows Java.
    Source: DefaultRecord.readHeaders, Utils.utf8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return ENCODED_SURROGATE.sub("\N{REPLACEMENT CHARACTER}".encode(), raw).decode(errors="replace")


@functools.cache
def factory() -> object:
    """Return what compiled code needs to create records, for native.read_records.

    None without compiled code, and, with a warning, where the records it creates differ from msgspec's.
    """
    return _factory() if native.LEVEL is not None and trusts("records", _is_right) else None


def _factory() -> object:
    _, offsets = layout_of(Record, Record.__struct_fields__)
    return native.record_factory(Record, tuple(sorted(TimestampType)), decode_header_key, *offsets)


def _is_right() -> bool:
    """Create a record both ways."""
    section = bytes.fromhex("18 00 06 04 02 6b 02 76 02 02 68 02 31")
    wanted = Record(
        offset=1002,
        timestamp=2003,
        timestamp_type=TimestampType.CREATE_TIME,
        key=b"k",
        value=b"v",
        headers=[("h", b"1")],
        sequence=9,
        leader_epoch=4,
    )
    header = (
        1000,
        2000,
        False,
        -1,
        7,
        False,
        0,
        5000,
    )  # offset, timestamp and sequence are relative to them
    (made,), *_ = native.read_records(_factory(), section, 4, wanted.timestamp_type, 0, 1, *header)
    return type(made) is Record and made == wanted and msgspec.structs.asdict(made) == msgspec.structs.asdict(wanted)
