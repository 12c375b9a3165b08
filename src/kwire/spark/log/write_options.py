"""The options of writing to `kafka-log`: a DataFrame as a new log directory. Standard library only.

docs/spark.md has the same table.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kwire.errors import OptionError
from kwire.log.file_names import LARGEST_PARTITION, check_topic
from kwire.spark.options.given import user_options
from kwire.spark.options.values import is_storage, parse_choice, parse_paths, parse_positive, refuse_unknown

__all__ = ["LogWriteOptions", "parse_write_options"]

PAGE = "docs/spark.md"
NAMES = ("path", "topic", "partitions", "compression", "segment.bytes")
DEFAULT_SEGMENT_BYTES = 1 << 30
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWriteOptions:
    """Everything a write asked for. path: absolute, local. topic: of all rows, None where the column says.

    partitions: among how many of them rows are shared that do not name one.
    """

    path: str
    topic: str | None
    partitions: int
    compression: Codec
    segment_bytes: int


def parse_write_options(options: Mapping[str, str]) -> LogWriteOptions:
    """Check the options of one write; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    if "kafka.bootstrap.servers" in given:
        raise OptionError("Option 'kafka.bootstrap.servers' is not supported: to write to brokers, use kafka-live")
    for key in filter(is_storage, given):
        raise OptionError(f"Option '{key}' is not supported: log directories are written to local file systems")
    refuse_unknown(given, NAMES, "writing to kafka-log", PAGE)
    topic = given.get("topic")
    if topic is not None:
        check_topic(topic)
    partitions = parse_positive(given, "partitions") or 1
    if partitions > LARGEST_PARTITION:
        raise OptionError(f"Option 'partitions': {LARGEST_PARTITION} at most, got {partitions}")
    return LogWriteOptions(
        path=parse_target(*parse_paths(given)),
        topic=topic,
        partitions=partitions,
        compression=parse_choice(given, "compression", "none", ("none", "gzip", "snappy", "lz4", "zstd")),
        segment_bytes=parse_positive(given, "segment.bytes") or DEFAULT_SEGMENT_BYTES,
    )


def parse_target(path: str) -> str:
    """The local directory to write."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path or "::" in path:
        raise OptionError(
            "Option 'path': log directories are written to local file systems, which driver and executors share; copy "
            "the finished directory to where it is to be"
        )
    if any(character in path for character in "*?["):
        raise OptionError("Option 'path': a directory to write cannot have '*', '?' or '[' in its name")
    return os.path.abspath(path)
