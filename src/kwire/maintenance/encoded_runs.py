"""Build a log directory from files of encoded batches, which several writers made of their rows.

A file has runs: the batches of some rows of one partition, with offsets from 0 on or with the rows' offsets. The runs
of a partition become its log, and only the base offsets of batches change, which the checksum does not cover. Runs
whose offsets overlap are decoded, sorted and encoded again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kwire.errors import EncodeError, LogError, OptionError
from kwire.extras import needing
from kwire.identifiers import TopicPartition
from kwire.maintenance.new_directory import NewDirectory, WrittenPartition, name_of
from kwire.maintenance.new_log import NewLog
from kwire.maintenance.offset_spans import MAX_SORT_BYTES, clusters
from kwire.records import Compression, RejectedRecords
from kwire.records.format.batch_header import OFFSET, batch_spans
from kwire.storage.driver_errors import cause
from kwire.storage.file_system import FileSystem

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EncodedRun", "directory_from_runs"]

CHUNK_BYTES = 4 << 20  # of batches that are read at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRun:
    """Batches of one partition, in offset order. position, size_bytes: in the file. low, high: their offsets."""

    topic: str
    partition: int
    position: int
    size_bytes: int
    records: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A run and its file."""

    path: str
    run: EncodedRun

    @property
    def low(self) -> int:
        """First offset."""
        return self.run.low

    @property
    def high(self) -> int:
        """Last offset."""
        return self.run.high


def directory_from_runs(
    files: Sequence[tuple[str, Sequence[EncodedRun]]],
    directory: str,
    *,
    codec: Compression,
    keep_offsets: bool,
    segment_bytes: int,
    now_ms: int,
    max_sort_bytes: int = MAX_SORT_BYTES,
) -> list[WrittenPartition]:
    """Build a log directory from runs in the order of files.

    directory: missing or empty. codec: of batches whose rows have to be sorted. keep_offsets: the runs have the
    offsets of their records, in any order; otherwise records are numbered from 0 on.
    Raises OptionError for a directory in use and for more than max_sort_bytes of overlapping runs; LogError for
    duplicate offsets, and files that cannot be read or written. No directory is created on an error.
    """
    sources: dict[TopicPartition, list[Source]] = defaultdict(list)
    for path, runs in files:
        for run in runs:
            sources[run.topic, run.partition].append(Source(path=path, run=run))
    new = NewDirectory(FileSystem(), directory, now_ms=now_ms, segment_bytes=segment_bytes)
    new.create(sum(run.size_bytes for _, runs in files for run in runs))
    try:
        for key in sorted(sources):
            key_sources = sources[key]
            log = new.open(key, min(each.low for each in key_sources) if keep_offsets else 0)
            try:
                if keep_offsets:
                    append_by_offset(log, key, key_sources, codec, segment_bytes, max_sort_bytes)
                else:
                    for source in key_sources:
                        append_run(log, source, log.next_offset - source.low)
            except (EncodeError, RejectedRecords) as error:
                raise LogError(f"{name_of(key)}: {error.what}") from error
            new.finish(key, sum(each.run.records for each in key_sources))
        return new.publish()
    except BaseException:  # Ctrl-C too: the same call can be repeated
        new.discard()
        raise


def append_by_offset(
    log: NewLog,
    key: TopicPartition,
    sources: Sequence[Source],
    codec: Compression,
    segment_bytes: int,
    max_sort_bytes: int,
) -> None:
    """Append runs in the order of their offsets."""
    for overlapping in clusters(sources):
        if len(overlapping) == 1:
            append_run(log, overlapping[0], 0)
            continue
        with needing("runs that overlap"):
            from kwire.maintenance.row_batches import batch_options, encode_rows

        rows = sorted_rows(key, overlapping, max_sort_bytes)
        for data in encode_rows(rows, {**batch_options(codec, None, segment_bytes), "keep_offsets": True}):
            log.append(data)


def append_run(log: NewLog, source: Source, shift: int) -> None:
    """Append the batches of a run, with offsets higher by shift."""
    for chunk in chunks_of(source):
        for start, _ in batch_spans(chunk):
            OFFSET.pack_into(chunk, start, OFFSET.unpack_from(chunk, start)[0] + shift)
        log.append(chunk)


def chunks_of(source: Source) -> Iterator[memoryview]:
    """Yield the bytes of a run, complete batches at a time. A chunk is valid until the next one."""
    position, end = source.run.position, source.run.position + source.run.size_bytes
    room = bytearray(min(CHUNK_BYTES, end - position))
    try:
        with open(source.path, "rb", buffering=0) as file:
            while position < end:
                file.seek(position)
                view = memoryview(room)[: min(len(room), end - position)]
                view = view[: file.readinto(view)]
                whole = max((end for _, end in batch_spans(view)), default=0)
                if whole:
                    yield view[:whole]
                    position += whole
                elif len(view) < len(room) or len(room) >= source.run.size_bytes:
                    raise LogError(f"byte {position}: expected {end - position} bytes of batches", source.path)
                else:  # a batch that is larger than the room
                    room = bytearray(min(2 * len(room), source.run.size_bytes))
    except OSError as error:
        raise LogError(f"cannot be read: {cause(error)}", source.path) from error


def sorted_rows(key: TopicPartition, sources: Sequence[Source], max_sort_bytes: int) -> pa.RecordBatch:
    """Return the rows of runs, sorted by offset."""
    import numpy as np
    import pyarrow as pa

    from kwire.maintenance.row_batches import TAKEN
    from kwire.records.columns.reader import ColumnReader

    reader = ColumnReader(("offset", *TAKEN))
    batches: list[pa.RecordBatch] = []
    size = 0
    for source in sources:
        for chunk in chunks_of(source):
            for batch in reader.read(chunk, file=source.path):
                batches.append(batch)
                size += batch.nbytes
                if size > max_sort_bytes:
                    raise OptionError(
                        f"offsets of {name_of(key)} are unsorted from {sources[0].low} on, and sorting needs more than "
                        f"{max_sort_bytes} bytes; sort the rows by partition and offset"
                    )
    table = pa.Table.from_batches(batches)
    offsets = table.column("offset").to_numpy()
    order = np.argsort(offsets, kind="stable")
    ascending = offsets[order]
    duplicates = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(duplicates):
        raise LogError(f"offset {ascending[duplicates[0]]} of {name_of(key)} is a duplicate")
    return table.take(pa.array(order)).combine_chunks().to_batches()[0]
