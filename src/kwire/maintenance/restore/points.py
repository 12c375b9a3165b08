"""Where logs are cut: at a moment, or at offsets of partitions, from a file.

{"partitions": [{"topic": "orders", "partition": 0, "offset": 42}]}    JSON, as for kafka-delete-records
orders,0,42                                                            CSV, as from kafka-consumer-groups --export
orders:0:42                                                            lines of kafka-get-offsets
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kwire.errors import OptionError
from kwire.identifiers import MAX_OFFSET, TopicPartition

__all__ = ["AtOffsets", "AtTime", "RestorePoint", "parse_offsets_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTime:
    """A moment, in ms since the epoch: a log keeps the batches before the first one with a later timestamp."""

    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AtOffsets:
    """The log end offsets of partitions; others are kept to their end. origin: of the offsets, for messages."""

    offsets: Mapping[TopicPartition, int]
    origin: str = "offsets"


RestorePoint: TypeAlias = AtTime | AtOffsets


def parse_offsets_file(data: bytes, path: str) -> AtOffsets:
    """Parse a file of offsets in one of the forms above. path: for messages. Raises OptionError with the line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: byte {error.start}: not UTF-8") from error
    entries = _json_entries(text, path) if text.lstrip()[:1] in ("{", "[") else _csv_entries(text, path)
    offsets: dict[TopicPartition, int] = {}
    for where, topic, partition, offset in entries:
        if offsets.setdefault((topic, partition), offset) != offset:
            raise OptionError(f"{path}: {where}: another offset of {topic[:249]}-{partition}")
    if not offsets:
        raise OptionError(
            f"{path}: no offsets; expected JSON as for kafka-delete-records, or lines topic,partition,offset"
        )
    return AtOffsets(offsets=offsets, origin=path)


def _json_entries(text: str, path: str) -> Iterator[tuple[str, str, int, int]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise OptionError(f"{path}: not JSON: {error}") from error
    entries = document.get("partitions") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise OptionError(f"{path}: no array 'partitions'")
    for number, entry in enumerate(entries):
        where = f"partitions[{number}]"
        values = [entry.get(name) if isinstance(entry, dict) else None for name in ("topic", "partition", "offset")]
        yield where, *_checked(values, f"{path}: {where}")


def _csv_entries(text: str, path: str) -> Iterator[tuple[str, str, int, int]]:
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#") or (number == 1 and stripped.lower() == "topic,partition,offset"):
            continue
        fields = next(csv.reader([stripped], skipinitialspace=True)) if "," in line else stripped.split(":")
        where = f"line {number}"
        if len(fields) != 3:
            raise OptionError(f"{path}: {where}: {len(fields)} fields; expected topic,partition,offset")
        numbers = [int(each) if each.isascii() and each.isdecimal() else each for each in fields[1:]]
        yield where, *_checked([fields[0], *numbers], f"{path}: {where}")


def _checked(values: list[object], where: str) -> tuple[str, int, int]:
    topic, partition, offset = values
    if not isinstance(topic, str) or not topic:
        raise OptionError(f"{where}: topic is {topic!r:.60}, expected a name")
    for name, value, highest in (("partition", partition, (1 << 31) - 1), ("offset", offset, MAX_OFFSET)):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= highest:
            raise OptionError(f"{where}: {name} is {value!r:.60}, expected a number from 0 to {highest}")
    assert isinstance(partition, int)
    assert isinstance(offset, int)
    return topic, partition, offset
