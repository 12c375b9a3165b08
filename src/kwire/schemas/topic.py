"""The schemas of a Confluent registry from its topic `_schemas`, for copies of a cluster without the registry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kwire.errors import LogError, RegistryError
from kwire.schemas.entries import EntrySource
from kwire.schemas.registered import RegisteredSchema, schema_from_json

if TYPE_CHECKING:
    from kwire.log.reading.readable_log import ReadableLog
    from kwire.records import Record

__all__ = ["TOPIC", "find_log", "read_topic"]

TOPIC = "_schemas"


def find_log(path_or_url: str) -> ReadableLog:
    """Open the partition of `_schemas` in a log directory or cluster. Raises LogError if it has none."""
    import kwire

    logs = kwire.open(path_or_url)
    partitions = [log for partition, log in logs.items() if partition[0] == TOPIC]
    if len(partitions) != 1:
        raise LogError(f"expected one partition of the topic {TOPIC}, found {len(partitions)}", path_or_url)
    return partitions[0]


def read_topic(log: ReadableLog, location: str) -> EntrySource:
    """Read the registry's state from its log. Raises RegistryError for a record that is not one of a registry."""
    return EntrySource(location, replay(log.read(), location))


def replay(records: Iterable[Record], location: str) -> Iterable[RegisteredSchema]:
    """Apply records in order. Deleted versions keep their ids, as in the registry, until their records are removed."""
    state: dict[tuple[object, object], RegisteredSchema] = {}
    for record in records:
        where = f"{location}: offset {record.offset}"
        key, value = _json(record.key, where), _json(record.value, where)
        if key is None or key.get("keytype") not in ("SCHEMA", "DELETE_SUBJECT"):
            continue  # settings, and records that only order the topic
        if key["keytype"] == "SCHEMA":
            place = (key.get("subject"), key.get("version"))
            if value is None:
                state.pop(place, None)
            elif "__enc__" in value:
                raise RegistryError("the schema is encrypted; use the registry's URL", where)
            else:
                state[place] = schema_from_json(value, where)
        elif value is not None and isinstance(last := value.get("version"), int):
            for place, schema in state.items():
                if schema.subject == key.get("subject") and schema.version is not None and schema.version <= last:
                    state[place] = replace(schema, deleted=True)
    return state.values()


def _json(data: bytes | None, where: str) -> Mapping[str, object] | None:
    if data is None:
        return None
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise RegistryError("not a record of a schema registry: expected JSON", where) from None
    if not isinstance(value, Mapping):
        raise RegistryError("not a record of a schema registry: expected a JSON object", where)
    return value
