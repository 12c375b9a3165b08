"""`kafka-live` on a broker: batch queries, streams, data loss."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql.datasource")

from pyspark.sql.types import StructType
from tests.waiting import HANG_S

from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.errors import LogError
from kwire.identifiers import render_uuid
from kwire.messages import registry
from kwire.records import ColumnWriter
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.offsets import OffsetRange
from kwire.spark.streaming.position import Position

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Cluster:
    """A broker with a client."""

    def __init__(self, servers: str, **settings: str) -> None:
        self.servers = servers
        self.client = Client(servers, **settings)

    def create(self, name: str, partitions: int = 1) -> None:
        cls: Any = registry.get("CreateTopicsRequest")
        topic = cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        assert self.client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0

    def delete(self, name: str) -> None:
        cls: Any = registry.get("DeleteTopicsRequest")
        request = cls(topics=[cls.DeleteTopicState(name=name)], topic_names=[name], timeout_ms=9_000)
        assert self.client.request(request).responses[0].error_code == 0

    def write(self, topic: str, partition: int, values: list[str], *, timestamp: int = 1_000) -> None:
        producer = Producer(self.client)
        rows = pa.table(
            {
                "key": pa.array([b"k"] * len(values), pa.binary()),
                "value": pa.array([value.encode() for value in values], pa.binary()),
                "timestamp": pa.array(range(timestamp, timestamp + len(values)), pa.int64()),
            }
        )
        (batch,) = rows.to_batches()
        for piece in ColumnWriter(**producer.fields(topic, partition)).write(batch):
            producer.send(topic, partition, piece, len(values))

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        cls: Any = registry.get("DeleteRecordsRequest")
        each = cls.DeleteRecordsPartition(partition_index=partition, offset=offset)
        response = self.client.request(
            cls(topics=[cls.DeleteRecordsTopic(name=topic, partitions=[each])], timeout_ms=9_000)
        )
        assert response.topics[0].partitions[0].error_code == 0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Broker(log_retention_ms=-1) as broker:  # a test writes an old timestamp
        found = Cluster(broker.bootstrap_servers)
        yield found
        found.client.close()


def load(spark: SparkSession, cluster: Cluster, **options: Any) -> DataFrame:
    return spark.read.format("kafka-live").options(**{"kafka.bootstrap.servers": cluster.servers, **options}).load()


def stream(spark: SparkSession, cluster: Cluster, folder: Path, **options: Any) -> list[int]:
    """Run a query until it has read all available records; return the rows of each micro-batch."""
    query = (
        spark.readStream.format("kafka-live")
        .options(**{"kafka.bootstrap.servers": cluster.servers, **options})
        .load()
        .selectExpr("CAST(value AS string) AS value", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(int(HANG_S))
    assert query.exception() is None
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_rows_equal_those_of_sparks_kafka_source(spark: SparkSession, cluster: Cluster) -> None:
    cluster.create("rows", 2)
    cluster.write("rows", 0, ["a", "b"], timestamp=1_760_000_000_000)
    cluster.write("rows", 1, ["c"])
    frame = load(spark, cluster, subscribe="rows")
    assert frame.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    rows = sorted(frame.collect(), key=lambda row: (row.partition, row.offset))
    assert [(bytes(r.key), bytes(r.value), r.topic, r.partition, r.offset) for r in rows] == [
        (b"k", b"a", "rows", 0, 0),
        (b"k", b"b", "rows", 0, 1),
        (b"k", b"c", "rows", 1, 0),
    ]
    assert rows[0].timestamp.timestamp() == 1_760_000_000
    headers = load(spark, cluster, subscribe="rows", includeHeaders=True)
    assert headers.columns[-1] == "headers"
    assert load(spark, cluster, subscribePattern="ro.*", columns="offset").columns == ["offset"]


def test_offsets_and_timestamps_bound_the_read(spark: SparkSession, cluster: Cluster) -> None:
    cluster.create("range", 2)
    cluster.write("range", 0, [f"{n}" for n in range(100)])
    cluster.write("range", 1, [f"{n}" for n in range(50)])

    def offsets(**options: Any) -> list[tuple[int, int]]:
        rows = load(spark, cluster, subscribe="range", **options).collect()
        return sorted((row.partition, row.offset) for row in rows)

    start, end = {"range": {"0": 10, "1": -2}}, {"range": {"0": 12, "1": 1}}
    assert offsets(startingOffsets=json.dumps(start), endingOffsets=json.dumps(end)) == [(0, 10), (0, 11), (1, 0)]
    assert offsets(startingTimestamp="1098", startingOffsetsByTimestampStrategy="latest") == [(0, 98), (0, 99)]
    assert offsets(startingTimestamp="1040", endingTimestamp="1042") == [(p, o) for p in (0, 1) for o in (40, 41)]
    frame = load(spark, cluster, subscribe="range", minPartitions=6)
    assert frame.rdd.getNumPartitions() == 6
    assert frame.count() == 150
    assert load(spark, cluster, subscribe="range", maxRecordsPerPartition=40).rdd.getNumPartitions() == 5


def test_read_committed_returns_only_committed_data(spark: SparkSession, cluster: Cluster) -> None:
    cluster.create("tx")
    with Client(cluster.servers, **{"transactional.id": "t"}) as client:
        producer = Producer(client)
        for value, commit in (("a", True), ("b", False), ("c", True)):
            producer.begin()
            rows = pa.record_batch({"value": pa.array([value.encode()], pa.binary())})
            for piece in ColumnWriter(**producer.fields("tx", 0)).write(rows):
                producer.send("tx", 0, piece, 1)
            (producer.commit if commit else producer.abort)()
        producer.begin()
        for piece in ColumnWriter(**producer.fields("tx", 0)).write(rows):
            producer.send("tx", 0, piece, 1)
        committed = load(spark, cluster, subscribe="tx", **{"kafka.isolation.level": "read_committed"}).collect()
        assert [bytes(row.value) for row in committed] == [b"a", b"c"]
        assert load(spark, cluster, subscribe="tx").count() == 4
        producer.abort()


def test_a_stream_reads_every_record_once_across_restarts_and_new_partitions(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create("stream", 2)
    cluster.write("stream", 0, [f"a{n}" for n in range(100)])
    cluster.write("stream", 1, [f"b{n}" for n in range(20)])
    options = {"subscribe": "stream", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 50}
    assert stream(spark, cluster, tmp_path, **options) == [49, 49, 22]  # shares are rounded down, as Spark does
    cluster.write("stream", 0, [f"c{n}" for n in range(10)])
    cls: Any = registry.get("CreatePartitionsRequest")
    more = cls.CreatePartitionsTopic(name="stream", count=3, assignments=None)
    assert cluster.client.request(cls(topics=[more], timeout_ms=9_000)).results[0].error_code == 0
    cluster.write("stream", 2, [f"d{n}" for n in range(5)])
    assert stream(spark, cluster, tmp_path, **options) == [15]
    assert stream(spark, cluster, tmp_path, **options) == []
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert len(rows) == 135
    assert len({(row.partition, row.offset) for row in rows}) == 135
    first = sorted((tmp_path / "checkpoint" / "offsets").iterdir(), key=lambda p: p.name)
    last = [path for path in first if path.name.isdigit()][-1].read_text().splitlines()[-1]
    topic_id = cluster.client.metadata(["stream"]).topics["stream"].topic_id
    assert topic_id is not None
    assert json.loads(last) == {
        "stream": {"0": 110, "1": 20, "2": 5},
        f"stream#{render_uuid(topic_id)}": {},
        "#kafka-live": {},
    }


@pytest.mark.slow
def test_lost_data_fails_a_stream_or_is_skipped(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    cluster.create("gone")
    cluster.write("gone", 0, [f"{n}" for n in range(10)])
    options = {"subscribe": "gone", "startingOffsets": "earliest"}
    assert stream(spark, cluster, tmp_path, **options) == [10]
    cluster.write("gone", 0, [f"{n}" for n in range(10)])
    cluster.delete_before("gone", 0, 15)
    with pytest.raises(Exception, match=r"offsets \[10, 15\) of gone-0 were deleted before they were read"):
        stream(spark, cluster, tmp_path, **options)
    assert stream(spark, cluster, tmp_path, failOnDataLoss=False, **options) == [5]


def test_a_stream_continues_after_a_topic_was_deleted(cluster: Cluster) -> None:
    # A micro-batch that was planned and killed is planned again: it asked for the deleted topic for a minute, in vain.
    for name in ("deleted.a", "deleted.b"):
        cluster.create(name)
        cluster.write(name, 0, ["x"] * 5)

    def reader(fail_on_data_loss: str) -> Any:
        given = {"kafka.bootstrap.servers": cluster.servers, "subscribePattern": r"^deleted\."}
        options = {**given, "startingOffsets": "earliest", "failOnDataLoss": fail_on_data_loss}
        return KafkaLiveSource(options).streamReader(StructType().add("offset", "long"))

    strict, lenient = reader("true"), reader("false")
    start = strict.initialOffset()
    end = strict.latestOffset(start, strict.getDefaultReadLimit())
    assert Position.parse(end).offsets == {("deleted.a", 0): 5, ("deleted.b", 0): 5}
    cluster.delete("deleted.a")
    with pytest.raises(LogError, match=r"offsets \[0, 5\) of deleted\.a-0 were deleted before they were read"):
        strict.partitions(start, end)
    assert [each.ranges for each in lenient.partitions(start, end)] == [[OffsetRange("deleted.b", 0, 0, 5)]]
    with pytest.raises(LogError, match=r"\[deleted\.a-0\] not found, deleted or not visible .* up to offset 5"):
        strict.latestOffset(end, strict.getDefaultReadLimit())
    after = lenient.latestOffset(end, lenient.getDefaultReadLimit())
    assert Position.parse(after).offsets == Position.parse(end).offsets
    assert list(lenient.partitions(end, after)) == []
    without = {name: each for name, each in end.items() if not name.startswith("deleted.a")}
    with pytest.raises(LogError, match=r"deleted\.a-0 was deleted; the query had read it up to offset 5"):
        strict.partitions(end, without)
    strict.stop()
    lenient.stop()


@pytest.mark.slow
def test_a_recreated_topic_is_detected_by_its_id(spark: SparkSession, cluster: Cluster, tmp_path: Path) -> None:
    # It has more records than were read of the one before: the first ten would be skipped without a word.
    options = {"subscribe": "anew", "startingOffsets": "earliest"}
    cluster.create("anew")
    cluster.write("anew", 0, [f"old {n}" for n in range(10)])
    assert stream(spark, cluster, tmp_path, **options) == [10]
    cluster.delete("anew")
    cluster.create("anew")
    cluster.write("anew", 0, [f"new {n}" for n in range(15)])
    with pytest.raises(Exception, match=r"topic 'anew' was deleted and created again: its id was"):
        stream(spark, cluster, tmp_path, **options)
    assert stream(spark, cluster, tmp_path, failOnDataLoss=False, **options) == [15]
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.value for row in rows if row.value.startswith("new")) == sorted(f"new {n}" for n in range(15))


@pytest.mark.slow
def test_a_task_reads_no_record_of_a_topic_recreated_after_planning(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create("late")
    cluster.write("late", 0, [f"old {n}" for n in range(10)])

    def reader(fail_on_data_loss: str) -> Any:
        given = {"kafka.bootstrap.servers": cluster.servers, "subscribe": "late", "startingOffsets": "earliest"}
        options = {**given, "failOnDataLoss": fail_on_data_loss}
        return KafkaLiveSource(options).streamReader(StructType().add("offset", "long"))

    strict, lenient = reader("true"), reader("false")
    start = strict.initialOffset()
    (task,) = strict.partitions(start, strict.latestOffset(start, strict.getDefaultReadLimit()))
    assert sum(rows.num_rows for rows in strict.read(task)) == 10
    cluster.delete("late")
    cluster.create("late")
    cluster.write("late", 0, [f"new {n}" for n in range(15)])
    for _ in range(2):  # with the leader that is known from before, and after it was looked up again
        with pytest.raises(LogError, match=r"topic 'late' was deleted and created again.*failOnDataLoss to false"):
            list(strict.read(task))
    assert list(lenient.read(task)) == []
    assert "topic 'late' was deleted and created again" in caplog.text
    strict.stop()
    lenient.stop()


def test_missing_topics_and_partitions_are_one_line_errors(spark: SparkSession, cluster: Cluster) -> None:
    cluster.create("orders")
    with pytest.raises(Exception, match=r"order not found in this cluster \(did you mean 'orders'\?\)"):
        load(spark, cluster, subscribe="order").count()
    with pytest.raises(Exception, match=r"out of range: the log holds offsets \[0, 0\)"):
        load(spark, cluster, subscribe="orders", startingOffsets='{"orders":{"0":5}}').count()
