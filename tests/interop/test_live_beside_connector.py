"""`kafka-live` and Spark's Kafka connector in one session: what both read, write and reject."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("confluent_kafka")

from pyspark.sql.functions import col, spark_partition_id
from tests.interop import connector_session, connector_topics
from tests.interop.connector_cases import (
    EARLIEST,
    FAILS,
    IMPATIENT,
    NOTHING,
    READS,
    REFUSED,
    STREAM_FAILS,
    STREAMS,
    Options,
)
from tests.interop.connector_topics import MANY
from tests.waiting import HANG_S, until
from tools import kafka

from kwire.broker import Broker
from kwire.client import LATEST_TIMESTAMP, Client
from kwire.records import read_batches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.jvm, pytest.mark.spark, pytest.mark.slow, pytest.mark.filterwarnings("default")]

FORMATS = ("kafka", "kafka-live")
NOBODY = "127.0.0.1:9"  # the discard port: nothing listens


def cases(names: Iterable[str], *gate: str) -> list[Any]:
    """Return parameters of a test, of which some run with every change."""
    return [pytest.param(name, marks=pytest.mark.gate) if name in gate else name for name in names]


# ---- the session, the brokers


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with connector_session.session() as found:
        yield found


@pytest.fixture(scope="module", params=["embedded", "3.9.1"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with all of connector_topics."""
    with ExitStack() as stack:
        if request.param == "embedded":
            broker: Any = Broker(log_cleaner_backoff_ms=200, log_retention_ms=-1)
        else:
            settings = {"log.cleaner.backoff.ms": 200, "log.cleaner.dedupe.buffer.size": 16 << 20}
            folder = tmp_path_factory.mktemp("kafka")
            broker = kafka.KafkaBroker(folder, version=request.param, heap="512m", **settings)
        found: str = stack.enter_context(broker).bootstrap_servers
        stack.enter_context(connector_topics.topics(found))
        yield found


# ---- batch queries


class Read(NamedTuple):
    """The result of a query. tasks: the offsets that each Spark task read."""

    schema: Any
    rows: list[tuple[Any, ...]]
    tasks: set[frozenset[tuple[str, int, int]]]


def load(spark: SparkSession, source: str, servers: str, options: Options) -> DataFrame:
    return spark.read.format(source).options(**{"kafka.bootstrap.servers": servers, **options}).load()


def ordered(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows), key=lambda row: row[2:5])


def read(spark: SparkSession, source: str, servers: str, options: Options) -> Read:
    if "kafka.group.id" in options:  # Spark keeps consumers by group, and refuses one that has another broker's
        options = {**options, "kafka.group.id": f"of {servers}"}
    frame = load(spark, source, servers, options)
    tasks: dict[int, set[tuple[str, int, int]]] = {}
    rows = ordered(frame.withColumn("task", spark_partition_id()).collect())
    for row in rows:
        tasks.setdefault(row[-1], set()).add(row[2:5])
    return Read(frame.schema, [row[:-1] for row in rows], {frozenset(each) for each in tasks.values()})


@pytest.mark.parametrize("name", cases(READS, "headers", "both offsets", "LogAppendTime"))
def test_both_sources_read_the_same_rows_in_the_same_tasks(spark: SparkSession, servers: str, name: str) -> None:
    spark_read, live_read = (read(spark, source, servers, READS[name]) for source in FORMATS)
    assert live_read.schema == spark_read.schema
    assert live_read.rows == spark_read.rows
    assert bool(live_read.rows) == (name not in NOTHING)
    if not ignores_max_records(READS[name]):
        assert live_read.tasks == spark_read.tasks


def ignores_max_records(options: Options) -> bool:
    """Return whether Spark's source ignores maxRecordsPerPartition, as in batch queries without minPartitions."""
    return "maxRecordsPerPartition" in options and int(options.get("minPartitions", "0")) <= len(MANY)


def refusal(ask: Callable[[], object]) -> str:
    with pytest.raises(Exception) as failed:  # noqa: PT011 (whatever Spark makes of it)
        ask()
    return str(failed.value).lower()


