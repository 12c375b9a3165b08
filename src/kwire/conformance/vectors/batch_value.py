"""Record batches as a value of the data set: header fields, records, and the size of an incomplete batch at the end."""

from __future__ import annotations

import base64
from typing import Any

from kwire.records import Batch, Record, read_batches

__all__ = ["batch_value"]


def batch_value(data: bytes | bytearray) -> dict[str, Any]:
    """Check and decode batches as a consumer does. Raises CorruptBatch."""
    batches: list[dict[str, Any]] = []
    records: list[dict[str, Any]] = []
    complete = 0
    for batch in read_batches(data):
        batch.check()
        records += [_record(len(batches), record) for record in batch.records()]
        batches.append(_header(batch))
        complete += batch.size_bytes
    return {"batches": batches, "records": records, "incompleteBytes": len(data) - complete}


def _record(batch: int, record: Record) -> dict[str, Any]:
    return {
        "batch": batch,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[key, _text(value)] for key, value in record.headers],
    }


def _header(batch: Batch) -> dict[str, Any]:
    header = {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "magic": batch.magic,
        "codec": batch.compression.text,
        "timestampType": batch.timestamp_type.text,
        "maxTimestamp": batch.max_timestamp,
        "sizeInBytes": batch.size_bytes,
    }
    if batch.magic < 2:
        return header
    return {
        **header,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "crc": batch.crc,
        "count": batch.count,
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()
