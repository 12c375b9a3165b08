"""The options of writing `kafka-log`, a DataFrame as a log directory; docs/spark.md has them as a table.

Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kwire.errors import OptionError
from kwire.log.files.file_names import LARGEST_PARTITION, LARGEST_SEGMENT_BYTES, SMALLEST_SEGMENT_BYTES, check_topic
from kwire.spark.options.option import (
    PATH,
    Option,
    check_names,
    choice,
    is_storage,
    parse_paths,
    positive,
    user_options,
)
from kwire.spark.sink_columns import TOPIC

__all__ = ["WRITE_OPTIONS", "LogWriteOptions", "parse_write_options"]

PAGE = "docs/spark.md"
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]

TARGET = replace(
    PATH,
    value="string, also as the argument of `save`",
    meaning="The directory to write, on a file system that driver and executors share.",
)
PARTITIONS = Option[int](
    name="partitions",
    parse=positive,
    default=1,
    value="int",
    meaning="The number of partitions for rows without a value in the column `partition`.",
)
COMPRESSION = Option[Codec](
    name="compression",
    parse=choice("none", "gzip", "snappy", "lz4", "zstd"),
    default="none",
    value="`none`, `gzip`, `snappy`, `lz4` or `zstd`",
    meaning="The compression codec of batches.",
)
SEGMENT_BYTES = Option[int](
    name="segment.bytes",
    parse=positive,
    default=1 << 30,
    value="int",
    meaning="Maximum size of a segment file.",
)
WRITE_OPTIONS: tuple[Option[object], ...] = (TARGET, TOPIC, PARTITIONS, COMPRESSION, SEGMENT_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWriteOptions:
    """The options of a write. path: absolute, local. topic: of all rows; None to use the column.

    partitions: number of partitions for rows that do not name one.
    """

    path: str
    topic: str | None
    partitions: int
    compression: Codec
    segment_bytes: int


def parse_write_options(options: Mapping[str, str]) -> LogWriteOptions:
    """Parse the options of one write. Raises OptionError."""
    given = user_options(options)
    unsupported = {"kafka.bootstrap.servers": "use kafka-live to write to brokers"}
    unsupported |= {key: "log directories are written to local file systems" for key in given if is_storage(key)}
    check_names(given, WRITE_OPTIONS, unsupported, source="writing to kafka-log", page=PAGE)
    topic, partitions = TOPIC.of(given), PARTITIONS.of(given)
    if topic is not None:
        check_topic(topic)
    segment_bytes = SEGMENT_BYTES.of(given)
    if not SMALLEST_SEGMENT_BYTES <= segment_bytes <= LARGEST_SEGMENT_BYTES:
        raise OptionError(
            f"Option 'segment.bytes': must be {SMALLEST_SEGMENT_BYTES} to {LARGEST_SEGMENT_BYTES}, got {segment_bytes}"
        )
    if partitions > LARGEST_PARTITION:
        raise OptionError(f"Option 'partitions': must be at most {LARGEST_PARTITION}, got {partitions}")
    return LogWriteOptions(
        path=_local_directory(*parse_paths(given)),
        topic=topic,
        partitions=partitions,
        compression=COMPRESSION.of(given),
        segment_bytes=segment_bytes,
    )


def _local_directory(path: str) -> str:
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if "://" in path or "::" in path:
        raise OptionError(
            "Option 'path': log directories are written to a local file system that driver and executors share; copy "
            "the finished directory to its destination"
        )
    if any(character in path for character in "*?["):
        raise OptionError("Option 'path': the name of a directory to write cannot contain '*', '?' or '['")
    return os.path.abspath(path)
