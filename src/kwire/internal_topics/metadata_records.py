"""Records of the metadata log `__cluster_metadata`, of its snapshots, and of the remote log's metadata topic.

The records have no keys. A value is a frame version, an API key, a version and the message
(kwire.protocol.record_values). Source: MetadataRecordSerde, RemoteLogMetadataSerde;
org.apache.kafka.common.metadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from kwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.internal_topics.typed_record import Decoder, TypedRecord, read_message
from kwire.protocol.record_values import FRAME_VERSION, MAX_NUMBER
from kwire.wire.varint import read_unsigned_varint

if TYPE_CHECKING:
    from kwire.messages.base import Message

__all__ = ["VersionedMessage", "decode_metadata", "metadata_decoder", "metadata_record"]

VersionedMessage: TypeAlias = "tuple[Message, int]"
"""A metadata record's message, and the version it is written in."""


def metadata_decoder(module: str = "metadata", *, kafka: str | None = None) -> Decoder:
    """Return the decoder of metadata records.

    module: "storage" for records of the remote log. kafka: the release whose definitions apply, the newest by default.
    """

    def decode(typed: TypedRecord) -> None:
        from kwire.messages import registry

        raw = typed.raw_value
        if raw is None:
            typed.fail("value", Truncated("metadata record without a value", 0))
            return
        numbers, pos = [], 0
        try:
            for what, largest in (("frame version", FRAME_VERSION), ("api key", MAX_NUMBER), ("version", MAX_NUMBER)):
                number, after = read_unsigned_varint(raw, pos)
                if number > largest:
                    raise Malformed(f"{what} {number}, above {largest}", pos)
                numbers.append(number)
                pos = after
            if numbers[0] != FRAME_VERSION:
                raise Malformed(f"frame version {numbers[0]} is not supported, only {FRAME_VERSION}", 0)
        except DecodeError as error:
            typed.fail("value", error)
            return
        _, typed.record_type, typed.version = numbers
        try:
            cls = registry.find("metadata", typed.record_type, module=module, kafka=kafka)
        except UnsupportedVersion:
            return
        typed.kind = cls.__name__
        typed.value = read_message(typed, "value", cls, raw, pos, typed.version)

    return decode


decode_metadata = metadata_decoder()


def metadata_record(message: Message, version: int, *, offset: int = 0, timestamp: int = -1) -> TypedRecord:
    """Return a message as the record of the metadata log that it is written as."""
    return TypedRecord(
        topic=METADATA_TOPIC,
        partition=0,
        offset=offset,
        timestamp=timestamp,
        kind=type(message).__name__,
        record_type=message.API_KEY,
        version=version,
        value=message,
    )
