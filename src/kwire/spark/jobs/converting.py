"""convert: a log directory in another record format or with another codec, one task a partition.

The result is that of `kwire log convert -o`: see kwire.maintenance.convert and docs/convert.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kwire.errors import OptionError
from kwire.log import LogDirectory
from kwire.spark.jobs.choice import choose
from kwire.spark.jobs.journal import Row, put_in_place
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, rows_of
from kwire.spark.jobs.runner import Done, Item, ToldProgress, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.maintenance.convert import TargetFormat

__all__ = ["convert"]

NOTHING = "nothing was written"

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
class ConvertLog:
    """The work on one partition; subject: its log. In memory only where there is no attempt to write to."""

    target: TargetFormat
    now_ms: int

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.convert.partition import convert_partition
        from kwire.storage.file_system import FileSystem

        files, made = FileSystem(), f"{attempt}/log" if attempt else None
        converted = convert_partition(item.subject, self.target, directory=made, file_system=files, now_ms=self.now_ms)
        if made is not None:
            assert item.place is not None
            put_in_place(files, made, item.place)
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
    progress: ToldProgress | None = None,
    storage: Mapping[str, Any] | None = None,
) -> JobResult:
    """Write the log directory at a path or URL anew with another magic (0, 1, 2), codec or both.

    target: a directory that driver and executors share; None finds out sizes and losses in memory and writes nothing.
    topics: names and patterns; with all topics and partitions the metadata log and the directory's own files come too.
    Raises LossRefused (an OptionError) before anything is written where something would be lost without accept_loss;
    OptionError, LogError; JobFailed, when all other partitions are done and kept for the next call.
    """
    from kwire.maintenance.convert import LossRefused, TargetFormat
    from kwire.maintenance.convert.batch_format import Loss
    from kwire.maintenance.convert.directory import (
        cleaner_offsets,
        convertible,
        copy_rest,
        name_of,
        settings_of,
    )
    from kwire.maintenance.part_journal import fingerprint
    from kwire.records.compressor import check_level, parse_compression

    if magic is None and compression is None:
        raise OptionError("nothing to convert to: give magic, compression or both")
    codec = None if compression is None else parse_compression(compression)
    wanted = TargetFormat(magic=magic, codec=codec, level=None if codec is None else check_level(codec, level))
    source = LogDirectory(path, **(storage or {}))
    keys = convertible(source, choose(source, topics, partitions))
    work = ConvertLog(target=wanted, now_ms=time.time_ns() // 1_000_000)
    examining = [Item(name=name_of(key), size_bytes=source[key].size_bytes, subject=source[key]) for key in keys]
    if target is None:
        return result_of(spark, run_items(spark, "convert (dry run)", examining, work, progress=progress), NOTHING)
    new = NewDirectory(target)
    new.check()
    if magic in (0, 1) and not accept_loss:
        examined = run_items(spark, "convert (dry run)", examining, work, progress=progress)
        result_of(spark, examined, NOTHING)
        loss = Loss()
        for row in examined.rows:
            loss.add(Loss(**row["loss"]))
        if loss:
            raise LossRefused(f"this loses {loss.described()}; accept the loss or choose magic 2")
    new.begin({"job": "convert"} | settings_of(source, wanted), keys)
    items = [
        replace(each, place=new.place(key), fingerprint=fingerprint(source[key]))
        for key, each in zip(keys, examining, strict=True)
    ]
    done = run_items(spark, "convert", items, work, journal=new.journal, progress=progress)
    result = result_of(spark, done, f"the others are in {new.part}; the same call again does only the rest")
    whole = not topics and not partitions
    new.publish(
        done, cleaner_offsets(source), lambda part: copy_rest(source, part, new.journal.files) if whole else None
    )
    return result


def result_of(spark: SparkSession, done: Done, hint: str) -> JobResult:
    """The result; raises JobFailed with it where a partition has failed."""
    result = JobResult(
        rows=rows_of(done, COLUMNS), resumed=done.resumed, seconds=done.seconds, columns=COLUMNS, session=spark
    )
    raise_failures("convert", done, result, hint)
    return result
