"""What members of a classic group of type `consumer` say and are told: bytes inside the group's record.

    int16 version, ConsumerProtocolSubscription      what a member subscribed to, and what it owned before
    int16 version, ConsumerProtocolAssignment        the partitions it was given

Later versions begin with the fields of the latest known one and are read as that.
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
    """A member's subscription; None where data is none."""
    from kwire.messages import ConsumerProtocolSubscription

    found = read_embedded(ConsumerProtocolSubscription, data)
    return found[0] if found else None


def read_assignment(data: bytes) -> ConsumerProtocolAssignment | None:
    """A member's assignment; None where data is none."""
    from kwire.messages import ConsumerProtocolAssignment

    found = read_embedded(ConsumerProtocolAssignment, data)
    return found[0] if found else None


def read_embedded(cls: type[M], data: bytes) -> tuple[M, int] | None:
    """(message, version as stored) at the start of data; None where there is none."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        return cls.decode_from(data, 2, version=min(version, cls.VALID_VERSIONS.highest))[0], version
    except (DecodeError, UnsupportedVersion):
        return None


def group_json(group: Any, data: dict[str, Any]) -> dict[str, Any]:
    """A GroupMetadataValue's JSON form, in which consumers' subscriptions and assignments are JSON where they can be.

    Changes data, and returns it. What is no known version of theirs stays base64.
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
