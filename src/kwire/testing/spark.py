"""Streaming queries of tests: topics with data, a query that processes them, its answer, restarts.

    kafka_spark.create_topic("orders", 2)
    stream = kafka_spark.start(totals(kafka_spark.read("orders")), output_mode="complete")
    kafka_spark.add_data("orders", ("alice", "3"), ("bob", "1"))
    stream.process_all()
    stream.check_answer([("alice", 3), ("bob", 1)])
    stream.restart()                                           # from its checkpoint

Spark's own StreamTest (Scala) has the same as AddData, ProcessAllAvailable, CheckAnswer, StopStream and StartStream.
Rows of a query come from foreachBatch instead of a memory sink, which cannot be restarted from a checkpoint: a
micro-batch that runs again replaces its rows.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kwire.broker import Broker
from kwire.client import Client, OutgoingBatch, Producer
from kwire.errors import OptionError
from kwire.extras import needing
from kwire.records import Record, TimestampType, write_batch
from kwire.records.partitioner import murmur2
from kwire.testing.rows import difference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["SparkTest", "StreamUnderTest", "new_session"]

TIMEOUT_S = 120.0
"""Limit of process_all, also on a slow machine that starts its first Python workers."""
OUTPUT_MODES = ("append", "update", "complete")

Payload = str | bytes | None
Datum = Payload | tuple[Payload, Payload]


def new_session(settings: Mapping[str, object], folder: Path) -> SparkSession:
    """Start a small session for tests, whose Python workers run this Python. settings: Spark's configs.

    Raises OptionError for settings that a session which exists already would not obey.
    """
    with needing("kafka_spark"):
        from pyspark.sql import SparkSession

    import kwire.spark  # noqa: F401 (before the JVM starts: Spark then runs the Python of this program)

    if SparkSession.getActiveSession() is not None:
        raise OptionError("a Spark session is active already; return it from a fixture `spark`")
    configs = {
        "spark.master": "local[2]",
        "spark.app.name": "kafka_spark",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",  # not 1: a wrong distribution of groups would not be noticed
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in settings.items()},
    }
    builder = SparkSession.builder
    for name, value in configs.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class SparkTest:
    """Topics and streaming queries of one test. folder: for checkpoints."""

    def __init__(self, session: SparkSession, broker: Broker, folder: Path) -> None:
        self.session, self.broker, self._folder = session, broker, folder
        self._client: Client | None = None
        self._producer: Producer | None = None
        self._next_partition: dict[str, int] = {}
        self._streams: list[StreamUnderTest] = []

    def __repr__(self) -> str:
        return f"SparkTest({self.broker!r})"

    @property
    def bootstrap_servers(self) -> str:
        """host:port of the broker, for kafka.bootstrap.servers."""
        return self.broker.bootstrap_servers

    def create_topic(self, name: str, partitions: int = 1, **configs: Any) -> None:
        """Create a topic. configs: by Kafka's names, underscores for dots. Raises BrokerError."""
        self.broker.create_topic(name, partitions, **configs)

    def add_data(
        self,
        topic: str,
        *data: Datum,
        partition: int | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
    ) -> None:
        """Write records to a topic; queries see them from now on.

        data: a value, or (key, value), each as text, bytes or None. partition: by default that of the key, and without
        keys each in turn. headers, timestamp_ms: of each of these records; the current time by default.
        Raises OptionError for an unknown topic or partition.
        """
        producer = self._open()
        metadata = producer.client.metadata([topic]).topics.get(topic)
        if metadata is None or not metadata.partitions:
            raise OptionError(f"topic {topic!r} does not exist; create it with create_topic")
        count = len(metadata.partitions)
        if partition is not None and not 0 <= partition < count:
            raise OptionError(f"partition {partition} is out of range: topic {topic!r} has {count}")
        now_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        by_partition: dict[int, list[Record]] = {}
        for datum in data:
            key, value = (encoded(each) for each in (datum if isinstance(datum, tuple) else (None, datum)))
            target = self._partition_of(topic, key, count) if partition is None else partition
            record = Record(
                offset=0,
                timestamp=now_ms,
                timestamp_type=TimestampType.CREATE_TIME,
                key=key,
                value=value,
                headers=list(headers),
            )
            by_partition.setdefault(target, []).append(record)
        for target, records in by_partition.items():
            batch = write_batch(records, **producer.fields(topic, target))
            producer.send_all([OutgoingBatch(topic, target, batch, len(records))])

    def _partition_of(self, topic: str, key: bytes | None, count: int) -> int:
        if key is not None:
            return (murmur2(key) & 0x7FFFFFFF) % count
        partition = self._next_partition.get(topic, 0) % count
        self._next_partition[topic] = partition + 1
        return partition

    def _open(self) -> Producer:
        if self._producer is None:
            self._client = Client(self.bootstrap_servers)
            self._producer = Producer(self._client)
        return self._producer

    def read(self, topic: str, *, format: str = "kafka-live", **options: object) -> DataFrame:
        """Return a stream of a topic from its first record, of kwire's source or Spark's own (format="kafka").

        options: of the source, also in place of these.
        """
        reader = self.session.readStream.format(format)
        given = {
            "kafka.bootstrap.servers": self.bootstrap_servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            **options,
        }
        return reader.options(**given).load()  # type: ignore[arg-type]  # Spark takes numbers and booleans too

    def start(
        self, query: DataFrame | Callable[[str], StreamingQuery], *, output_mode: str = "append"
    ) -> StreamUnderTest:
        """Start a streaming query and return it.

        query: a streaming DataFrame, whose rows check_answer compares; or a function that takes a checkpoint location,
        starts a query with its own sink, and returns it.
        """
        if output_mode not in OUTPUT_MODES:
            raise OptionError(f"unknown output_mode {output_mode!r}: expected one of {', '.join(OUTPUT_MODES)}")
        folder = self._folder / f"checkpoint-{len(self._streams)}"
        stream = StreamUnderTest(query, str(folder), output_mode)
        self._streams.append(stream)
        stream.start()
        return stream

    def check_topic(self, topic: str, expected: Iterable[Datum], *, in_order: bool = False) -> None:
        """Check the committed records of a topic: values, or (key, value), as add_data takes them.

        in_order: by partition and offset. Raises AssertionError with the difference.
        """
        __tracebackhide__ = True
        import kwire

        wanted = list(expected)
        with_keys = any(isinstance(each, tuple) for each in wanted)
        with kwire.open(f"kafka://{self.bootstrap_servers}") as logs:
            places = sorted(place for place in logs if place[0] == topic)
            if not places:
                raise OptionError(f"topic {topic!r} does not exist; create it with create_topic")
            records = [record for place in places for record in logs[place].read(isolation="read_committed")]
        actual = [(shown(each.key), shown(each.value)) if with_keys else (shown(each.value),) for each in records]
        pairs = [each if isinstance(each, tuple) else (None, each) for each in wanted]
        rows = [
            tuple(shown(encoded(part)) for part in (pair if with_keys else pair[1:]))
            for pair in pairs
        ]  # fmt: skip
        if problem := difference(actual, rows, in_order=in_order):
            raise AssertionError(f"topic {topic!r}: {problem}")

    def close(self) -> None:
        """Stop all queries and close connections."""
        for stream in self._streams:
            stream.stop()
        if self._client is not None:
            self._client.close()


