"""Identifiers that Kafka uses everywhere: partitions, offsets, and ids in their text form."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable

from kwire.errors import Malformed

__all__ = ["MAX_OFFSET", "TopicPartition", "by_topic", "decode_base64url", "new_uuid", "parse_uuid", "render_uuid"]

TopicPartition = tuple[str, int]
"""(topic, partition)."""

MAX_OFFSET = (1 << 63) - 1

RESERVED_IDS = 100  # ids below this number are for Kafka's own use


def by_topic(keys: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions by topic, in the order of the first one of each."""
    topics: dict[str, list[int]] = {}
    for topic, partition in keys:
        topics.setdefault(topic, []).append(partition)
    return topics


def render_uuid(value: uuid.UUID) -> str:
    """Render a topic, cluster or directory id: 22 characters of URL-safe base64 without padding.

    Source: org.apache.kafka.common.Uuid.
    """
    return base64.urlsafe_b64encode(value.bytes).decode()[:22]


def parse_uuid(text: str, position: int = 0) -> uuid.UUID:
    """Parse the form that render_uuid gives. Raises Malformed, with `position`, for any other text."""
    try:
        return uuid.UUID(bytes=decode_base64url(text) if len(text) == 22 else b"")
    except ValueError as error:
        raise Malformed(f"{text[:40]!r} is not an id of 22 base64 characters", position) from error


def decode_base64url(text: str) -> bytes:
    """Decode base64 of the URL-safe alphabet (RFC 4648, section 5), padded or not. Raises ValueError.

    b64decode accepts '+' and '/' besides the two characters that replace them, with a warning from Python 3.15 on.
    """
    if not set(text).isdisjoint("+/"):
        raise ValueError("'+' and '/' are not in the URL-safe alphabet")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def new_uuid() -> uuid.UUID:
    """Return a random id, not reserved, whose text does not begin with a dash (which tools take for an option)."""
    while (value := uuid.uuid4()).int < RESERVED_IDS or render_uuid(value).startswith("-"):
        pass
    return value