@pytest.mark.parametrize("name", REFUSED)
def test_both_sources_reject_the_options(spark: SparkSession, name: str) -> None:
    options, words = REFUSED[name]
    for source in FORMATS:
        assert words.lower() in refusal(lambda source=source: read(spark, source, NOBODY, options))


@pytest.mark.parametrize("name", FAILS)
def test_both_sources_fail(spark: SparkSession, servers: str, name: str) -> None:
    options, words = FAILS[name]
    for source in FORMATS:
        assert words.lower() in refusal(lambda source=source: read(spark, source, servers, {**IMPATIENT, **options}))


def test_both_sources_require_bootstrap_servers(spark: SparkSession) -> None:
    for source in FORMATS:
        message = refusal(lambda source=source: spark.read.format(source).option("subscribe", "many").load().count())
        assert "option 'kafka.bootstrap.servers' must be specified for configuring kafka consumer" in message


# ---- streams


class Streamed(NamedTuple):
    """The progress of a query. batches: number, offsets before and after, and rows of each non-empty micro-batch."""

    batches: list[tuple[int, Any, Any, int]]
    rows: dict[int, list[tuple[Any, ...]]]


class Running:
    """A query that collects the rows of each micro-batch. folder: its checkpoint, one per source."""

    def __init__(
        self,
        spark: SparkSession,
        source: str,
        servers: str,
        folder: Path,
        options: Options,
        *,
        sink_fails: bool = False,
        **trigger: Any,
    ) -> None:
        self.rows: dict[int, list[tuple[Any, ...]]] = {}
        self.sink_fails = sink_fails
        self.query = (
            spark.readStream.format(source)
            .options(**{"kafka.bootstrap.servers": servers, **options})
            .load()
            .writeStream.foreachBatch(self.keep)
            .option("checkpointLocation", str(folder / source))
            .trigger(**trigger or {"availableNow": True})
            .start()
        )

    def keep(self, frame: DataFrame, number: int) -> None:
        if self.sink_fails:
            raise RuntimeError("the sink fails")
        self.rows[number] = ordered(frame.collect())

    def reported(self) -> int:
        """Return the rows of micro-batches with a progress report, which Spark writes after them."""
        return sum(each[3] for each in self.done().batches)

    def done(self) -> Streamed:
        """Return its progress so far."""
        found = []
        for each in self.query.recentProgress:
            start, end = (offsets(each["sources"][0][edge]) for edge in ("startOffset", "endOffset"))
            if start != end:
                found.append((each["batchId"], start, end, each["numInputRows"]))
        return Streamed(found, {number: rows for number, rows in self.rows.items() if rows})


def offsets(found: Any) -> Any:
    """Return offsets by topic and partition, without the topic ids that kafka-live adds."""
    parsed = json.loads(found) if isinstance(found, str) else found
    return parsed and {topic: partitions for topic, partitions in parsed.items() if partitions}  # null: no start yet


def stream(spark: SparkSession, source: str, servers: str, folder: Path, options: Options) -> Streamed:
    """Run a query until it has read all available records."""
    running = Running(spark, source, servers, folder, options)
    assert running.query.awaitTermination(int(HANG_S))
    return running.done()


@pytest.mark.parametrize("name", STREAMS)
def test_both_sources_plan_the_same_micro_batches(spark: SparkSession, servers: str, tmp_path: Path, name: str) -> None:
    of_spark, live = (stream(spark, source, servers, tmp_path, STREAMS[name]) for source in FORMATS)
    assert live == of_spark
    assert bool(live.rows) == (name not in NOTHING)


@pytest.mark.parametrize("name", STREAM_FAILS)
def test_both_streams_fail_alike(spark: SparkSession, servers: str, tmp_path: Path, name: str) -> None:
    options, words = STREAM_FAILS[name]
    for source in FORMATS:
        wanted = {**IMPATIENT, **options}
        assert words.lower() in refusal(
            lambda source=source, wanted=wanted: stream(spark, source, servers, tmp_path, wanted)
        )


