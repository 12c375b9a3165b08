"""Messages in the keys and values of records, with the prefix that Kafka writes before the body.

    metadata records          uvarint frame version 1, uvarint api key, uvarint version, body; nothing may follow
    values of coordinators    int16 version, body
    keys of coordinators      int16 record type, body. The type is the message's api key (4.x, kind coordinator-key), or
                              the version of the key message, which doubles as type (kind data)
    standalone data           int16 version, body: ConsumerProtocolSubscription, DefaultPrincipalData and others

Source: org.apache.kafka.server.common.serialization.AbstractApiMessageSerde,
org.apache.kafka.common.protocol.MessageUtil.toVersionPrefixedByteBuffer, CoordinatorRecordSerde.
"""

from __future__ import annotations

from kwire.errors import EncodeError, Malformed, Truncated, UnsupportedVersion, counted
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.wire.varint import read_unsigned_varint, write_unsigned_varint

__all__ = ["read_metadata_record", "read_prefixed", "write_metadata_record", "write_prefixed"]

FRAME_VERSION = 1
MAX_NUMBER = 32767

Buffer = bytes | bytearray | memoryview


def read_metadata_record(
    data: Buffer, *, module: str = "metadata", kafka: registry.Definitions | None = None
) -> tuple[Message, int]:
    """Read the value of a metadata record; return the message and its version.

    module: storage for the metadata topic of remote storage. kafka: read it as that release defines it.
    Raises DecodeError; UnsupportedVersion for a frame version other than 1 or an unknown record type or version.
    """
    frame_version, pos = read_unsigned_varint(data, 0)
    if frame_version != FRAME_VERSION:
        raise UnsupportedVersion(f"metadata record with frame version {frame_version}, expected {FRAME_VERSION}")
    numbers = []
    for what in ("api key", "version"):
        number, after = read_unsigned_varint(data, pos)
        if number > MAX_NUMBER:
            raise Malformed(f"metadata record with {what} {number}, at most {MAX_NUMBER} is allowed", pos)
        numbers.append(number)
        pos = after
    api_key, version = numbers
    message, end = registry.find("metadata", api_key, module=module, kafka=kafka).decode_from(
        data, pos, version=version
    )
    if end != len(data):
        raise Malformed(f"{counted(len(data) - end, 'byte')} remaining after {type(message).__name__}", end)
    return message, version


def write_metadata_record(message: Message, version: int) -> bytes:
    """Encode the value of a metadata record.

    Raises EncodeError for a message that has no api key or does not fit the version.
    """
    if message.API_KEY is None:
        raise EncodeError(f"{type(message).__name__} is not a metadata record: it has no api key")
    out = bytearray()
    for number in (FRAME_VERSION, message.API_KEY, version):
        write_unsigned_varint(out, number)
    return bytes(out + message.encode(version=version))


def read_prefixed(cls: type[Message], data: Buffer) -> tuple[Message, int]:
    """Read a message after its int16 prefix; return the message and its version.

    The prefix of a coordinator-key is its api key, and its version is 0. The prefix of other messages is their version.
    Raises Truncated, Malformed for another api key, UnsupportedVersion for an unknown version.
    """
    if len(data) < 2:
        raise Truncated(f"version of 2 bytes, {len(data)} remaining", 0)
    number = int.from_bytes(data[:2], "big", signed=True)
    version = number
    if cls.SPEC.kind == "coordinator-key":
        if number != cls.API_KEY:
            raise Malformed(f"record type {number}, {cls.__name__} has record type {cls.API_KEY}", 0)
        version = 0
    message, end = cls.decode_from(data, 2, version=version)
    if end != len(data):
        raise Malformed(f"{counted(len(data) - end, 'byte')} remaining after {type(message).__name__}", end)
    return message, version


def write_prefixed(message: Message, version: int) -> bytes:
    """Encode a message with its int16 prefix; see `read_prefixed`."""
    number = version
    if message.SPEC.kind == "coordinator-key":
        assert message.API_KEY is not None  # E-60
        number = message.API_KEY
    return number.to_bytes(2, "big", signed=True) + message.encode(version=version)
