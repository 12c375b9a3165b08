"""restore: a log directory from Parquet files, one task per partition.

The first Spark job lists the partitions of each file. In the second, the task of a partition reads its files, as
`kwire log restore` does. A file of a single partition (`topic=orders/partition=0/`, or an output of the export job) is
read once; a file of many partitions is read once for each.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition, new_uuid, parse_uuid, render_uuid
from kwire.log.reading.paths import StorageOptions
from kwire.spark.jobs.choice import as_list
from kwire.spark.jobs.journal import Row, publish
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, partition_rows
from kwire.spark.jobs.runner import Item, ProgressCallback, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.maintenance.from_parquet import FromParquetOptions

__all__ = ["Restored", "partitions_of_files", "restore"]

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "topic_id": "string",
    "files": "int",
    "records": "bigint",
    "size_bytes": "bigint",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "problem": "string",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(JobResult):
    """The result of restore. offset_table: the Parquet file of new offsets, or None if offsets were kept."""

    offset_table: str | None

    @property
    def translation(self) -> DataFrame:
        """topic, partition, old_offset, new_offset, count: ranges of offsets that were renumbered.

        Raises OptionError without an offset table.
        """
        if self.offset_table is None:
            raise OptionError("no offset table; pass offset_table to restore")
        return self.session.read.parquet(self.offset_table)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPartitions:
    """Lists the partitions of a file; subject: its path or URL."""

    topic: str | None
    storage: StorageOptions = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.from_parquet.parquet_input import open_input

        source = open_input([item.subject], self.topic, self.storage)
        return {"has_offsets": source.has_offsets, "partitions": [list(key) for key in source.pieces()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePartition:
    """Writes one partition; subject: (topic, partition, its files, topic id). offset_tables: a directory."""

    options: FromParquetOptions
    offset_tables: str
    now_ms: int

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.from_parquet import restore_from_parquet
        from kwire.storage.file_system import FileSystem

        topic, partition, inputs, topic_id = item.subject
        files, directory, table = FileSystem(), f"{attempt}/logs", f"{attempt}/offsets.parquet"
        options = replace(
            self.options,
            offset_table=None if self.options.offset_table is None else table,
            topic_ids={topic: parse_uuid(topic_id)},
            only=[(topic, partition)],
        )
        [restored] = restore_from_parquet(inputs, directory, options, now_ms=self.now_ms)
        if self.options.offset_table is not None:
            files.make_directory(self.offset_tables)
            files.rename(table, f"{self.offset_tables}/{item.name}.parquet")
        assert item.output is not None
        publish(files, f"{directory}/{item.name}", item.output)
        return {
            "topic": topic,
            "partition": partition,
            "topic_id": topic_id,
            "files": len(inputs),
            "records": restored.records,
            "size_bytes": restored.size_bytes,
            "log_start_offset": restored.log_start_offset,
            "log_end_offset": restored.log_end_offset,
        }


def restore(
    spark: SparkSession,
    source: str | Sequence[str],
    target: str,
    *,
    topic: str | None = None,
    compression: str = "none",
    level: int | None = None,
    segment_bytes: int = 1 << 30,
    new_offsets: bool = False,
    offset_table: str | None = None,
    topic_ids: Mapping[str, uuid.UUID] | None = None,
    node_id: int = 1,
    cluster_id: str | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> Restored:
    """Create a log directory from Parquet files, directories, globs or URLs; columns as for `kwire log restore`.

    target: a directory that driver and executors share. topic: of rows without a topic. new_offsets: number records
    from 0 even if the files have offsets; offset_table: Parquet file to write in that case, for translate_offsets.
    topic_ids: ids of existing topics; other topics get random ids.
    Raises OptionError, LogError; JobFailed when all other partitions are complete, which the next call keeps.
    """
    from kwire.maintenance.from_parquet import FromParquetOptions
    from kwire.maintenance.from_parquet.directory import check_topic_ids
    from kwire.records.compression.compressor import check_level, parse_compression
    from kwire.storage.meta_properties import MetaProperties

    codec = parse_compression(compression)
    options = FromParquetOptions(
        topic=topic,
        codec=codec,
        level=check_level(codec, level),
        segment_bytes=segment_bytes,
        new_offsets=new_offsets,
        offset_table=None if offset_table is None else os.path.abspath(offset_table),
        topic_ids=dict(topic_ids or {}),
        node_id=node_id,
        cluster_id=cluster_id,
        storage_options=dict(storage or {}),
    )
    new = NewDirectory(target)
    new.check()
    inputs = as_list(source)
    sizes = _file_sizes(inputs, options.storage_options)
    files_of = _list_partitions(spark, sizes, options, progress)
    check_topic_ids(options.topic_ids, {topic for topic, _ in files_of})
    given_ids = {name: render_uuid(value) for name, value in options.topic_ids.items()}
    ids = {name: given_ids.get(name) or render_uuid(new_uuid()) for name in sorted({key[0] for key in files_of})}
    stored = new.begin(
        {"job": "restore", "inputs": inputs, "topic_ids": given_ids} | _journal_config(options),
        files_of,
        {"now_ms": time.time_ns() // 1_000_000, "ids": ids},
    )
    work = RestorePartition(options=options, offset_tables=f"{new.journal.path}/offsets", now_ms=stored["now_ms"])
    items = _partition_items(files_of, sizes, ids | stored["ids"], new)
    run = run_items(spark, "restore", items, work, journal=new.journal, progress=progress)
    result = Restored(
        rows=partition_rows(run, COLUMNS),
        resumed=run.resumed,
        seconds=run.seconds,
        columns=COLUMNS,
        session=spark,
        offset_table=options.offset_table,
    )
    raise_failures("restore", run, result, new.hint)
    if options.offset_table is not None:
        _join_tables([f"{work.offset_tables}/{item.name}.parquet" for item in items], options.offset_table)
    properties = MetaProperties.new(node_id, cluster_id)
    new.publish(run, {}, lambda part: properties.write(new.journal.files, part, stored["now_ms"]))
    return result


def _journal_config(options: FromParquetOptions) -> Row:
    return {
        "topic": options.topic,
        "codec": options.codec.text,
        "level": options.level,
        "segment_bytes": options.segment_bytes,
        "new_offsets": options.new_offsets,
        "offset_table": options.offset_table,
    }


def _file_sizes(inputs: Sequence[str], storage: StorageOptions) -> dict[str, int]:
    """Return the sizes in bytes of the input files, by path or URL."""
    from kwire.maintenance.from_parquet.parquet_input import LocalFiles, find_files

    fs, paths = find_files(inputs, storage)
    is_local = isinstance(fs, LocalFiles)
    return {path if is_local else fs.unstrip_protocol(path): int(fs.info(path)["size"] or 0) for path in paths}


def _list_partitions(
    spark: SparkSession,
    sizes: Mapping[str, int],
    options: FromParquetOptions,
    progress: ProgressCallback | None,
) -> dict[TopicPartition, list[str]]:
    """Return the files of each partition, from a Spark job over the files."""
    items = [Item(name=path, size_bytes=size, subject=path) for path, size in sizes.items()]
    work = ListPartitions(topic=options.topic, storage=options.storage_options)
    run = run_items(spark, "restore (list partitions)", items, work, progress=progress)
    raise_failures("restore", run, None, "no files were written")
    listed = [(each.item.name, each.row or {}) for each in run.outcomes]
    return partitions_of_files(listed, translates=options.offset_table is not None)


def partitions_of_files(listed: Sequence[tuple[str, Row]], *, translates: bool) -> dict[TopicPartition, list[str]]:
    """Return the files of each partition, in order. listed: (file, row of ListPartitions).

    translates: whether an offset table is requested. Raises OptionError for inconsistent files.
    """
    with_offsets = {row["has_offsets"]: path for path, row in listed}
    if len(with_offsets) > 1:
        raise OptionError(f"{with_offsets[False]}: no column 'offset', which {with_offsets[True]} has")
    if translates and False in with_offsets:
        raise OptionError("offset_table requires files with a column 'offset'")
    files: dict[TopicPartition, list[str]] = {}
    for path, row in listed:
        for topic, partition in row["partitions"]:
            files.setdefault((topic, partition), []).append(path)
    if not files:
        raise OptionError("the files have no rows")
    return dict(sorted(files.items()))


def _partition_items(
    files_of: Mapping[TopicPartition, list[str]], sizes: Mapping[str, int], ids: Mapping[str, str], new: NewDirectory
) -> list[Item]:
    return [
        new.item(
            key,
            size_bytes=sum(sizes[path] for path in files),
            subject=(*key, files, ids[key[0]]),
            fingerprint=[[path, sizes[path]] for path in files],
        )
        for key, files in files_of.items()
    ]


def _join_tables(paths: Sequence[str], target: str) -> None:
    """Write the offset tables of all partitions to one Parquet file. Raises LogError."""
    from pyarrow import parquet

    from kwire.maintenance.export import whole_file
    from kwire.maintenance.from_parquet.directory import OFFSET_TABLE
    from kwire.storage.file_system import FileSystem

    with (
        whole_file(target, FileSystem()) as stream,
        parquet.ParquetWriter(stream, OFFSET_TABLE, compression="zstd") as out,
    ):
        for path in paths:
            out.write_table(parquet.read_table(path, schema=OFFSET_TABLE))
