"""Kafka's ids: 16 random bytes, as text in URL-safe base64 without padding.

Source: org.apache.kafka.common.Uuid.
"""

from __future__ import annotations

import base64
import uuid

__all__ = ["ONE_UUID", "ZERO_UUID", "new_uuid", "parse_uuid", "uuid_text"]

ZERO_UUID, ONE_UUID = uuid.UUID(int=0), uuid.UUID(int=1)
RESERVED = 100
"""Ids below this number are kept for Kafka's own use."""


def uuid_text(value: uuid.UUID) -> str:
    """22 characters."""
    return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")


def parse_uuid(text: str) -> uuid.UUID:
    """From 22 characters. Raises ValueError."""
    return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def new_uuid() -> uuid.UUID:
    """A random id, not reserved, whose text does not begin with a dash (which tools would take for an option)."""
    while (value := uuid.uuid4()).int < RESERVED or uuid_text(value).startswith("-"):
        pass
    return value