class StreamUnderTest:
    """A streaming query of a test."""

    def __init__(self, query: DataFrame | Callable[[str], StreamingQuery], checkpoint: str, output_mode: str) -> None:
        self.checkpoint = checkpoint
        self._definition, self._output_mode = query, output_mode
        self._query: StreamingQuery | None = None
        self._batches: dict[int, list[Any]] = {}
        self._columns: list[str] | None = None

    def __repr__(self) -> str:
        return f"StreamUnderTest({self._query.id if self._query else 'stopped'})"

    @property
    def query(self) -> StreamingQuery:
        """The running query. Raises OptionError if it is stopped."""
        if self._query is None:
            raise OptionError("the stream is stopped; start() continues from its checkpoint")
        return self._query

    def start(self, query: DataFrame | Callable[[str], StreamingQuery] | None = None) -> None:
        """Start, from the checkpoint if there is one. query: in place of the former, such as its next release."""
        if self._query is not None:
            raise OptionError("the stream is already running; stop() it first")
        definition = self._definition = self._definition if query is None else query
        if callable(definition):
            self._columns = None
            self._query = definition(self.checkpoint)
            return
        if hasattr(definition, "_session") and type(definition).__module__.startswith("pyspark.sql.connect"):
            raise OptionError(
                "rows of a streaming DataFrame of Spark Connect do not come to this process; start a function that "
                "writes to a sink, and use check_topic or check_answer(..., actual=...)"
            )
        if not definition.isStreaming:
            raise OptionError("expected a streaming DataFrame, of spark.readStream, or a function that starts a query")
        self._columns = definition.columns
        writer = definition.writeStream.outputMode(self._output_mode).foreachBatch(self._keep)
        self._query = writer.option("checkpointLocation", self.checkpoint).start()

    def _keep(self, batch: DataFrame, batch_id: int) -> None:
        self._batches[batch_id] = batch.collect()

    def process_all(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until the query has processed all records that are in the topics now.

        Raises StreamingQueryException if it fails, AssertionError with its status after timeout_s.
        """
        __tracebackhide__ = True
        query = self.query
        problems: list[BaseException] = []

        def wait() -> None:
            try:
                query.processAllAvailable()
            except BaseException as error:
                problems.append(error)

        waiting = threading.Thread(target=wait, name="process_all", daemon=True)
        waiting.start()
        waiting.join(timeout_s)
        if waiting.is_alive():
            raise AssertionError(
                f"the query has not processed all records after {timeout_s:g} s; status: {query.status}; "
                f"last progress: {query.lastProgress}"
            )
        if problems:
            raise problems[0]

    @property
    def rows(self) -> list[Any]:
        """The rows so far, in the order of micro-batches; with output mode complete, the rows of the last one."""
        batches = [self._batches[batch_id] for batch_id in sorted(self._batches)]
        if self._output_mode == "complete":
            batches = batches[-1:]
        return list(itertools.chain.from_iterable(batches))

    def check_answer(
        self, expected: DataFrame | Iterable[object], *, actual: DataFrame | None = None, in_order: bool = False
    ) -> None:
        """Check the rows of the query; call process_all before.

        expected: rows, as a DataFrame, tuples or Row; of one column also its values. actual: what to compare instead of
        the query's rows, such as the table that it writes. in_order: whether the order of rows counts.
        Raises AssertionError that lists missing and unexpected rows, and with in_order those in another order.
        """
        __tracebackhide__ = True
        if actual is None and self._columns is None:
            raise OptionError("the query has its own sink: pass what it has written as `actual`, or use check_topic")
        rows = self.rows if actual is None else actual.collect()
        columns = self._columns if actual is None else actual.columns
        assert columns is not None
        wanted = [as_row(each, columns) for each in (expected.collect() if hasattr(expected, "collect") else expected)]
        if problem := difference(rows, wanted, in_order=in_order):
            raise AssertionError(f"columns {', '.join(columns)}: {problem}")

    def stop(self) -> None:
        """Stop the query; its checkpoint stays. Stopping twice does no harm."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()

    def restart(self) -> None:
        """Stop, and start from the checkpoint."""
        self.stop()
        self.start()


def encoded(payload: Payload) -> bytes | None:
    """Return a key or value as bytes. Raises OptionError for another type."""
    if payload is None or isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    raise OptionError(
        f"a key or value is text, bytes or None, got {type(payload).__name__}; serialize it, such as with json.dumps"
    )


def shown(payload: bytes | None) -> Payload:
    """Return bytes as text where they are, for messages."""
    try:
        return None if payload is None else payload.decode()
    except UnicodeDecodeError:
        return payload


def as_row(given: object, columns: Sequence[str]) -> Sequence[object]:
    """Return an expected row. Raises OptionError if it has other columns."""
    row: Sequence[object] = given if isinstance(given, tuple) else (given,)
    names = getattr(given, "__fields__", columns)
    if list(names) != list(columns) or len(row) != len(columns):
        raise OptionError(f"expected rows have columns {', '.join(columns)}, got {given!r}")
    return row