def test_streams_resume_from_their_checkpoints(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = connector_topics.create(servers, f"grows-{tmp_path.name}", 2)
    connector_topics.produce(servers, topic, 0, [f"a{n}" for n in range(100)])
    options = {"subscribePattern": f"^{topic}", **EARLIEST, "maxOffsetsPerTrigger": "60"}

    def both(**more: str) -> Streamed:
        of_spark, live = (stream(spark, source, servers, tmp_path, {**options, **more}) for source in FORMATS)
        assert live == of_spark
        return live

    assert [each[3] for each in both().batches] == [60, 40]
    connector_topics.add_partitions(servers, topic, 3)
    connector_topics.produce(servers, topic, 1, ["b"])
    connector_topics.produce(servers, topic, 2, [f"c{n}" for n in range(5)])
    connector_topics.create(servers, f"{topic}-too", 1)
    connector_topics.produce(servers, f"{topic}-too", 0, ["d"])
    assert [each[3] for each in both().batches] == [7]  # new partitions and topics from their first record on
    assert both() == Streamed([], {})
    connector_topics.produce(servers, topic, 0, [f"e{n}" for n in range(10)])
    connector_topics.delete_before(servers, topic, 0, 105)
    for source in FORMATS:  # both fail before anything of the batch is handed on
        refusal(lambda source=source: stream(spark, source, servers, tmp_path, options))
    lossy = both(failOnDataLoss="false")
    assert [row[4] for row in lossy.rows[max(lossy.rows)]] == [105, 106, 107, 108, 109]
    connector_topics.delete(servers, f"{topic}-too")
    for source in FORMATS:
        assert "too" in refusal(lambda source=source: stream(spark, source, servers, tmp_path, options))


@pytest.mark.parametrize(("first", "again"), [("earliest", "latest"), ("latest", "earliest"), ("latest", "latest")])
def test_a_failed_first_micro_batch_is_repeated_from_its_start(
    spark: SparkSession, servers: str, tmp_path: Path, first: str, again: str
) -> None:
    topic = connector_topics.create(servers, f"first-{tmp_path.name}", 2)
    connector_topics.produce(servers, topic, 0, [f"a{n}" for n in range(10)])
    for source in FORMATS:
        options = {"subscribe": topic, "startingOffsets": first}
        failed = Running(spark, source, servers, tmp_path, options, sink_fails=True)
        assert "the sink fails" in refusal(lambda query=failed.query: query.awaitTermination(int(HANG_S)))
    connector_topics.produce(servers, topic, 0, [f"b{n}" for n in range(5)])
    options = {"subscribe": topic, "startingOffsets": again}
    of_spark, live = (stream(spark, source, servers, tmp_path, options) for source in FORMATS)
    assert live == of_spark
    offsets_read = [row[4] for rows in live.rows.values() for row in rows]
    assert offsets_read == list(range(0 if first == "earliest" else 10, 15))


def test_records_deleted_before_a_first_micro_batch_is_repeated_fail_both(
    spark: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic = connector_topics.create(servers, f"lost-{tmp_path.name}")
    connector_topics.produce(servers, topic, 0, ["a"] * 10)
    options = {"subscribe": topic, **EARLIEST}
    for source in FORMATS:
        failed = Running(spark, source, servers, tmp_path, options, sink_fails=True)
        refusal(lambda query=failed.query: query.awaitTermination(int(HANG_S)))
    connector_topics.delete_before(servers, topic, 0, 5)
    for source in FORMATS:
        assert "failondataloss" in refusal(
            lambda source=source: stream(spark, source, servers, tmp_path, {**options, **IMPATIENT})
        )


@pytest.mark.gate
def test_running_streams_read_new_records(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = connector_topics.create(servers, f"comes-{tmp_path.name}", 2)
    connector_topics.produce(servers, topic, 0, ["before"] * 10)
    running = [
        Running(spark, source, servers, tmp_path, {"subscribe": topic}, processingTime="200 milliseconds")
        for source in FORMATS
    ]
    try:
        for each in running:
            each.query.processAllAvailable()
        connector_topics.produce(servers, topic, 0, ["a", "b"])
        connector_topics.add_partitions(servers, topic, 3)
        connector_topics.produce(servers, topic, 2, ["c"])
        connector_topics.produce(servers, topic, 1, ["d", "e"])
        until(lambda: all(sum(map(len, each.rows.values())) >= 5 for each in running))
        until(lambda: all(each.reported() >= 5 for each in running))
        of_spark, live = (each.done() for each in running)
    finally:
        for each in running:
            each.query.stop()
    rows = [ordered(row for batch in each.rows.values() for row in batch) for each in (of_spark, live)]
    assert rows[0] == rows[1]
    assert [bytes(row[1]) for row in rows[1]] == [b"a", b"b", b"d", b"e", b"c"]
    assert live.batches[-1][2] == of_spark.batches[-1][2] == {topic: {"0": 12, "1": 2, "2": 1}}


def test_later_micro_batches_wait_for_min_offsets(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = connector_topics.create(servers, f"waits-{tmp_path.name}")
    connector_topics.produce(servers, topic, 0, ["first"] * 3)
    options = {"subscribe": topic, **EARLIEST, "minOffsetsPerTrigger": "10", "maxTriggerDelay": "1h"}
    running = [
        Running(spark, source, servers, tmp_path, options, processingTime="100 milliseconds") for source in FORMATS
    ]
    try:
        until(lambda: all(len(each.rows) == 1 for each in running))
        connector_topics.produce(servers, topic, 0, ["too few"] * 9)
        time.sleep(2)  # that nothing happens can only be waited for
        assert [len(each.rows) for each in running] == [1, 1]
        connector_topics.produce(servers, topic, 0, ["enough"])
        until(lambda: all(len(each.rows) == 2 for each in running))
        until(lambda: all(each.reported() == 13 for each in running))
        of_spark, live = (each.done() for each in running)
    finally:
        for each in running:
            each.query.stop()
    assert live == of_spark
    assert [each[3] for each in live.batches] == [3, 10]


# ---- what differs on purpose: the table at the end of docs/live.md


def rows_of(spark: SparkSession, servers: str, options: Options) -> list[list[Any]]:
    return [ordered(load(spark, source, servers, options).collect()) for source in FORMATS]


def task_counts(spark: SparkSession, servers: str, options: Options) -> list[int]:
    return [load(spark, source, servers, options).rdd.getNumPartitions() for source in FORMATS]


def test_partitions_without_records_have_no_task(spark: SparkSession, servers: str) -> None:
    assert task_counts(spark, servers, {"subscribe": "many"}) == [4, 3]
    of_spark, live = (read(spark, source, servers, {"subscribe": "many", "minPartitions": "4"}) for source in FORMATS)
    assert live.rows == of_spark.rows
    assert [sorted(map(len, each.tasks)) for each in (of_spark, live)] == [[7, 100, 1000], [7, 100, 500, 500]]


def test_max_records_per_partition_applies_to_batch_queries(spark: SparkSession, servers: str) -> None:
    assert task_counts(spark, servers, {"subscribe": "many", "maxRecordsPerPartition": "300"}) == [4, 6]


def test_internal_topics_are_read_if_named(spark: SparkSession, servers: str) -> None:
    of_spark, live = rows_of(spark, servers, {"subscribe": "__transaction_state"})
    assert of_spark == []
    assert {row[2] for row in live} == {"__transaction_state"}
    assert rows_of(spark, servers, {"subscribePattern": "__transaction_state"}) == [[], []]
    asked = load(spark, "kafka-live", servers, {"subscribePattern": "_state$", "includeInternal": "true"})
    assert ordered(asked.collect()) == live


def test_a_missing_partition_is_data_loss(spark: SparkSession, servers: str) -> None:
    options = {"assign": '{"many":[2,9]}'}
    assert load(spark, "kafka", servers, options).count() == 7
    assert "many-9 not found in this cluster" in refusal(lambda: load(spark, "kafka-live", servers, options).count())
    of_spark, live = rows_of(spark, servers, {**options, "failOnDataLoss": "false"})
    assert live == of_spark
    assert len(live) == 7


def test_a_missing_topic_is_data_loss_that_can_be_allowed(spark: SparkSession, servers: str) -> None:
    options = {"subscribe": "shop.eu,nobody", "failOnDataLoss": "false", **IMPATIENT}
    refusal(lambda: load(spark, "kafka", servers, options).count())
    assert load(spark, "kafka-live", servers, options).count() == 1


def test_a_start_offset_after_the_end_is_data_loss_that_can_be_allowed(spark: SparkSession, servers: str) -> None:
    options = {"startingOffsets": '{"deleted":{"0":31,"1":20}}', "failOnDataLoss": "false", "subscribe": "deleted"}
    refusal(lambda: load(spark, "kafka", servers, options).count())
    assert load(spark, "kafka-live", servers, options).count() == 10


def test_negative_timestamps_are_rejected(spark: SparkSession, servers: str) -> None:
    for text, count in (("-1", 0), ("-2", 7)):
        options = {"assign": '{"many":[2]}', "startingTimestamp": text}
        assert load(spark, "kafka", servers, options).count() == count
        assert f"got {text}" in refusal(lambda options=options: load(spark, "kafka-live", servers, options))


def test_unknown_options_are_rejected(spark: SparkSession, servers: str) -> None:
    for name, meant in {"startingOffset": "startingOffsets", "kafka.fetch.min.byte": "fetch.min.bytes"}.items():
        options = {"subscribe": "many", name: "1"}
        assert load(spark, "kafka", servers, options).count() == 1107
        assert f"did you mean '{meant}'?".lower() in refusal(
            lambda options=options: load(spark, "kafka-live", servers, options)
        )


def test_a_schema_selects_columns(spark: SparkSession, servers: str) -> None:
    def load_two(source: str) -> DataFrame:
        options = {"kafka.bootstrap.servers": servers, "subscribe": "many"}
        return spark.read.format(source).schema("offset long, partition int").options(**options).load()

    refusal(lambda: load_two("kafka").count())
    assert load_two("kafka-live").columns == ["offset", "partition"]


def test_available_now_reads_all_available_records(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    limits = {"minOffsetsPerTrigger": "400", "maxOffsetsPerTrigger": "500"}
    options = {"assign": '{"many":[0,1]}', **EARLIEST, **limits}
    of_spark, live = (stream(spark, source, servers, tmp_path, options) for source in FORMATS)
    assert of_spark.batches == live.batches[:-1]
    assert sum(each[3] for each in live.batches) == 1100
    assert 0 < live.batches[-1][3] < 400


# ---- writing

SCHEMA = "key binary, value binary, headers array<struct<key: string, value: binary>>, partition int, other long"
KEYED: list[tuple[Any, ...]] = [
    (b"a", b"1", None, None, 1),
    (b"b", None, [], None, 2),
    (b"", b"", [("h", b"1")], None, 3),
    ("ключ".encode(), "Größe".encode(), [("twice", b"1"), ("twice", None), ("", b"")], None, 4),
    (b"\xff\x00", bytes(range(256)), [("заголовок", b"\xff")], 0, 5),
    (b"a", b"to 2 all the same", None, 2, 6),
    *((b"key %d" % number, b"%d" % number, None, None, 10 + number) for number in range(200)),
]
KEYLESS = [(None, b"%d" % number, None, None, number) for number in range(50)]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TEXT = ["CAST(value AS string) AS key", "CAST(value AS string) AS value"]
# (rows, what is selected of them, options of writing)
WRITES: dict[str, tuple[list[tuple[Any, ...]], list[str], Options]] = {
    "all columns": (KEYED, ["key", "value", "headers", "partition"], {}),
    "by key alone": (KEYED, ["key", "value"], {}),
    "columns in another order, and more": (KEYED, ["other", "headers", "value", "key"], {}),
    "strings": ([row for row in KEYED if row[1] and row[1].isascii()], TEXT, {}),
    "partition of each row": (KEYLESS, ["value", "CAST(other % 3 AS int) AS partition"], {}),
    "no key": (KEYLESS, ["value"], {}),
    "null keys": (KEYLESS, ["key", "value"], {}),
    "topic column": (KEYED, ["key", "value", "'{topic}' AS topic"], {"topic": ""}),
    "option before column": (KEYED, ["key", "value", "'nobody' AS topic"], {}),
    "nothing": ([], ["key", "value"], {}),
    "in any case": (KEYED, ["key", "value"], {"KAFKA.Compression.Type": "gzip", "kafka.ACKS": "1"}),
    **{codec: (KEYED, ["key", "value"], {"kafka.compression.type": codec}) for codec in CODECS},
    "producer's settings": (
        KEYED,
        ["key", "value"],
        {"kafka.batch.size": "200", "kafka.linger.ms": "1", "kafka.enable.idempotence": "false", "kafka.retries": "3"},
    ),
}
# (what is selected, options, words in both messages)
WRITE_FAILS: dict[str, tuple[list[str], Options, str]] = {
    "no value": (["key"], {}, "Required attribute 'value' not found"),
    "no topic": (["value"], {"topic": ""}, "topic option required when no 'topic' attribute is present"),
    "null topic": (["value", "CAST(NULL AS string) AS topic"], {"topic": ""}, "null topic"),
    "value of another type": (["other AS value"], {}, "value attribute unsupported type"),
    "key of another type": (["other AS key", "value"], {}, "key attribute unsupported type"),
    "topic of another type": (["value", "other AS topic"], {"topic": ""}, "topic attribute unsupported type"),
    "partition of another type": (["value", "other AS partition"], {}, "partition attribute unsupported type"),
    "headers of another type": (["value", "key AS headers"], {}, "headers attribute unsupported type"),
    "partition that is not there": (["value", "7 AS partition"], {"kafka.max.block.ms": "2000"}, "7"),
    "negative partition": (["value", "-1 AS partition"], {}, "-1"),
    "topic that cannot be": (["value"], {"topic": "no such/name", "kafka.max.block.ms": "2000"}, "no such/name"),
    "key.serializer": (["value"], {"kafka.key.serializer": "x"}, "key.serializer' is not supported"),
    "value.serializer": (["value"], {"kafka.value.serializer": "x"}, "value.serializer' is not supported"),
    "codec that is none": (["value"], {"kafka.compression.type": "rar"}, "compression.type"),
    "acks that are none": (["value"], {"kafka.acks": "5"}, "acks"),
    "header without a name": (
        ["value", "array(named_struct('key', CAST(NULL AS string), 'value', value)) AS headers"],
        {},
        "",
    ),
}
Landed = list[tuple[int, bytes | None, bytes | None, Any]]


def frame_of(spark: SparkSession, rows: list[tuple[Any, ...]], chosen: list[str], tasks: int = 1) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA).repartition(tasks).sortWithinPartitions("other").selectExpr(*chosen)


def write(frame: DataFrame, source: str, servers: str, options: Options) -> None:
    given = {key: value for key, value in options.items() if value}
    frame.write.format(source).options(**{"kafka.bootstrap.servers": servers, **given}).mode("append").save()


def topic_contents(servers: str, topic: str) -> Landed:
    """Return partition, key, value and headers of a topic's records, by partition, in order."""
    found = connector_topics.consume(servers, topic)
    rows = [(each.partition(), each.key(), each.value(), each.headers()) for each in found]
    return sorted(rows, key=lambda row: row[0])


def written_by_both(
    spark: SparkSession, servers: str, rows: list[tuple[Any, ...]], chosen: list[str], options: Options, tasks: int = 1
) -> list[str]:
    topics = []
    for source in FORMATS:
        topic = connector_topics.create(servers, f"{source}-{uuid.uuid4().hex}", 3)
        frame = frame_of(spark, rows, [each.format(topic=topic) for each in chosen], tasks)
        write(frame, source, servers, {"topic": topic, **options})
        topics.append(topic)
    return topics


@pytest.mark.parametrize("name", cases(WRITES, "all columns", "by key alone"))
def test_both_sinks_write_the_same_records(spark: SparkSession, servers: str, name: str) -> None:
    rows, chosen, options = WRITES[name]
    topics = written_by_both(spark, servers, rows, chosen, options)
    by_spark, live = (topic_contents(servers, topic) for topic in topics)
    assert len(live) == len(rows)
    if name in ("no key", "null keys"):  # anywhere, and together: partitions are drawn
        by_spark, live = (sorted((0, *row[1:]) for row in each) for each in (by_spark, live))  # type: ignore[type-var]
    assert live == by_spark
    lower = {name.lower(): value for name, value in options.items()}
    wanted = {lower.get("kafka.compression.type", "none")} if rows else set()
    assert [codecs_of(servers, topic) for topic in topics] == [wanted, wanted]


def codecs_of(servers: str, topic: str) -> set[str]:
    """Return the codecs of a topic's batches."""
    found = set()
    with Client(servers) as client:
        for partition in range(3):
            (end,) = client.list_offsets({(topic, partition): LATEST_TIMESTAMP}).values()
            for fetched in client.read(topic, partition, 0, end.offset):
                found |= {batch.compression.name.lower() for batch in read_batches(fetched.records)}
    return found


def test_keys_map_to_sparks_partitions_for_any_number_of_tasks(spark: SparkSession, servers: str) -> None:
    topics = written_by_both(spark, servers, KEYED, ["key", "value", "headers"], {}, tasks=4)
    by_spark, live = (sorted(topic_contents(servers, topic), key=repr) for topic in topics)
    assert live == by_spark


@pytest.mark.parametrize("name", WRITE_FAILS)
def test_both_sinks_reject_the_rows(spark: SparkSession, servers: str, name: str) -> None:
    chosen, options, words = WRITE_FAILS[name]
    topic = connector_topics.create(servers, f"refused-{uuid.uuid4().hex}", 3)
    for source in FORMATS:
        frame = frame_of(spark, KEYED[:2], chosen)
        assert words.lower() in refusal(
            lambda source=source, frame=frame: write(frame, source, servers, {"topic": topic, **options})
        )
    assert topic_contents(servers, topic) == []


@pytest.mark.parametrize("mode", ["overwrite", "ignore"])
def test_both_sinks_support_only_append(spark: SparkSession, servers: str, mode: str) -> None:
    for source in FORMATS:
        writer = frame_of(spark, KEYED[:2], ["value"]).write.format(source).mode(mode).option("topic", "many")
        refusal(writer.option("kafka.bootstrap.servers", servers).save)


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_both_sinks_write_streams(spark: SparkSession, servers: str, tmp_path: Path, mode: str) -> None:
    given = {"kafka.bootstrap.servers": servers}
    found = []
    for source in FORMATS:
        topic = connector_topics.create(servers, f"streamed-{uuid.uuid4().hex}", 3)
        frame = (
            spark.readStream.format(source)
            .options(**given, **EARLIEST, subscribe="many", maxOffsetsPerTrigger="400")
            .load()
        )
        if mode != "append":
            frame = frame.groupBy((col("offset") % 7).cast("string").alias("key")).count()
            frame = frame.selectExpr("key", "CAST(count AS string) AS value")
        query = (
            frame.selectExpr("key", "value")
            .writeStream.format(source)
            .options(**given, topic=topic, checkpointLocation=str(tmp_path / source))
            .outputMode(mode)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(int(HANG_S))
        found.append(sorted(topic_contents(servers, topic)))
    assert found[0] == found[1]
    assert len(found[0]) == (1107 if mode == "append" else 3 * 7)


def test_spark_rejects_update_mode_for_python_sinks(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    given = {"kafka.bootstrap.servers": servers}
    source = spark.readStream.format("kafka-live").options(**given, **EARLIEST, subscribe="many")
    counts = source.load().groupBy("key").count().selectExpr("CAST(count AS string) AS value")
    writer = counts.writeStream.format("kafka-live").outputMode("update").trigger(availableNow=True)
    writer = writer.options(**given, topic="shop.eu", checkpointLocation=str(tmp_path))
    assert "kafka-live does not support update mode" in refusal(lambda: writer.start().awaitTermination(int(HANG_S)))


def test_writing_does_not_create_topics(spark: SparkSession, servers: str) -> None:
    name = f"new-{uuid.uuid4().hex}"
    rows = frame_of(spark, KEYED[:2], ["value"])
    assert "create it first" in refusal(lambda: write(rows, "kafka-live", servers, {"topic": name}))
    write(rows, "kafka", servers, {"topic": name})  # the broker makes it: auto.create.topics.enable
    assert len(topic_contents(servers, name)) == 2


def test_the_save_mode_is_required(spark: SparkSession, servers: str) -> None:
    topic = connector_topics.create(servers, f"mode-{uuid.uuid4().hex}")
    for source in FORMATS:
        writer = frame_of(spark, KEYED[:2], ["value"]).write.format(source).option("topic", topic)
        writer = writer.option("kafka.bootstrap.servers", servers)
        if source == "kafka":
            writer.save()
        else:
            refusal(writer.save)
    assert len(topic_contents(servers, topic)) == 2
