"""Every source and sink in batch and streaming queries, compared with kwire without Spark."""

from __future__ import annotations

import json
from typing import Any

import pyspark
from given import Given, contents, create_topic, of_broker, of_log, rows

from kwire.capture import read_capture
from kwire.internal_topics.record_rows import record_row
from kwire.log import LogDirectory
from kwire.log.topics import read_group_records, replay_groups

HAS_LIMITS = not pyspark.__version__.startswith("4.1.")
SEVERAL = 2 if HAS_LIMITS else 1  # micro-batches


def log_batch(given: Given) -> None:
    reader = given.spark.read.format("kafka-log").option("includeHeaders", True)
    for topic in ("orders", "txn", "compacted"):
        assert rows(reader.option("subscribe", topic).load(str(given.logs))) == of_log(given.logs, topic)
    assert len(of_log(given.logs, "orders")) > 4000


def log_stream(given: Given) -> None:
    stream = (
        given.spark.readStream.format("kafka-log")
        .options(subscribe="orders", startingOffsets="earliest", includeHeaders=True, maxOffsetsPerTrigger=8000)
        .load(str(given.logs))
    )
    folder = given.out / "log-stream"
    batches = drain(stream.writeStream.format("parquet").option("path", f"{folder}/rows"), f"{folder}/checkpoint")
    assert batches >= SEVERAL
    assert rows(given.spark.read.schema(stream.schema).parquet(f"{folder}/rows")) == of_log(given.logs, "orders")


def log_sink(given: Given) -> None:
    target = given.out / "log-sink"
    reader = given.spark.read.format("kafka-log").option("includeHeaders", True).option("subscribe", "orders,ids")
    reader.load(str(given.logs)).write.format("kafka-log").option("compression", "zstd").mode("append").save(
        str(target)
    )
    for topic in ("orders", "ids"):
        assert of_log(target, topic) == of_log(given.logs, topic)
    assert sorted(path.name for path in given.out.glob("log-sink*")) == ["log-sink"]


def write_orders(given: Given) -> str:
    """Write the orders to a new topic and return its name."""
    topic = create_topic(given.servers, "live-batch", 3)
    orders = given.spark.read.format("kafka-log").options(subscribe="orders", includeHeaders=True).load(str(given.logs))
    sink = {"kafka.bootstrap.servers": given.servers, "topic": topic, "kafka.compression.type": "lz4"}
    orders.select("key", "value", "headers", "partition").write.format("kafka-live").options(**sink).mode(
        "append"
    ).save()
    return topic


def live_batch(given: Given) -> None:
    topic = write_orders(given)
    written = of_broker(given.servers, topic)
    assert contents(written) == contents(of_log(given.logs, "orders"))
    assert rows(live(given, given.spark.read, topic)) == written


def live_stream_in_transactions(given: Given) -> None:
    source = write_orders(given)
    target = create_topic(given.servers, "live-stream", 2)
    stream = live(given, given.spark.readStream, source, startingOffsets="earliest", maxOffsetsPerTrigger="8000")
    sink = {"kafka.bootstrap.servers": given.servers, "topic": target, "transactionalIdPrefix": "deployment"}
    checkpoint = str(given.out / "live-stream")
    rising = stream.selectExpr("key", "value", "headers", "partition % 2 AS partition")
    assert drain(rising.writeStream.format("kafka-live").options(**sink), checkpoint) >= SEVERAL
    expected = sorted((each[1:] for each in contents(of_broker(given.servers, source))), key=repr)
    for _ in range(2):
        found = of_broker(given.servers, target, "read_committed")
        assert sorted((each[1:] for each in contents(found)), key=repr) == expected
        drain(rising.writeStream.format("kafka-live").options(**sink), checkpoint)  # nothing is new


def live_batch_in_a_transaction(given: Given) -> None:
    topic = create_topic(given.servers, "live-transaction", 2)
    options = {"kafka.bootstrap.servers": given.servers, "topic": topic, "transactionalIdPrefix": "one"}
    numbers = given.spark.range(0, 1000, 1, 4).selectExpr("CAST(id AS string) AS key", "CAST(id AS string) AS value")
    numbers.write.format("kafka-live").options(**options).mode("append").save()
    found = of_broker(given.servers, topic, "read_committed")
    assert sorted(int(each[4]) for each in found) == list(range(1000))
    assert rows(live(given, given.spark.read, topic, **{"kafka.isolation.level": "read_committed"})) == found


def capture(given: Given) -> None:
    paths = [given.captures / f"{name}.clean.pcap" for name in ("k282", "k391")]
    frame = given.spark.read.format("kafka-capture").load([str(path) for path in paths])
    found = {(row.file, row.connection, row.correlation_id): row for row in frame.collect()}
    expected = {(str(p), each.connection, each.correlation_id): each for p in paths for each in read_capture(str(p))}
    assert set(found) == set(expected)
    for place, each in expected.items():
        row = found[place]
        reported = json.loads(json.dumps(each.request_message().to_json(version=each.api_version)))
        assert (row.api, row.api_version, json.loads(row.request)) == (each.api_name, each.api_version, reported)


def internal(given: Given) -> None:
    reader = given.spark.read.format("kafka-internal")
    directory = LogDirectory(given.logs)
    found = {
        (row.group, row.topic, row.partition): row.offset
        for row in reader.option("kind", "offsets").load(str(given.logs)).collect()
        if row.offset is not None  # a partition that a member has, and nobody has committed
    }
    assert found == {
        (name, *place): committed.offset
        for name, group in replay_groups(directory).groups.items()
        for place, committed in group.offsets.items()
    }
    history = given.spark.read.format("kafka-internal").options(topic="__consumer_offsets", mode="history")
    reported = sorted((row.partition, row.offset, row.kind, row.key) for row in history.load(str(given.logs)).collect())
    expected = [record_row(each) for each in read_group_records(directory)]
    assert [each[:3] for each in reported] == sorted((row["partition"], row["offset"], row["kind"]) for row in expected)
    keys = {(row["partition"], row["offset"]): row["key"] for row in expected}
    assert all((None if key is None else json.loads(key)) == keys[p, offset] for p, offset, _, key in reported)


def live(given: Given, reader: Any, topic: str, **more: str) -> Any:
    """Return a DataFrame of a topic."""
    options = {"kafka.bootstrap.servers": given.servers, "subscribe": topic, "includeHeaders": "true", **more}
    return reader.format("kafka-live").options(**options).load()


def drain(writer: Any, checkpoint: str) -> int:
    """Run a stream until it has read all available records; return the number of micro-batches.

    Spark 4.1 has neither Trigger.AvailableNow nor limits for Python sources: everything is one micro-batch.
    """
    writer = writer.option("checkpointLocation", checkpoint)
    if HAS_LIMITS:
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(600), query.status
    else:
        query = writer.start()
        query.processAllAvailable()
        query.stop()
    if query.exception() is not None:
        raise query.exception()
    last = query.lastProgress
    return 0 if last is None else int(last["batchId"]) + 1
