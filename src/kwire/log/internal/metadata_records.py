"""Records of the metadata log `__cluster_metadata`, of its snapshots, and of the remote log's metadata topic.

There are no keys; a value is a frame version, an api key, a version and the message (kwire.protocol.record_values).
Source: MetadataRecordSerde, RemoteLogMetadataSerde; org.apache.kafka.common.metadata.
"""

from __future__ import annotations

from dataclasses import replace

from kwire.errors import DecodeError, Malformed, Truncated, UnsupportedVersion
from kwire.log.internal.typed_record import UNKNOWN, Decoder, TypedRecord, read_message
from kwire.protocol.record_values import FRAME_VERSION, MAX_NUMBER
from kwire.wire.varint import read_unsigned_varint

__all__ = ["METADATA_TOPIC", "decode_metadata", "metadata_decoder"]

METADATA_TOPIC = "__cluster_metadata"


def metadata_decoder(module: str = "metadata", *, kafka: str | None = None) -> Decoder:
    """The decoder of metadata records. module: storage for the remote log's. kafka: as that release has them."""

    def decode(typed: TypedRecord) -> TypedRecord:
        from kwire.messages import registry

        raw = typed.raw_value
        if raw is None:
            return typed.wrong("value", Truncated("a metadata record without a value", 0))
        numbers, pos = [], 0
        try:
            for what, largest in (("frame version", FRAME_VERSION), ("api key", MAX_NUMBER), ("version", MAX_NUMBER)):
                number, after = read_unsigned_varint(raw, pos)
                if number > largest:
                    raise Malformed(f"{what} {number}, above {largest}", pos)
                numbers.append(number)
                pos = after
            if numbers[0] != FRAME_VERSION:
                raise Malformed(f"frame version {numbers[0]}, known is {FRAME_VERSION}", 0)
        except DecodeError as error:
            return typed.wrong("value", error)
        _, api_key, version = numbers
        typed = replace(typed, record_type=api_key, version=version)
        try:
            cls = registry.find("metadata", api_key, module=module, kafka=kafka)
        except UnsupportedVersion:
            return replace(typed, kind=UNKNOWN)
        value, typed = read_message(replace(typed, kind=cls.__name__), "value", cls, raw, pos, version)
        return replace(typed, value=value)

    return decode


decode_metadata = metadata_decoder()
