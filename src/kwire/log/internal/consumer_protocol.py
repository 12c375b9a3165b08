"""What members of a classic group of type `consumer` say and are told: bytes inside the group's record.

    int16 version, ConsumerProtocolSubscription      what a member subscribed to, and what it owned before
    int16 version, ConsumerProtocolAssignment        the partitions it was given

Later versions begin with the fields of the latest known one and are read as that.
Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from kwire.errors import DecodeError, UnsupportedVersion

if TYPE_CHECKING:
    from kwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
    from kwire.messages.base import Message

    M = TypeVar("M", bound=Message)

__all__ = ["PROTOCOL_TYPE", "read_assignment", "read_embedded", "read_subscription"]

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
