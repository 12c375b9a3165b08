"""restore: a log directory from Parquet files, one task a partition.

First each file is looked at: which partitions are in it. Then each partition's task reads those files, as
`kwire log restore` does. Files of one partition each (`topic=orders/partition=0/`, or what the job export writes) are
read once; a file of many partitions is read once for each.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition, parse_uuid, render_uuid
from kwire.spark.jobs.journal import Row, put_in_place
from kwire.spark.jobs.new_directory import NewDirectory
from kwire.spark.jobs.result import JobResult, rows_of
from kwire.spark.jobs.runner import Item, ToldProgress, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.records import Compression

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
NOTHING = "nothing was written"


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored(JobResult):
    """What restore did. offset_table: the Parquet file that says what became of offsets, None where they stayed."""

    offset_table: str | None

    @property
    def translation(self) -> DataFrame:
        """topic, partition, old_offset, new_offset, count: runs of offsets that were given anew.

        Raises OptionError where there is no such table.
        """
        if self.offset_table is None:
            raise OptionError("no offset_table was asked for")
        return self.session.read.parquet(self.offset_table)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAtFile:
    """Which partitions a file has; subject: its path or URL."""

    topic: str | None
    storage: Mapping[str, Any] = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.restore.parquet_input import open_input

        source = open_input([item.subject], self.topic, self.storage)
        return {"has_offsets": source.has_offsets, "partitions": [list(key) for key in source.pieces()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreLog:
    """The work on one partition; subject: (topic, partition, its files, topic id)."""

    topic: str | None
    codec: Compression
    level: int | None
    segment_bytes: int
    new_offsets: bool
    offset_tables: str | None
    now_ms: int
    storage: Mapping[str, Any] = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.maintenance.restore import restore_directory
        from kwire.storage.file_system import FileSystem

        topic, partition, inputs, topic_id = item.subject
        files, directory, table = FileSystem(), f"{attempt}/logs", f"{attempt}/offsets.parquet"
        [done] = restore_directory(
            inputs,
            directory,
            now_ms=self.now_ms,
            topic=self.topic,
            codec=self.codec,
            level=self.level,
            segment_bytes=self.segment_bytes,
            new_offsets=self.new_offsets,
            offset_table=None if self.offset_tables is None else table,
            topic_ids={topic: parse_uuid(topic_id)},
            only=[(topic, partition)],
            storage_options=self.storage,
        )
        if self.offset_tables is not None:
            files.make_directory(self.offset_tables)
            files.rename(table, f"{self.offset_tables}/{item.name}.parquet")
        assert item.place is not None
        put_in_place(files, f"{directory}/{item.name}", item.place)
        return {
            "topic": topic,
            "partition": partition,
            "topic_id": topic_id,
            "files": len(inputs),
            "records": done.records,
            "size_bytes": done.size_bytes,
            "log_start_offset": done.log_start_offset,
            "log_end_offset": done.log_end_offset,
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
    progress: ToldProgress | None = None,
    storage: Mapping[str, Any] | None = None,
) -> Restored:
    """Build a log directory from Parquet files, directories, globs or URLs; columns as for `kwire log restore`.

    target: a directory that driver and executors share. topic: of rows that do not name one. new_offsets: number
    records from 0 on although the files have offsets; offset_table: Parquet file to make then, for translate_offsets.
    topic_ids: of topics that a cluster knows already; others get a random one.
    Raises OptionError, LogError; JobFailed, when all other partitions are done and kept for the next call.
    """
    from kwire.maintenance.convert.directory import name_of
    from kwire.maintenance.restore.directory import random_topic_id, write_properties
    from kwire.maintenance.restore.parquet_input import find_files
    from kwire.records.compressor import check_level, parse_compression

    codec, options = parse_compression(compression), dict(storage or {})
    table = None if offset_table is None else os.path.abspath(offset_table)
    if table is not None and (not new_offsets or os.path.lexists(table)):
        raise OptionError(f"{table}: " + ("is there already" if new_offsets else "goes with new_offsets"))
    new = NewDirectory(target)
    new.check()
    inputs = [source] if isinstance(source, str) else list(source)
    fs, paths = find_files(inputs, options)
    is_local = "file" in ((fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol)
    sizes = {path if is_local else fs.unstrip_protocol(path): int(fs.size(path) or 0) for path in paths}
    looking = [Item(name=path, size_bytes=size, subject=path) for path, size in sizes.items()]
    seen = run_items(spark, "restore (looking)", looking, LookAtFile(topic=topic, storage=options), progress=progress)
    raise_failures("restore", seen, None, NOTHING)
    found = partitions_of_files([(each.item.name, each.row or {}) for each in seen.outcomes], table is not None)
    ids = {name: (topic_ids or {}).get(name) or random_topic_id() for name in sorted({name for name, _ in found})}
    present = time.time_ns() // 1_000_000
    settings = {
        "job": "restore",
        "inputs": inputs,
        "topic": topic,
        "codec": codec.text,
        "level": level,
        "segment_bytes": segment_bytes,
        "new_offsets": new_offsets,
        "offset_table": table,
        "topic_ids": {name: render_uuid(value) for name, value in (topic_ids or {}).items()},
    }
    facts = new.begin(
        settings, found, {"now_ms": present, "ids": {name: render_uuid(value) for name, value in ids.items()}}
    )
    known = {name: facts["ids"].get(name, render_uuid(value)) for name, value in ids.items()}
    work = RestoreLog(
        topic=topic,
        codec=codec,
        level=check_level(codec, level),
        segment_bytes=segment_bytes,
        new_offsets=new_offsets,
        offset_tables=None if table is None else f"{new.journal.path}/offsets",
        now_ms=facts["now_ms"],
        storage=options,
    )
    items = [
        Item(
            name=name_of(key),
            size_bytes=sum(sizes[path] for path in files),
            subject=(*key, files, known[key[0]]),
            fingerprint=[[path, sizes[path]] for path in files],
            place=new.place(key),
        )
        for key, files in found.items()
    ]
    done = run_items(spark, "restore", items, work, journal=new.journal, progress=progress)
    result = Restored(
        rows=rows_of(done, COLUMNS),
        resumed=done.resumed,
        seconds=done.seconds,
        columns=COLUMNS,
        session=spark,
        offset_table=table,
    )
    raise_failures("restore", done, result, f"the others are in {new.part}; the same call again does only the rest")
    if table is not None:
        join_tables([f"{work.offset_tables}/{item.name}.parquet" for item in items], table)
    new.publish(done, {}, lambda part: write_properties(new.journal.files, part, node_id, cluster_id, facts["now_ms"]))
    return result


def partitions_of_files(seen: Sequence[tuple[str, Row]], translates: bool) -> dict[TopicPartition, list[str]]:
    """The files of each partition, in their order. seen: (file, what LookAtFile says of it).

    translates: whether offsets are to be translated. Raises OptionError for files that do not go together.
    """
    with_offsets = {row["has_offsets"]: path for path, row in seen}
    if len(with_offsets) > 1:
        raise OptionError(f"{with_offsets[True]} has a column 'offset', {with_offsets[False]} has none")
    if translates and False in with_offsets:
        raise OptionError("the files have no offsets that could be translated")
    found: dict[TopicPartition, list[str]] = {}
    for path, row in seen:
        for topic, partition in row["partitions"]:
            found.setdefault((topic, partition), []).append(path)
    if not found:
        raise OptionError("the files have no rows")
    return dict(sorted(found.items()))


def join_tables(paths: Sequence[str], target: str) -> None:
    """One Parquet file of the offset tables of all partitions, in order. Raises LogError."""
    from pyarrow import parquet

    from kwire.maintenance.export import whole_file
    from kwire.maintenance.restore.directory import OFFSET_TABLE
    from kwire.storage.file_system import FileSystem

    with (
        whole_file(target, FileSystem()) as stream,
        parquet.ParquetWriter(stream, OFFSET_TABLE, compression="zstd") as out,
    ):
        for path in paths:
            out.write_table(parquet.read_table(path, schema=OFFSET_TABLE))
