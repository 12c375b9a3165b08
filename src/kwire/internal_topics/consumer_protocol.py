"""Subscriptions and assignments of consumers in the records of classic groups of type `consumer`.

    int16 version, ConsumerProtocolSubscription      a member's subscription and the partitions it owned before
    int16 version, ConsumerProtocolAssignment        a member's assignment

Newer versions begin with the fields of the newest known one and are read as that.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from kwire.errors import DecodeError, UnsupportedVersion

if TYPE_CHECKING:
    from kwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    from kwire.messages.base import Message

    M = TypeVar("M", bound=Message)

__all__ = ["PROTOCOL_TYPE", "group_json", "read_assignment", "read_embedded", "read_subscription"]

PROTOCOL_TYPE = "consumer"


def read_subscription(data: bytes) -> ConsumerProtocolSubscription | None:
    """Decode a member's subscription; None for other bytes."""
    from kwire.messages import ConsumerProtocolSubscription

    found = read_embedded(ConsumerProtocolSubscription, data)
    return found[0] if found else None


def read_assignment(data: bytes) -> ConsumerProtocolAssignment | None:
    """Decode a member's assignment; None for other bytes."""
    from kwire.messages import ConsumerProtocolAssignment

    found = read_embedded(ConsumerProtocolAssignment, data)
    return found[0] if found else None


def read_embedded(cls: type[M], data: bytes) -> tuple[M, int] | None:
    """Return (message, stored version) from the start of data; None for other bytes."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        return cls.decode_from(data, 2, version=min(version, cls.VALID_VERSIONS.highest))[0], version
    except (DecodeError, UnsupportedVersion):
        return None


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
            found = read_embedded(cls, getattr(member, field))
            if found and found[1] <= cls.VALID_VERSIONS.highest:
                message, version = found
                shown[field] = message.to_json(version=version)
    return data
