"""A topic of Avro values for tests, and the registry of their schemas."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from kwire.records import Record, TimestampType, write_batch
from kwire.schemas import Registry
from kwire.storage.checkpoints import PARTITION_METADATA, render_partition_metadata


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """Return a registry in a folder: ids 41 and 42 are the versions of the subject avro-value."""
    folder = tmp_path / "schemas"
    folder.mkdir()
    versions: list[list[dict[str, Any]]] = [[{"name": "id", "type": "int"}]]
    versions.append([{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}])
    for number, fields in enumerate(versions, 1):
        text = json.dumps({"type": "record", "name": "Order", "fields": fields})
        (folder / f"avro-value.{number}.{40 + number}.avsc").write_text(text)
    return Registry(folder)


def write_values(
    folder: Path,
    values: list[bytes | None] | list[bytes],
    keys: list[bytes] | None = None,
    *,
    first: int = 0,
    partition: int = 0,
    topic_id: uuid.UUID | None = None,
) -> Path:
    """Write a segment of the topic `avro`, and partition.metadata with a topic id."""
    (folder / f"avro-{partition}").mkdir(parents=True, exist_ok=True)
    kind = TimestampType.CREATE_TIME
    rows = [
        Record(
            offset=first + n, timestamp=1, timestamp_type=kind, key=keys[n] if keys else None, value=value, headers=[]
        )
        for n, value in enumerate(values)
    ]
    (folder / f"avro-{partition}" / f"{first:020}.log").write_bytes(write_batch(rows, base_offset=first))
    if topic_id is not None:
        (folder / f"avro-{partition}" / PARTITION_METADATA).write_bytes(render_partition_metadata(topic_id))
    return folder
