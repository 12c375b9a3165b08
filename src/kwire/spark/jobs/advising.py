"""advise: sizes of integer fields in KIP-625's encodings, counted in captured traffic and internal topics.

One task per capture file, or per partition of an internal topic. The counts of a task are small whatever it reads, so
the driver can merge the tallies of many clusters. docs/kip-625.md describes the encodings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import OptionError
from kwire.identifiers import TopicPartition
from kwire.log.reading.paths import StorageOptions, expand_files, open_logs
from kwire.spark.jobs.choice import as_list
from kwire.spark.jobs.journal import Journal, Row
from kwire.spark.jobs.result import create_frame
from kwire.spark.jobs.runner import Item, ProgressCallback, raise_failures, run_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kwire.internal_topics.typed_record import TypedRecord
    from kwire.log import PartitionLog
    from kwire.plan.encoding_advice import EncodingTally

__all__ = ["Advice", "advise"]

COLUMNS = {
    "message": "string",
    "version": "int",
    "field": "string",
    "type": "string",
    "encoding": "string",
    "messages": "bigint",
    "values": "bigint",
    "smallest": "bigint",
    "largest": "bigint",
    "negative": "bigint",
    "fixed_bytes": "bigint",
    "packed_bytes": "bigint",
    "upacked_bytes": "bigint",
    "best": "string",
    "saved_bytes": "bigint",
}
MESSAGE_COLUMNS = {
    "message": "string",
    "version": "int",
    "messages": "bigint",
    "size_bytes": "bigint",
    "unreadable": "bigint",
    "saved_bytes": "bigint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The result of advise.

    rows: a dict per message, version and field, in order of bytes saved, as kwire.plan.encoding_advice.advice_row
    returns them; `kwire schema advise` shows the same rows. messages: counts and bytes by message and version.
    """

    rows: tuple[Row, ...] = field(repr=False)
    messages: tuple[Row, ...] = field(repr=False)
    resumed: int
    seconds: float
    session: SparkSession = field(repr=False)

    @property
    def fields(self) -> DataFrame:
        """The rows as a DataFrame: values, bytes in each encoding of the field's width, and the savings of the best."""
        return create_frame(self.session, [_flat(row) for row in self.rows], COLUMNS)

    @property
    def by_message(self) -> DataFrame:
        """The messages as a DataFrame. saved_bytes: with the best encodings."""
        return create_frame(self.session, self.messages, MESSAGE_COLUMNS)

    @property
    def size_bytes(self) -> int:
        """Bytes of all bodies counted."""
        return sum(row["size_bytes"] for row in self.messages)

    @property
    def saved_bytes(self) -> int:
        """Bytes that the best encodings save."""
        return sum(row["saved_bytes"] for row in self.messages)

    @property
    def count(self) -> int:
        """Number of messages counted."""
        return sum(row["messages"] for row in self.messages)


