"""Conversion of a log directory into a new one.

    DIR.part/           the output, partition by partition
    DIR.part.json       the finished partitions with their sources, to resume an interrupted run
    DIR                 DIR.part, renamed when everything is on disk

Checkpoints are written for the converted partitions. meta.properties, bootstrap.checkpoint and the metadata log are
copied unchanged, so a broker boots on the new directory.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from kwire.errors import Malformed, OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.log.reading.log_directory import LogDirectory
from kwire.maintenance.convert.batch_format import Loss, TargetFormat
from kwire.maintenance.convert.partition import ConvertedPartition, ProgressCallback, convert_partition
from kwire.maintenance.new_directory import finish_directory, name_of
from kwire.maintenance.part_journal import PartJournal
from kwire.storage.checkpoints import CLEANER_OFFSETS, META_PROPERTIES, parse_offset_checkpoint
from kwire.storage.file_system import FileSystem
from kwire.storage.free_space import need_space
from kwire.storage.staged_directory import StagedDirectory, check_target, remove_tree
from kwire.target_paths import path_inside

__all__ = ["LossRefused", "convert_directory", "examine"]

COPIED = (META_PROPERTIES, "bootstrap.checkpoint")
MANY_BYTES = 64 << 20  # worth a separate process


class LossRefused(OptionError):
    """A conversion that would lose data, without accept_loss. The message has the losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One partition to convert, possibly in another process. directory: the target, None for a preview."""

    source: str
    options: Mapping[str, Any]
    key: TopicPartition
    target: TargetFormat
    directory: str | None
    now_ms: int


def convertible(source: LogDirectory, keys: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return the keys of partitions that can be converted: all except the metadata log, which controllers own."""
    return [key for key in keys if key[0] != METADATA_TOPIC]


def examine(
    source: LogDirectory,
    target: TargetFormat,
    keys: Sequence[TopicPartition],
    *,
    jobs: int = 1,
    progress: ProgressCallback = lambda size_bytes: None,
) -> list[ConvertedPartition]:
    """Convert partitions in memory and return the results. Raises like convert_partition."""
    partitions: list[ConvertedPartition] = []
    run(
        [job_of(source, key, target) for key in convertible(source, keys)],
        jobs,
        progress,
        FileSystem(),
        partitions.append,
    )
    return sorted(partitions, key=lambda each: (each.topic, each.partition))


def check_loss(converted: Iterable[ConvertedPartition]) -> None:
    """Raise LossRefused if a result has losses."""
    total = Loss()
    for each in converted:
        total.add(each.loss)
    if total:
        raise LossRefused(f"this loses {total.described()}; accept the loss or choose magic 2")


def convert_directory(
    source: LogDirectory,
    directory: str,
    target: TargetFormat,
    keys: Sequence[TopicPartition],
    *,
    whole: bool,
    accept_loss: bool = False,
    now_ms: int,
    jobs: int = 1,
    progress: ProgressCallback = lambda size_bytes: None,
    file_system: FileSystem | None = None,
) -> list[ConvertedPartition]:
    """Write partitions of source to a new log directory.

    whole: copy the metadata log and the files of the directory too. jobs: number of processes. progress: called with
    finished bytes of the source.
    Raises LossRefused before anything is written; OptionError if the target is not empty, or unfinished with other
    settings; otherwise like convert_partition. Finished partitions are kept for the next run.
    """
    files = file_system or FileSystem()
    check_target(directory)
    wanted = convertible(source, keys)
    if not accept_loss and target.magic in (0, 1):
        check_loss(examine(source, target, wanted, jobs=jobs))
    staged = StagedDirectory(files, directory)
    part = staged.part
    if not staged.exists:
        need_space(files, part, target.least_bytes(sum(source[key].size_bytes for key in wanted)))
    journal = PartJournal(files, part, settings_of(source, target))
    done = journal.keep({name_of(key): source[key].fingerprint() for key in wanted})
    if staged.exists:
        for name in files.list(part):
            if name not in done:
                path = f"{part}/{name}"
                remove_tree(files, path) if files.is_directory(path) else files.remove(path)
    todo = [key for key in wanted if name_of(key) not in done]
    need_space(files, part, target.least_bytes(sum(source[key].size_bytes for key in todo)))
    staged.create()
    partitions = [ConvertedPartition.from_json(done[name]) for name in sorted(done)]
    progress(sum(each.source_bytes for each in partitions))

    def finished(each: ConvertedPartition) -> None:
        partitions.append(each)
        key = each.topic, each.partition
        journal.add(name_of(key), source[key].fingerprint(), each.to_json())

    run([job_of(source, key, target, part, now_ms) for key in todo], jobs, progress, files, finished)
    if whole:
        copy_metadata(source, part, files)
    ranges = {(each.topic, each.partition): (each.log_start_offset, each.log_end_offset) for each in partitions}
    finish_directory(staged, ranges, cleaner_offsets(source))
    journal.remove()
    return sorted(partitions, key=lambda each: (each.topic, each.partition))


