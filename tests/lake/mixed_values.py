"""A topic whose values have several record types, for tests: Avro, Protobuf and JSON Schema, and their registry."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kwire.schemas import Registry, encode

__all__ = ["CREATED", "MOVED", "PAID", "PLACED", "TYPES", "add_schema", "mixed_registry", "value_of"]

CREATED, PAID, PLACED, MOVED = "com.example.OrderCreated", "com.example.Paid", "shop.Placed", "Item moved"
TYPES = (CREATED, PAID, PLACED, MOVED)
IDS = {CREATED: 41, PAID: 42, PLACED: 43, MOVED: 44}


def add_schema(
    folder: Path,
    subject: str,
    version: int,
    schema_id: int,
    text: object,
    kind: str = "AVRO",
    references: Sequence[object] = (),
) -> None:
    """Write a schema of a registry in a folder."""
    schema = text if isinstance(text, str) else json.dumps(text)
    entry: dict[str, Any] = {
        "id": schema_id,
        "subject": subject,
        "version": version,
        "schemaType": kind,
        "schema": schema,
    }
    entry |= {"references": list(references)} if references else {}
    (folder / f"{schema_id}-{version}.json").write_text(json.dumps(entry))


def record(name: str, *fields: tuple[str, Any]) -> dict[str, Any]:
    """Return an Avro record with fields that have defaults."""
    made = [{"name": each, "type": kind, "default": 0 if kind == "int" else None} for each, kind in fields]
    return {"type": "record", "name": name, "fields": made}


def mixed_registry(folder: Path, topic: str = "avro") -> Registry:
    """Write and return a registry with a subject for each type, as TopicRecordNameStrategy names it."""
    folder.mkdir()
    add_schema(folder, f"{topic}-{CREATED}", 1, 41, record(CREATED, ("id", "int")))
    add_schema(folder, f"{topic}-{PAID}", 1, 42, record(PAID, ("id", "int"), ("by", ["null", "string"])))
    proto = 'syntax = "proto3"; package shop; message Other { string o = 1; } message Placed { int32 id = 1; }'
    add_schema(folder, f"{topic}-{PLACED}", 1, 43, proto, "PROTOBUF")
    moved = {"title": MOVED, "type": "object", "properties": {"id": {"type": "integer"}}}
    add_schema(folder, f"{topic}-{MOVED}", 1, 44, moved, "JSON")
    return Registry(folder)


def value_of(registry: Registry, kind: str, number: int, schema: int | None = None) -> bytes:
    """Return a value with an id."""
    message = kind if kind == PLACED else None
    return encode({"id": number}, registry, schema=IDS[kind] if schema is None else schema, message=message)
