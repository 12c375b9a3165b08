"""What consumers put into the opaque bytes of the classic protocol: subscriptions and assignments.

    int16 version, ConsumerProtocolSubscription or ConsumerProtocolAssignment

A version above ours is read as our newest, and what a newer client adds behind it is left alone, so that a rolling
upgrade of clients does not blind the coordinator.

Source: org.apache.kafka.clients.consumer.internals.ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Iterable

from kwire.errors import DecodeError, Malformed, Truncated
from kwire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kwire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kwire.protocol.record_values import write_prefixed

__all__ = [
    "CONSUMER_PROTOCOL_TYPE",
    "embedded_version",
    "read_assignment",
    "read_subscription",
    "subscribed_topics",
    "write_assignment",
]

CONSUMER_PROTOCOL_TYPE = "consumer"
NEWEST = ConsumerProtocolSubscription.VALID_VERSIONS.highest


def embedded_version(data: bytes) -> int:
    """The version in front, or our newest if it is above that. Raises Truncated, Malformed for a negative one."""
    if len(data) < 2:
        raise Truncated(f"version of 2 bytes, {len(data)} left", 0)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise Malformed(f"version {version} of the consumer protocol", 0)
    return min(version, NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a consumer subscribes to and owns. Raises DecodeError."""
    return ConsumerProtocolSubscription.decode_from(data, 2, version=embedded_version(data))[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a consumer was given; nothing when the bytes are empty. Raises DecodeError."""
    if not data:
        return ConsumerProtocolAssignment()
    return ConsumerProtocolAssignment.decode_from(data, 2, version=embedded_version(data))[0]


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """An assignment behind its version."""
    return write_prefixed(assignment, version)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of these subscriptions, None when one cannot be read. Only version 0's fields are looked at."""
    topics: set[str] = set()
    try:
        for data in metadata:
            embedded_version(data)
            topics.update(ConsumerProtocolSubscription.decode_from(data, 2, version=0)[0].topics)
    except DecodeError:
        return None
    return frozenset(topics)
