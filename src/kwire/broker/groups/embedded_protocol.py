"""Subscriptions and assignments of consumers, in the opaque bytes of the classic protocol.

    int16 version, ConsumerProtocolSubscription or ConsumerProtocolAssignment

An unknown version is read as the newest known one, and fields that a newer client appends are ignored, so a rolling
upgrade of clients works.

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
    """Return the version of the bytes, at most the newest known one.

    Raises Truncated; Malformed for a negative version.
    """
    if len(data) < 2:
        raise Truncated(f"version of 2 bytes, {len(data)} left", 0)
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise Malformed(f"invalid version {version} of the consumer protocol", 0)
    return min(version, NEWEST)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode a consumer's subscription and owned partitions. Raises DecodeError."""
    return ConsumerProtocolSubscription.decode_from(data, 2, version=embedded_version(data))[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode a consumer's assignment; empty bytes are an empty one. Raises DecodeError."""
    if not data:
        return ConsumerProtocolAssignment()
    return ConsumerProtocolAssignment.decode_from(data, 2, version=embedded_version(data))[0]


def write_assignment(assignment: ConsumerProtocolAssignment, version: int) -> bytes:
    """Encode an assignment with its version."""
    return write_prefixed(assignment, version)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics of these subscriptions, None if one cannot be read. Only fields of version 0 are read."""
    topics: set[str] = set()
    try:
        for data in metadata:
            embedded_version(data)
            topics.update(ConsumerProtocolSubscription.decode_from(data, 2, version=0)[0].topics)
    except DecodeError:
        return None
    return frozenset(topics)
