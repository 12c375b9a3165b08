"""pull: an exact copy of topics of a running cluster, one task per partition.

The driver chooses the partitions and their offsets, tasks write segments and what they have copied, and the driver
writes the manifest: see kwire.maintenance.pull.parts and docs/pull.md. Nothing but the target says what is complete, so
there is no journal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import KwireError, OptionError
from kwire.log.reading.paths import StorageOptions
from kwire.spark.jobs.journal import Row
from kwire.spark.jobs.result import JobResult
from kwire.spark.jobs.runner import Item, JobRun, ProgressCallback, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kwire.client.address import ClusterAddress
    from kwire.maintenance.pull import Event, Manifest
    from kwire.maintenance.pull.parts import Part
    from kwire.maintenance.pull.run import Pull
    from kwire.maintenance.pull.store_target import StoreTarget

__all__ = ["Pulled", "pull"]

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "log_start_offset": "bigint",
    "log_end_offset": "bigint",
    "high_watermark": "bigint",
    "segments": "int",
    "size_bytes": "bigint",
    "copied_bytes": "bigint",
    "problem": "string",
}
RECORD_BYTES = 256
"""Assumed size of a record, to divide the work: only brokers know sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled(JobResult):
    """The result of pull. manifest: of the whole copy. events: of this run. resumed: partitions without new records."""

    manifest: Manifest = field(repr=False)
    events: tuple[Event, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every partition was copied up to the high watermark at the start."""
        return self.manifest.complete


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPartition:
    """Copies one partition; subject: a Part."""

    address: ClusterAddress
    target: str
    settings: Mapping[str, object] = field(repr=False)
    storage: StorageOptions = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        import msgspec

        from kwire.maintenance.pull.parts import copy_part
        from kwire.storage.writable_store import open_writable_store

        part: Part = item.subject
        with self.address.connect(self.settings) as client:
            copied = copy_part(client, open_writable_store(self.target, self.storage), part)
        entry: Row = msgspec.to_builtins(copied.entry)
        return {"entry": entry, "events": msgspec.to_builtins(copied.events), "copied_bytes": copied.copied_bytes}


def pull(
    spark: SparkSession,
    source: str,
    target: str,
    *,
    topics: Sequence[str] = (),
    groups: bool = True,
    settings: Mapping[str, object] | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> Pulled:
    """Copy topics of a cluster into a log directory, batch for batch, or continue an earlier copy.

    source: kafka://host:port[,host:port][/topic]. target: the URL of an object store, or a directory that driver and
    executors share; new, or a copy of the same cluster. topics: names and patterns (*, ?). groups: copy the internal
    topics of groups and transactions as well. settings: of the client, by Kafka's names.
    Raises OptionError, LogError, BrokerError, ConnectionFailed; JobFailed when all other partitions are copied.
    """
    from kwire.client.address import ClusterAddress
    from kwire.maintenance.pull.parts import plan_parts
    from kwire.maintenance.pull.run import PullOptions, start
    from kwire.maintenance.pull.store_target import StoreTarget
    from kwire.storage.directory_lock import DirectoryLock
    from kwire.storage.writable_store import is_local, open_writable_store

    if isinstance(topics, str):
        raise OptionError(f"topics: expected a list of names and patterns, got the string {topics!r}")
    address, given = ClusterAddress.parse(source), dict(settings or {})
    store = open_writable_store(target, storage or {})
    with ExitStack() as stack:
        client = stack.enter_context(address.connect(given))
        name, partition = address.resolve(client)
        if partition is not None or (name is not None and topics):
            raise OptionError(f"{source}: expected the URL of a cluster, or of a topic without topics=")
        options = PullOptions(
            topics=[name] if name is not None else topics, groups=groups and name is None, cluster=name is None
        )
        place = StoreTarget(store)
        run, survey = start(client, place, options)
        stack.callback(run.close)
        is_clean = False
        try:
            if is_local(target):
                stack.callback(DirectoryLock(store.url).release)
            run.describe()
            parts = plan_parts(run, place, survey)
            work = PullPartition(address=address.cluster, target=store.url, settings=given, storage=dict(storage or {}))
            with place.held():
                done = run_items(spark, "pull", [_item(part) for part in parts], work, progress=progress)
            _adopt(run, place, done)
            is_clean = True
        finally:
            place.close(run.manifest, clean=is_clean)
    result = Pulled(
        rows=_rows(run, done),
        resumed=len(run.state.done) - len(done.rows),
        seconds=done.seconds,
        columns=COLUMNS,
        session=spark,
        manifest=run.manifest(),
        events=tuple(run.state.events),
    )
    raise_failures("pull", done, result, f"what was copied is in {store.url}; run the job again to continue")
    for error in run.state.failures.values():  # of partitions that no task got, because their offsets are unknown
        raise error
    return result


def _item(part: Part) -> Item:
    from kwire.maintenance.new_directory import name_of

    start = part.bounds.log_start_offset if part.known is None else part.known.log_end_offset
    records = max(part.bounds.high_watermark - start, 0)
    return Item(name=name_of(part.key), size_bytes=records * RECORD_BYTES, subject=part)


def _adopt(run: Pull, place: StoreTarget, done: JobRun) -> None:
    """Note what the tasks have copied."""
    import msgspec

    from kwire.maintenance.pull import Event
    from kwire.maintenance.pull.manifest import PartitionEntry

    for each in done.outcomes:
        part: Part = each.item.subject
        if each.row is None:
            run.state.failures[part.key] = KwireError(each.problem or "")
            continue
        entry = msgspec.convert(each.row["entry"], PartitionEntry)
        run.state.done[part.key] = entry
        run.state.events += msgspec.convert(each.row["events"], list[Event])
        run.state.copied_bytes += each.row["copied_bytes"]
        place.adopt(part.key, entry)


def _rows(run: Pull, done: JobRun) -> tuple[Row, ...]:
    """Return a row per partition."""
    copied = {each.item.subject.key: each.row["copied_bytes"] for each in done.outcomes if each.row is not None}
    rows: list[Row] = []
    for key, entry in run.state.entries().items():
        rows.append(
            {
                "topic": key[0],
                "partition": key[1],
                "log_start_offset": entry.log_start_offset,
                "log_end_offset": entry.log_end_offset,
                "high_watermark": entry.high_watermark,
                "segments": len(entry.segments),
                "size_bytes": sum(segment.size_bytes for segment in entry.segments),
                "copied_bytes": copied.get(key, 0),
                "problem": None,
            }
        )
    for (topic, number), error in run.state.failures.items():
        rows.append(dict.fromkeys(COLUMNS) | {"topic": topic, "partition": number, "problem": str(error)})
    return tuple(sorted(rows, key=lambda row: (row["topic"], row["partition"])))
