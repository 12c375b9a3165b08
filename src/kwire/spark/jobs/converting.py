"""convert: a log directory in another record format or with another codec, one task per partition.

The result is that of `kwire log convert -o`: see kwire.maintenance.convert and docs/convert.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.log.reading.paths import StorageOptions
from kwire.spark.jobs.choice import select_logs
from kwire.spark.jobs.journal import Row, publish
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, result_of
from kwire.spark.jobs.runner import Item, ProgressCallback, run_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.maintenance.convert import TargetFormat

__all__ = ["convert"]

NO_OUTPUT = "no files were written"

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "segments": "int",
    "batches": "bigint",
    "records": "bigint",
    "source_bytes": "bigint",
    "target_bytes": "bigint",
    "largest_batch_bytes": "bigint",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "lost": "string",
    "problem": "string",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertPartition:
    """Converts one partition; subject: its log. Without an attempt it is converted in memory, as a dry run."""

    target: TargetFormat
    now_ms: int

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.convert.partition import convert_partition
        from kwire.storage.file_system import FileSystem

        files, directory = FileSystem(), f"{attempt}/log" if attempt else None
        converted = convert_partition(
            item.subject, self.target, directory=directory, file_system=files, now_ms=self.now_ms
        )
        if directory is not None:
            assert item.output is not None
            publish(files, directory, item.output)
        return converted.to_json() | {"lost": converted.loss.described() if converted.loss else None}


def convert(
    spark: SparkSession,
    path: str,
    target: str | None,
    *,
    magic: int | None = None,
    compression: str | None = None,
    level: int | None = None,
    accept_loss: bool = False,
    topics: Sequence[str] = (),
    partitions: Sequence[int] = (),
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> JobResult:
    """Copy the log directory at a path or URL with another magic (0, 1, 2), compression codec, or both.

    target: a directory that driver and executors share; None for a dry run that determines sizes and losses.
    topics: names and patterns; without topics and partitions the metadata log and the directory's own files are copied
    too. Raises LossRefused (an OptionError) before anything is written if data would be lost without accept_loss;
    OptionError, LogError; JobFailed when all other partitions are complete, which the next call keeps.
    """
    from kwire.maintenance.convert import LossRefused, TargetFormat
    from kwire.maintenance.convert.batch_format import Loss
    from kwire.maintenance.convert.directory import (
        cleaner_offsets,
        convertible,
        copy_metadata,
        settings_of,
    )
    from kwire.maintenance.new_directory import name_of
    from kwire.records.compression.compressor import check_level, parse_compression

    if magic is None and compression is None:
        raise OptionError("neither magic nor compression given; specify at least one of them")
    codec = None if compression is None else parse_compression(compression)
    target_format = TargetFormat(magic=magic, codec=codec, level=None if codec is None else check_level(codec, level))
    source = LogDirectory(path, **(storage or {}))
    keys = convertible(source, select_logs(source, topics, partitions))
    work = ConvertPartition(target=target_format, now_ms=time.time_ns() // 1_000_000)
    dry_items = [Item(name=name_of(key), size_bytes=source[key].size_bytes, subject=source[key]) for key in keys]
    if target is None:
        run = run_items(spark, "convert (dry run)", dry_items, work, progress=progress)
        return result_of(spark, "convert", run, COLUMNS, NO_OUTPUT)
    new = NewDirectory(target)
    new.check()
    if magic in (0, 1) and not accept_loss:
        dry_run = run_items(spark, "convert (dry run)", dry_items, work, progress=progress)
        result_of(spark, "convert", dry_run, COLUMNS, NO_OUTPUT)
        loss = Loss()
        for row in dry_run.rows:
            loss.add(Loss(**row["loss"]))
        if loss:
            raise LossRefused(f"the conversion loses {loss.described()}; set accept_loss, or use magic 2")
    new.begin({"job": "convert"} | settings_of(source, target_format), keys)
    items = [
        new.item(key, size_bytes=log.size_bytes, subject=log, fingerprint=log.fingerprint())
        for key, log in ((key, source[key]) for key in keys)
    ]
    run = run_items(spark, "convert", items, work, journal=new.journal, progress=progress)
    result = result_of(spark, "convert", run, COLUMNS, new.hint)
    whole = not topics and not partitions
    new.publish(
        run, cleaner_offsets(source), lambda part: copy_metadata(source, part, new.journal.files) if whole else None
    )
    return result
