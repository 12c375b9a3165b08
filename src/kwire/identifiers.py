"""What identifies things everywhere in Kafka: partitions, offsets, and ids in their text form."""

from __future__ import annotations

import base64
import binascii
import uuid

from kwire.errors import Malformed

__all__ = ["MAX_OFFSET", "TopicPartition", "new_uuid", "parse_uuid", "render_uuid"]

TopicPartition = tuple[str, int]
"""(topic, partition)."""

MAX_OFFSET = (1 << 63) - 1

RESERVED_IDS = 100  # ids below this number are for Kafka's own use


def render_uuid(value: uuid.UUID) -> str:
    """Render a topic, cluster or directory id: 22 characters of URL-safe base64 without padding.

    Source: org.apache.kafka.common.Uuid.
    """
    return base64.urlsafe_b64encode(value.bytes).decode()[:22]


def parse_uuid(text: str, position: int = 0) -> uuid.UUID:
    """Parse the form that render_uuid gives. Raises Malformed, with `position`, for any other text."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Malformed(f"{text[:40]!r} is not an id of 22 base64 characters", position) from error
    if len(raw) != 16:
        raise Malformed(f"{text[:40]!r} is not an id of 22 base64 characters", position)
    return uuid.UUID(bytes=raw)


def new_uuid() -> uuid.UUID:
    """Return a random id, not reserved, whose text does not begin with a dash (which tools take for an option)."""
    while (value := uuid.uuid4()).int < RESERVED_IDS or render_uuid(value).startswith("-"):
        pass
    return value
