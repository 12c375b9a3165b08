"""Typed records as rows of plain values, for `--format json` and Spark's history mode.

key and value are in Kafka's JSON form. If one is unreadable, raw_key and raw_value hold its bytes as base64.
"""

from __future__ import annotations

import base64
from typing import Any

from kwire.internal_topics.consumer_protocol import group_json
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.internal_topics.redaction import redacted
from kwire.internal_topics.typed_record import TypedRecord
from kwire.protocol import HIDDEN

__all__ = ["record_row"]


def record_row(record: TypedRecord, *, redact: bool = True) -> dict[str, Any]:
    """Return a record as a row of JSON types. redact: hide secrets."""
    row: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "kind": record.kind,
        "record_type": record.record_type,
        "version": record.version,
        "key": None if record.key is None else record.key.to_json(version=0),
        "value": _value(record, redact),
        "is_tombstone": record.is_tombstone,
        "is_control": record.is_control,
        "is_transactional": record.is_transactional,
        "producer_id": record.producer_id,
        "producer_epoch": record.producer_epoch,
        "coordinator_epoch": record.coordinator_epoch,
        "error": record.error,
        "error_field": record.error_field,
        "error_position": record.error_position,
    }
    if record.key is None and record.raw_key is not None and not record.is_control:
        row["raw_key"] = base64.b64encode(record.raw_key).decode()
    if record.value is None and record.raw_value is not None and record.coordinator_epoch is None:
        hidden = redact and record.topic == METADATA_TOPIC
        row["raw_value"] = HIDDEN if hidden else base64.b64encode(record.raw_value).decode()
    return row


def _value(record: TypedRecord, redact: bool) -> dict[str, Any] | None:
    if record.value is None:
        return None
    assert record.version is not None
    value = record.value.to_json(version=record.version)
    if record.kind == "GroupMetadata":
        return group_json(record.value, value)
    return redacted(record.kind, value) if redact else value
