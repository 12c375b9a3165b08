"""New ids: 16 random bytes. uuid_text: 22 characters of URL-safe base64. Source: org.apache.kafka.common.Uuid."""

from __future__ import annotations

import uuid

from kwire.storage.checkpoints import render_uuid as uuid_text

__all__ = ["new_uuid", "uuid_text"]

RESERVED = 100
"""Ids below this number are kept for Kafka's own use."""


def new_uuid() -> uuid.UUID:
    """A random id, not reserved, whose text does not begin with a dash (which tools would take for an option)."""
    while (value := uuid.uuid4()).int < RESERVED or uuid_text(value).startswith("-"):
        pass
    return value