def job_of(
    source: LogDirectory, key: TopicPartition, target: TargetFormat, part: str | None = None, now_ms: int = 0
) -> Job:
    """Return the job for one partition."""
    return Job(
        source=source.url,
        options=source.storage_options,
        key=key,
        target=target,
        directory=None if part is None else path_inside(part, name_of(key)),
        now_ms=now_ms,
    )


# ---- target


def settings_of(source: LogDirectory, target: TargetFormat) -> dict[str, Any]:
    """Return the settings that must be equal to resume an interrupted run."""
    codec = None if target.codec is None else target.codec.text
    return {"kind": "conversion", "source": source.url, "magic": target.magic, "codec": codec, "level": target.level}


def copy_metadata(source: LogDirectory, part: str, files: FileSystem) -> None:
    """Copy the files of the log directory that a broker needs, and the metadata log."""
    for name in COPIED:
        data = source.read_file(name)
        if data is not None:
            files.write_atomically(f"{part}/{name}", data)
    for key, log in source.items():
        if key[0] != METADATA_TOPIC:
            continue
        directory = path_inside(part, name_of(key))
        files.make_directory(directory)
        for entry in log.store.list(log.directory):
            if entry.is_directory:
                continue
            target = path_inside(directory, entry.name)
            with log.open_file(entry.name) as file, files.open(target, create=True) as copy:
                while chunk := file.pread(copy.end, 1 << 20):
                    copy.append(chunk)
                copy.sync()
        files.sync_directory(directory)


def cleaner_offsets(source: LogDirectory) -> dict[TopicPartition, int]:
    """Return the cleaner checkpoint of the source; {} (all dirty) if missing or invalid."""
    try:
        return parse_offset_checkpoint(source.read_file(CLEANER_OFFSETS) or b"")
    except Malformed:
        return {}


# ---- processes

_counter: Any = None  # finished bytes, shared with the parent process


def _take_counter(counter: Any) -> None:
    global _counter
    _counter = counter


def _work(job: Job) -> ConvertedPartition:
    def progress(size_bytes: int) -> None:
        if _counter is not None:
            with _counter.get_lock():
                _counter.value += size_bytes

    return convert_job(job, progress, FileSystem())


def convert_job(job: Job, progress: ProgressCallback, files: FileSystem) -> ConvertedPartition:
    """Convert the partition of a job."""
    log = LogDirectory(job.source, **job.options)[job.key]
    return convert_partition(
        log, job.target, directory=job.directory, file_system=files, now_ms=job.now_ms, progress=progress
    )


def run(
    jobs: Sequence[Job],
    processes: int,
    progress: ProgressCallback,
    files: FileSystem,
    finished: Callable[[ConvertedPartition], None],
) -> None:
    """Run all jobs, here or in processes. The first error ends the run after the jobs already started."""
    if processes <= 1 or len(jobs) <= 1:
        for job in jobs:
            finished(convert_job(job, progress, files))
        return
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    with ProcessPoolExecutor(
        min(processes, len(jobs)), mp_context=context, initializer=_take_counter, initargs=(counter,)
    ) as pool:
        waiting: set[Future[ConvertedPartition]] = {pool.submit(_work, job) for job in jobs}
        reported = 0
        try:
            while waiting:
                done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                progress(counter.value - reported)
                reported = counter.value
                for each in done:
                    finished(each.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def choose_processes(size_bytes: int, partitions: int) -> int:
    """Return the number of processes worth starting."""
    return max(min(os.cpu_count() or 1, partitions, 1 + size_bytes // MANY_BYTES), 1)