def _flat(row: Row) -> Row:
    """Return a row of the DataFrame `fields`."""
    costs = {f"{form}_bytes": row["encodings"][f"{form}{row['bits']}"] for form in ("fixed", "packed", "upacked")}
    return row | costs | {"field": row["path"], "messages": row["bodies"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Counts one capture file (subject: its path or URL), or one partition of an internal topic (subject: its log)."""

    ports: tuple[int, ...]
    storage: StorageOptions = field(repr=False)

    def __call__(self, item: Item, attempt: str) -> Row:
        from kwire.capture import read_capture
        from kwire.capture.bodies import bodies_of
        from kwire.log.topics import RECORD_READERS
        from kwire.plan.encoding_advice import EncodingTally

        tally, source = EncodingTally(), item.subject
        if isinstance(source, str):
            for exchange in read_capture(source, ports=self.ports, storage_options=self.storage):
                for cls, version, body in bodies_of(exchange):
                    tally.add(cls.SPEC, version, body)
        else:
            for record in RECORD_READERS[source.topic](source):
                _count_record(tally, record)
        return {"tally": tally.to_json()}


def _count_record(tally: EncodingTally, record: TypedRecord) -> None:
    """Count the key and value of a readable record."""
    from kwire.internal_topics.names import METADATA_TOPIC
    from kwire.wire.varint import read_unsigned_varint

    if record.is_control or not record.is_usable:
        return
    if record.key is not None and record.raw_key is not None:
        tally.add(record.key.SPEC, 0, record.raw_key[2:])  # after the record type
    if record.value is None or record.raw_value is None or record.version is None:
        return
    start = 2  # after the version
    if record.topic == METADATA_TOPIC:
        start = 0
        for _ in ("frame version", "api key", "version"):
            _, start = read_unsigned_varint(record.raw_value, start)
    tally.add(record.value.SPEC, record.version, record.raw_value[start:])


def advise(
    spark: SparkSession,
    *,
    captures: str | Sequence[str] = (),
    logs: str | Sequence[str] = (),
    ports: Sequence[int] = (),
    journal: str | None = None,
    progress: ProgressCallback | None = None,
    storage: StorageOptions | None = None,
) -> Advice:
    """Count the integer fields of captured requests and responses, and of the records of internal topics.

    captures: pcap and pcapng files, directories, globs, URLs; ports: of brokers, see kwire.capture. logs: log
    directories, whose internal topics are read. journal: as for verify. Raises OptionError, LogError, JobFailed.
    """
    from kwire.log.topics import RECORD_READERS
    from kwire.storage.open_store import open_store
    from kwire.storage.store import parent_of

    options = dict(storage or {})
    files = [file for each in as_list(captures) for file in expand_files(each, options)]
    all_logs: Mapping[TopicPartition, PartitionLog] = open_logs(as_list(logs), options)
    internal = [log for (topic, _), log in all_logs.items() if topic in RECORD_READERS]
    if not files and not internal:
        raise OptionError("nothing to count; specify captures, or logs with internal topics")
    started = None if journal is None else Journal(journal)
    if started is not None:
        started.begin({"job": "advise", "ports": list(ports)}, {})
    items = []
    for file in files:
        parent = parent_of(open_store(file, options).url)
        size = 0
        if parent is not None:
            with open_store(parent[0], options).open(parent[1]) as opened:
                size = opened.size()
        items.append(Item(name=file, size_bytes=size, subject=file, fingerprint=size))
    of_logs = [
        Item(name=log.url, size_bytes=log.size_bytes, subject=log, fingerprint=log.fingerprint()) for log in internal
    ]
    count = Count(ports=tuple(ports), storage=options)
    run = run_items(spark, "advise", [*items, *of_logs], count, journal=started, progress=progress)
    advice = _merge(spark, run.rows, resumed=run.resumed, seconds=run.seconds)
    raise_failures("advise", run, advice, "other items are in the error's result")
    return advice


def _merge(spark: SparkSession, rows: Sequence[Row], *, resumed: int, seconds: float) -> Advice:
    """Merge the counts of tasks."""
    from kwire.messages import registry
    from kwire.plan.encoding_advice import EncodingTally

    tally = EncodingTally()
    for row in rows:
        names = {each["message"] for each in row["tally"]}
        tally.merge_json(row["tally"], {name: registry.get(name).SPEC for name in names})
    fields = sorted(tally.rows(), key=lambda row: (-row["saved_bytes"], row["message"], row["version"]))
    saved: dict[tuple[str, int], int] = {}
    for row in fields:
        key = row["message"], row["version"]
        saved[key] = saved.get(key, 0) + row["saved_bytes"]
    messages = tuple(
        {
            "message": name,
            "version": version,
            "messages": each.bodies,
            "size_bytes": each.size_bytes,
            "unreadable": each.unreadable,
            "saved_bytes": saved.get((name, version), 0),
        }
        for (name, version), each in sorted(tally.messages.items())
    )
    return Advice(rows=tuple(fields), messages=messages, resumed=resumed, seconds=seconds, session=spark)
