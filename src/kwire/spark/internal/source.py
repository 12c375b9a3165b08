"""The data source `kafka-internal`: what Kafka's internal topics say, now or record by record, as a DataFrame.

One task reads one partition of an internal topic: a group, a transactional id, a share partition lives in one of them.
Reader and options pickle; the planner imports neither numba nor pyarrow. Options and columns: docs/internal.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kwire.errors import LogError, OptionError, did_you_mean
from kwire.identifiers import TopicPartition
from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC
from kwire.spark.internal.columns import COLUMNS, HISTORY_COLUMNS, TOPICS
from kwire.spark.options.given import effective_options, schema_ddl, user_options
from kwire.spark.options.values import (
    check_columns,
    parse_choice,
    parse_columns,
    parse_flag,
    parse_paths,
    parse_storage,
    refuse_unknown,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["InternalOptions", "KafkaInternalSource", "parse_options"]

PAGE = "docs/internal.md"
NAMES = ("path", "paths", "kind", "topic", "mode", "atOffset", "atTime", "columns", "redact", "failOnDataLoss")

Mode = Literal["current", "history"]

# What is meant by a topic without a kind. The metadata log has too many kinds for a default.
KIND_OF_TOPIC = {
    GROUPS_TOPIC: "groups",
    TRANSACTIONS_TOPIC: "transactions",
    SHARE_STATE_TOPIC: "share",
    METADATA_TOPIC: None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalOptions:
    """Everything a query asked for. kind: None for the history of a topic that has no default kind."""

    paths: tuple[str, ...]
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    topic: str
    kind: str | None
    mode: Mode
    at_offset: int | None = None
    at_time: int | None = None
    columns: tuple[str, ...] | None = None
    redact: bool = True
    fail_on_data_loss: bool = True

    @property
    def types(self) -> dict[str, str]:
        """All columns that the query could have, and their types."""
        if self.mode == "history":
            return HISTORY_COLUMNS
        assert self.kind is not None
        return COLUMNS[self.kind]


def parse_options(options: Mapping[str, str]) -> InternalOptions:
    """Check the options of one query; raises OptionError naming the option and what would be right."""
    given = user_options(options)
    refuse_unknown(given, NAMES, "kafka-internal", PAGE)
    mode: Mode = parse_choice(given, "mode", "current", ("current", "history"))
    topic, kind = _topic_and_kind(given, mode)
    at_offset, at_time = (_moment(given, name) for name in ("atOffset", "atTime"))
    if at_offset is not None and at_time is not None:
        raise OptionError("Only one of the following options can be specified: atOffset, atTime")
    return InternalOptions(
        paths=parse_paths(given),
        storage=parse_storage(given),
        topic=topic,
        kind=kind,
        mode=mode,
        at_offset=at_offset,
        at_time=at_time,
        columns=parse_columns(given),
        redact=parse_flag(given, "redact", True),
        fail_on_data_loss=parse_flag(given, "failOnDataLoss", True),
    )


def _topic_and_kind(given: Mapping[str, str], mode: Mode) -> tuple[str, str | None]:
    kind, topic = given.get("kind"), given.get("topic")
    if kind is not None:
        kind = kind.strip().lower()
        if kind not in COLUMNS:
            raise OptionError(
                f"Option 'kind': expected one of {', '.join(COLUMNS)}, got '{kind}'{did_you_mean(kind, COLUMNS)}"
            )
        if topic is not None and topic != TOPICS[kind]:
            raise OptionError(f"Option 'kind': {kind} are in {TOPICS[kind]}, and topic is '{topic}'; leave topic out")
        return TOPICS[kind], kind
    if topic is None:
        raise OptionError(f"Option 'kind' must be specified: one of {', '.join(COLUMNS)}; or 'topic'")
    if topic not in KIND_OF_TOPIC:
        raise OptionError(
            f"Option 'topic': expected one of {', '.join(KIND_OF_TOPIC)}, got '{topic}'"
            f"{did_you_mean(topic, KIND_OF_TOPIC)}"
        )
    kind = KIND_OF_TOPIC[topic]
    if kind is None and mode == "current":
        there = ", ".join(name for name, of in TOPICS.items() if of == topic)
        raise OptionError(f"Option 'kind' must be specified for {topic}: one of {there}")
    return topic, kind


def _moment(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isascii() or not text.strip().isdigit():
        what = "an offset" if name == "atOffset" else "milliseconds since 1970"
        raise OptionError(f"Option '{name}': expected {what}, got '{text}'")
    return int(text)


def column_types(options: InternalOptions) -> dict[str, str]:
    """The columns of a query and their types. Raises OptionError for an unknown or repeated one."""
    types = options.types
    if options.columns is None:
        return types
    check_columns(options.columns, types)
    return {name: types[name] for name in options.columns}


class InternalPartition(InputPartition):
    """What one Spark task reads: one partition of an internal topic."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place


class InternalReader(DataSourceReader):
    """Plans and reads one query."""

    def __init__(self, options: InternalOptions) -> None:
        self.options = options

    def partitions(self) -> list[InternalPartition]:
        """One task a partition of the internal topic. Raises LogError where there is none, OptionError."""
        from kwire.spark.paths import open_logs

        logs = open_logs(self.options.paths, self.options.storage)
        found = [InternalPartition(place) for place in logs if place[0] == self.options.topic]
        if not found:
            topics = ", ".join(sorted({topic for topic, _ in logs}))[:500]
            raise LogError(f"no partition of {self.options.topic} in {', '.join(self.options.paths)}; topics: {topics}")
        if self.options.at_offset is not None and len(found) > 1:
            raise OptionError(
                f"Option 'atOffset': offsets count in one partition, and {self.options.topic} has {len(found)} here; "
                "give one partition's directory as path, or use atTime"
            )
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task as Arrow batches; called in a worker.

        Raises LogError for files that are gone, and in mode current, unless failOnDataLoss is false, for a record that
        cannot be read: the state would lack what it says.
        """
        if not isinstance(partition, InternalPartition):
            return  # Spark's stand-in where there is nothing to read
        from kwire.spark.internal.reading import read_task
        from kwire.spark.worker import prepare_worker

        prepare_worker()
        yield from read_task(partition.place, self.options, column_types(self.options))


class KafkaInternalSource(DataSource):
    """`spark.read.format("kafka-internal")`; options and columns: docs/internal.md."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kafka-internal"

    def schema(self) -> str:
        """The columns that the options choose, as DDL. Raises OptionError."""
        return schema_ddl(column_types(parse_options(self.options)), self.options)

    def reader(self, schema: StructType) -> InternalReader:
        """A reader. A schema may choose columns; it does not convert. Raises OptionError."""
        options = parse_options(effective_options(self.options, schema))
        asked = {each.name: each.dataType.simpleString() for each in schema.fields}
        for name, kind in asked.items():
            if options.types.get(name) != kind:
                raise OptionError(
                    f"The schema: column {name} of type {kind}{did_you_mean(name, options.types)}; "
                    f"there are {', '.join(f'{n} {k}' for n, k in options.types.items())}"
                )
        return InternalReader(replace(options, columns=tuple(asked)))
