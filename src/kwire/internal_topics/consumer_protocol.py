"""Subscriptions and assignments of consumers, in the opaque bytes of the classic protocol.

    int16 version, ConsumerProtocolSubscription      a member's subscription and the partitions it owned before
    int16 version, ConsumerProtocolAssignment        a member's assignment

An unknown version is read as the newest known one, and fields that a newer client appends are ignored, so a rolling
upgrade of clients works.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kwire.errors import DecodeError, Malformed, Truncated

if TYPE_CHECKING:
    from kwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    from kwire.messages.base import Message

    M = TypeVar("M", bound=Message)

__all__ = ["PROTOCOL_TYPE", "group_json", "read_assignment", "read_subscription", "stored_version"]

PROTOCOL_TYPE = "consumer"


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode a member's subscription and owned partitions. Raises DecodeError."""
    from kwire.messages import ConsumerProtocolSubscription

    return read_embedded(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode a member's assignment; empty bytes are an empty one. Raises DecodeError."""
    from kwire.messages import ConsumerProtocolAssignment

    return read_embedded(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def stored_version(data: bytes) -> int:
    """Return the version of the bytes. Raises Truncated; Malformed for a negative version."""
    if len(data) < 2:
        raise Truncated(f"version of 2 bytes, {len(data)} left", 0)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise Malformed(f"invalid version {version} of the consumer protocol", 0)
    return version


def read_embedded(cls: type[M], data: bytes) -> M:
    """Decode a message after its version. Raises DecodeError."""
    return cls.decode_from(data, 2, version=min(stored_version(data), cls.VALID_VERSIONS.highest))[0]


def group_json(group: Any, data: dict[str, Any]) -> dict[str, Any]:
    """Replace consumers' subscriptions and assignments in a GroupMetadataValue's JSON form by their JSON.

    Changes and returns data. Bytes of an unknown version stay base64.
    """
    from kwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

    if group.protocol_type != PROTOCOL_TYPE:
        return data
    embedded: tuple[tuple[str, type[Message]], ...] = (
        ("subscription", ConsumerProtocolSubscription),
        ("assignment", ConsumerProtocolAssignment),
    )
    for member, shown in zip(group.members, data["members"], strict=True):
        for field, cls in embedded:
            raw = getattr(member, field)
            try:
                message, version = read_embedded(cls, raw), stored_version(raw)
            except DecodeError:
                continue
            if version <= cls.VALID_VERSIONS.highest:
                shown[field] = message.to_json(version=version)
    return data
