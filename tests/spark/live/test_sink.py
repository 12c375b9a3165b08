"""Writing to `kafka-live`: partitions, columns, transactions, restarts; directly and through Spark."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.conftest import environment_of_a_new_session
from tests.waiting import HANG_S, until

from kwire.broker import Broker
from kwire.client import LATEST_TIMESTAMP, Client
from kwire.client.group_offsets import commit_offsets
from kwire.client.oauthbearer import unsecured_token
from kwire.errors import BrokerError, OptionError
from kwire.messages import registry
from kwire.records import read_batches
from kwire.spark.live.batch_marks import Mark, driver_group, find_mark, replace_mark
from kwire.spark.live.write_options import LiveWriteOptions, parse_write_options

datasource = pytest.importorskip("pyspark.sql.datasource")
confluent_kafka = pytest.importorskip("confluent_kafka")

from kwire.spark.live.sink import abort_all, commit_all, commit_batch  # noqa: E402 (needs PySpark)
from kwire.spark.live.source import KafkaLiveSource  # noqa: E402
from kwire.spark.live.writing import Written, write_task  # noqa: E402
from kwire.spark.partitioner import RowPartitioner  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

COLUMNS = ("key", "value", "headers", "topic", "partition")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


def create(servers: str, name: str, partitions: int = 1, **configs: str) -> str:
    cls: Any = registry.get("CreateTopicsRequest")
    settings = [cls.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    with Client(servers) as client:
        assert client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0
    return name


def options(servers: str, **more: str) -> LiveWriteOptions:
    return parse_write_options({"kafka.bootstrap.servers": servers, **{k.lower(): v for k, v in more.items()}})


def test_tokens_and_levels_reach_producers_and_consumers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kwire.spark.live.options import parse_options
    from kwire.spark.live.reading import read_range
    from kwire.spark.offsets import OffsetRange

    with Broker(listeners="SASL_PLAINTEXT://127.0.0.1:0", sasl_enabled_mechanisms="OAUTHBEARER") as broker:
        given = {
            "kafka.bootstrap.servers": broker.bootstrap_servers,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "OAUTHBEARER",
        }
        token = unsecured_token({"sub": "alice", "exp": time.time() + 600})
        monkeypatch.setenv("KWIRE_TEST_TOKEN", token)
        (tmp_path / "token").write_text(token)
        by_variable = {**given, "kafka.sasl.oauthbearer.token.env": "KWIRE_TEST_TOKEN"}
        by_file = {**given, "kafka.sasl.oauthbearer.token.endpoint.url": (tmp_path / "token").as_uri()}
        rows = batch(value=pa.array([b"the same again " * 500] * 50, pa.binary()))
        sizes = {}
        for level in ("1", "9"):
            options = parse_write_options(
                {
                    **by_variable,
                    "topic": f"t{level}",
                    "kafka.compression.type": "gzip",
                    "kafka.compression.gzip.level": level,
                }
            )
            with Client(**options.kafka) as client:
                cls: Any = registry.get("CreateTopicsRequest")
                topic = cls.CreatableTopic(name=f"t{level}", num_partitions=1, replication_factor=1)
                assert client.request(cls(topics=[topic], timeout_ms=10_000)).topics[0].error_code == 0
                assert write(rows, options).records == 50
                (fetched,) = client.read(f"t{level}", 0, 0, 50)
                sizes[level] = len(fetched.records)
        assert sizes["9"] < sizes["1"]
        settings = parse_options({**by_file, "subscribe": "t9"}, "batch").kafka
        found = read_range(
            OffsetRange("t9", 0, 0, 50), ("value",), settings, "read_uncommitted", fail_on_data_loss=True
        )
        assert sum(each.num_rows for each in found) == 50


def batch(**columns: Any) -> pa.RecordBatch:
    types = {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    }
    return pa.RecordBatch.from_arrays(
        [values if isinstance(values, pa.Array) else pa.array(values, types[name]) for name, values in columns.items()],
        list(columns),
    )


def write(rows: pa.RecordBatch | list[pa.RecordBatch], given: LiveWriteOptions, task: int = 0, **more: Any) -> Written:
    batches = rows if isinstance(rows, list) else [rows]
    return write_task(iter(batches), tuple(batches[0].schema.names), given, task=task, **more)


def consume(servers: str, topic: str, *, isolation: str = "read_committed") -> list[Any]:
    """Return every message of librdkafka's consumer."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    partitions = consumer.list_topics(topic, timeout=HANG_S).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in partitions])
    found, ended = [], set()
    while len(ended) < len(partitions):
        message = consumer.poll(HANG_S)
        assert message is not None, f"{topic}: only the ends of {ended} were reached"
        if message.error() is None:
            found.append(message)
        else:
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            ended.add(message.partition())
    consumer.close()
    return found


def values(servers: str, topic: str, **more: str) -> list[str]:
    return sorted(message.value().decode() for message in consume(servers, topic, **more))


# ---- rows to partitions


def test_consumers_read_written_keys_headers_and_nulls(servers: str) -> None:
    create(servers, "rows", 2)
    rows = batch(
        key=[b"k", None, b""],
        value=[b"a", b"b", None],
        headers=[[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, []],
        partition=[1, 1, 1],
    )
    before = time.time()
    assert write(rows, options(servers, topic="rows")).records == 3
    found = consume(servers, "rows")
    assert [(m.partition(), m.offset(), m.key(), m.value()) for m in found] == [
        (1, 0, b"k", b"a"),
        (1, 1, None, b"b"),
        (1, 2, b"", None),
    ]
    assert found[0].headers() == [("h", b"1"), ("h", None)]
    assert [found[1].headers(), found[2].headers()] == [None, None]
    kind, milliseconds = found[0].timestamp()
    assert kind == confluent_kafka.TIMESTAMP_CREATE_TIME
    assert before - 1 <= milliseconds / 1000 <= time.time() + 1


def test_keys_are_partitioned_as_by_librdkafkas_murmur2(servers: str) -> None:
    keys = [f"key {n}" for n in range(300)]
    for name in ("ours", "theirs"):
        create(servers, name, 7)
    write(batch(key=pa.array(keys), value=pa.array(keys)), options(servers, topic="ours"))
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for key in keys:
        producer.produce("theirs", key, key)
    producer.flush(HANG_S)

    def places(topic: str) -> dict[bytes, int]:
        return {message.key(): message.partition() for message in consume(servers, topic)}

    assert places("ours") == places("theirs")
    assert len(set(places("ours").values())) == 7


def test_rows_without_a_key_fill_batches_and_all_partitions() -> None:
    partitioner = RowPartitioner("t", 4, batch_bytes=1000, seed=1)
    rows = batch(value=[b"v" * 84] * 1000)  # 100 bytes each, with what a record costs
    found = [int(n) for _ in range(4) for n in partitioner.choose(rows)]
    assert Counter(found) == dict.fromkeys(range(4), 1000)
    runs = [n for i, n in enumerate(found) if i == 0 or found[i - 1] != n]
    assert len(runs) == 400
    without_leader = RowPartitioner("t", 4, batch_bytes=1000, available=[1, 3])
    assert set(without_leader.choose(rows).tolist()) == {1, 3}


def test_the_partition_column_takes_precedence_and_null_falls_back_to_the_key() -> None:
    partitioner = RowPartitioner("t", 50, batch_bytes=1 << 20)
    keyed = partitioner.choose(batch(key=[b"a", b"b", b"c"], value=[b""] * 3))
    mixed = partitioner.choose(batch(key=[b"a", b"b", b"c"], value=[b""] * 3, partition=[None, 7, None]))
    assert mixed.tolist() == [keyed[0], 7, keyed[2]]
    for wrong in (-1, 50):
        with pytest.raises(OptionError, match=rf"topic 't' has no partition {wrong}; available: 0 to 49"):
            partitioner.choose(batch(key=[b"a", b"b"], value=[b"", b""], partition=[wrong, None]))


def test_the_topic_option_takes_precedence_over_the_column(servers: str) -> None:
    for name in ("first", "second", "third"):
        create(servers, name)
    rows = batch(value=pa.array(["a", "b", "c"]), topic=["first", "second", "first"])
    write(rows, options(servers))
    write(rows.drop_columns("topic"), options(servers, topic="third"))
    assert [values(servers, name) for name in ("first", "second", "third")] == [["a", "c"], ["b"], ["a", "b", "c"]]
    with pytest.raises(OptionError, match="null topic present in the data"):
        write(batch(value=[b"a", b"b"], topic=["first", None]), options(servers))
    for hostile in ("../../etc", "a/b", "", "..", "t\0", "x" * 250):
        with pytest.raises(OptionError, match="topic name"):
            write(batch(value=[b"a"], topic=[hostile]), options(servers))
        with pytest.raises(OptionError, match="topic name"):
            options(servers, topic=hostile)
    with pytest.raises(BrokerError, match=r"topic 'firsst' does not exist \(did you mean 'first'\?\); create it first"):
        write(batch(value=[b"a"], topic=["firsst"]), options(servers))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_many_rows_are_written_in_order_with_the_configured_codec(servers: str, codec: str) -> None:
    topic = create(servers, f"codec-{codec}", 2)
    given = options(servers, topic=topic, **{"kafka.compression.type": codec, "kafka.batch.size": "4096"})
    batches = [
        batch(value=pa.array([f"{n + i:06d}" for i in range(1000)]), partition=[i % 2 for i in range(1000)])
        for n in range(0, 5000, 1000)
    ]
    assert write(batches, given).records == 5000
    for partition in (0, 1):
        found = [m.value() for m in consume(servers, topic) if m.partition() == partition]
        assert found == [b"%06d" % n for n in range(partition, 5000, 2)]
    with Client(servers) as client:
        fetched = next(client.read(topic, 0, 0, 2500))
        assert {each.compression.text for each in read_batches(fetched.records)} == {codec}


def test_a_batch_above_max_message_bytes_is_rejected_with_a_remedy(servers: str) -> None:
    topic = create(servers, "narrow", max_message_bytes="1000")
    rows = batch(value=[b"v" * 100] * 50)
    with pytest.raises(BrokerError, match=r"set kafka.batch.size below the topic"):
        write(rows, options(servers, topic=topic))
    write(rows, options(servers, topic=topic, **{"kafka.batch.size": "900"}))
    assert len(values(servers, topic)) == 50


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_rows_are_written_with_every_acks_value(servers: str, acks: str) -> None:
    topic = create(servers, f"acks-{acks}")
    rows = [f"{n:04d}" for n in range(2000)]
    write(
        batch(value=pa.array(rows)), options(servers, topic=topic, **{"kafka.acks": acks, "kafka.batch.size": "4096"})
    )
    if acks == "0":  # nobody says when
        until(lambda: values(servers, topic) == rows)
    assert values(servers, topic) == rows


PLANNER = """
import sys
from kwire.spark.live.source import KafkaLiveSource
from kwire.spark.log.source import KafkaLogSource
from pyspark.sql.types import StringType, StructField, StructType
schema = StructType([StructField("value", StringType())])
servers, folder = sys.argv[1:]
topic = KafkaLiveSource({"kafka.bootstrap.servers": servers, "topic": "planned", "transactionalidprefix": "p"})
writers = [topic.writer(schema, False), topic.streamWriter(schema, False)]
writers.append(KafkaLogSource({"path": folder, "topic": "t"}).writer(schema, False))
print(sorted({name.partition(".")[0] for name in sys.modules} & {"pyarrow", "numpy", "pandas", "fsspec"}))
"""


def test_the_planner_does_not_import_pyarrow(servers: str, tmp_path: Path) -> None:
    create(servers, "planned")
    command = [sys.executable, "-c", PLANNER, servers, str(tmp_path / "data")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


# ---- transactions


def test_rows_are_visible_only_after_the_driver_commits(servers: str) -> None:
    topic = create(servers, "all-or-nothing", 2)
    given = options(servers, topic=topic, transactional="true", transactionalIdPrefix="aon")
    written = [write(batch(value=pa.array([f"{n}"] * 3), partition=[0, 1, 0]), given, task=n) for n in range(2)]
    written.append(write(batch(value=pa.array([], pa.string())), given, task=2))
    assert written[2].transaction is None
    assert values(servers, topic) == []
    assert len(values(servers, topic, isolation="read_uncommitted")) == 6
    commit_all(given, written)
    assert values(servers, topic) == ["0"] * 3 + ["1"] * 3
    again = [write(batch(value=pa.array(["no"])), given, task=n) for n in range(2)]
    abort_all(given, again)
    abort_all(given, again)  # transactions that already ended are not an error
    assert values(servers, topic) == ["0"] * 3 + ["1"] * 3


def test_a_retried_task_is_written_once_and_its_first_attempt_reported(servers: str) -> None:
    topic = create(servers, "attempts")
    given = options(servers, topic=topic, **{"kafka.transactional.id": "attempts"})
    first = write(batch(value=pa.array(["a"])), given)
    second = write(batch(value=pa.array(["a"])), given)
    with pytest.raises(BrokerError, match="transaction 'attempts-0' is no longer open"):
        commit_all(given, [first])
    commit_all(given, [second])
    assert values(servers, topic) == ["a"]


def test_a_task_that_fails_aborts_its_transaction(servers: str) -> None:
    topic = create(servers, "failing")
    given = options(servers, topic=topic, transactionalIdPrefix="failing")

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(value=pa.array(["a" * 10_000] * 4000))  # enough to be sent before the next one
        raise RuntimeError("the query's own")

    with pytest.raises(RuntimeError, match="own"):
        write_task(rows(), ("value",), given, task=0)
    assert values(servers, topic) == []  # and no open transaction holds up the consumer


def run_batch(given: LiveWriteOptions, number: int, rows: list[list[str]], query: str = "q") -> list[Written]:
    """Run the tasks of a micro-batch without its commit."""
    mark = Mark(query=query, batch=number)
    return [
        write(batch(value=pa.array(each, pa.string())), given, task=task, mark=mark) for task, each in enumerate(rows)
    ]


def test_a_committed_batch_is_not_written_again(servers: str) -> None:
    topic = create(servers, "stream-whole")
    given = options(servers, topic=topic, transactionalIdPrefix="whole")
    rows = [["a"], [], ["b", "c"]]
    commit_batch(given, run_batch(given, 0, rows), 0, tasks=3)
    again = run_batch(given, 0, rows)
    assert [each.is_done for each in again] == [True, False, True]
    commit_batch(given, again, 0, tasks=3)
    other = [["a", "b"], ["c"], [], [], ["d"]]  # as planned anew: what is in Kafka stays
    commit_batch(given, run_batch(given, 0, other), 0, tasks=5)
    commit_batch(given, run_batch(given, 1, [["d"]]), 1, tasks=1)
    assert values(servers, topic) == ["a", "b", "c", "d"]
    with pytest.raises(OptionError, match="the checkpoint is older than the data in Kafka"):
        run_batch(given, 0, rows)
    commit_batch(given, run_batch(given, 0, [["e"]], query="another"), 0, tasks=1)
    assert values(servers, topic) == ["a", "b", "c", "d", "e"]


def test_a_partially_committed_batch_resumes(servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kwire.client import Producer

    topic = create(servers, "stream-part")
    given = options(servers, topic=topic, transactionalIdPrefix="part")
    rows = [["a"], ["b"], [], ["c"]]
    commits: list[str] = []
    really = Producer.commit

    def commit(self: Producer) -> None:
        if len(commits) == 1:
            raise KeyboardInterrupt  # the driver is killed between two transactions
        commits.append(self.transactional_id or "")
        really(self)

    monkeypatch.setattr(Producer, "commit", commit)
    with pytest.raises(KeyboardInterrupt):
        commit_batch(given, run_batch(given, 0, rows), 0, tasks=4)
    monkeypatch.undo()
    assert commits == ["part-0"]
    fewer = run_batch(given, 0, [["a", "b"], ["c"]])
    with pytest.raises(OptionError, match=r"batch 0 was committed in part, 1 of 4 tasks, and now has 2 tasks"):
        commit_batch(given, fewer, 0, tasks=2)
    abort_all(given, fewer)
    rest = run_batch(given, 0, rows)
    assert [each.is_done for each in rest] == [True, False, False, False]
    commit_batch(given, rest, 0, tasks=4)
    assert values(servers, topic) == ["a", "b", "c"]


def test_a_prefix_that_is_the_name_of_a_task_of_another_query_takes_nothing_from_it(servers: str) -> None:
    """The driver's group of `near-1` was the group of task 1 of `near`, whose mark it replaced."""
    topic = create(servers, "stream-near")
    one, other = (options(servers, topic=topic, transactionalIdPrefix=prefix) for prefix in ("near", "near-1"))
    rows = [["a"], ["b"]]
    commit_batch(one, run_batch(one, 0, rows), 0, tasks=2)
    commit_batch(other, run_batch(other, 3, [["x"]], query="other"), 3, tasks=1)
    again = run_batch(one, 0, rows)
    assert [each.is_done for each in again] == [True, True]
    commit_batch(one, again, 0, tasks=2)
    assert values(servers, topic) == ["a", "b", "x"]


def test_a_batch_whose_driver_an_earlier_release_marked_is_not_written_again(servers: str) -> None:
    topic = create(servers, "stream-earlier")
    given = options(servers, topic=topic, transactionalIdPrefix="earlier")
    rows = [["a"], [], ["b"]]
    commit_batch(given, run_batch(given, 0, rows), 0, tasks=3)
    with Client(servers) as client:
        mark = find_mark(client, driver_group("earlier"), "q")
        assert mark is not None
        replace_mark(client, "earlier", mark, (topic, 0))
        commit_offsets(client, driver_group("earlier"), {(topic, 0): 0}, "")
    commit_batch(given, run_batch(given, 0, [["a", "b"], ["c"]]), 0, tasks=2)
    assert values(servers, topic) == ["a", "b"]


# ---- options and columns


def test_options_equal_those_of_sparks_sink(servers: str) -> None:
    assert options(servers, topic=" orders ").topic == "orders"
    plain = options(servers, topic="t")
    assert (plain.transactional_prefix, plain.kafka["default.api.timeout.ms"]) == (None, "120000")
    assert options(servers, **{"kafka.acks": "1"}).kafka["enable.idempotence"] == "false"
    assert options(servers, **{"kafka.max.request.size": "5000"}).batch_bytes == 5000
    assert "secret" not in repr(options(servers, **{"kafka.sasl.password": "secret"}))
    prefixed = options(servers, **{"kafka.transactional.id": "p", "kafka.transaction.timeout.ms": "5000"})
    assert (prefixed.transactional_prefix, prefixed.kafka["transaction.timeout.ms"]) == ("p", "5000")
    assert options(servers, transactionalIdPrefix="p").kafka["transaction.timeout.ms"] == "900000"
    wrong = [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers' must be specified"),
        ({"transactional": "true"}, "requires transactionalIdPrefix"),
        ({"transactional": "false", "transactionalIdPrefix": "p"}, "remove one of them"),
        ({"transactionalIdPrefix": "p", "kafka.transactional.id": "q"}, "differ; remove one"),
        ({"transactionalIdPrefix": "p", "kafka.acks": "1"}, "transactions require acks all"),
        ({"transactionalIdPrefix": "p", "kafka.enable.idempotence": "false"}, "transactions require idempotence"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "idempotence requires acks all"),
        ({"kafka.value.serializer": "x"}, "values are written unchanged"),
        ({"subscribe": "t"}, "'subscribe' is not supported: it applies to reading"),
        ({"topics": "t"}, r"Unknown option 'topics' \(did you mean 'topic'\?\)"),
        ({"kafka.compression.type": "brotli"}, "one of none, gzip"),
        ({"kafka.batch.size": "0"}, "must be positive"),
    ]
    for given, what in wrong:
        with pytest.raises(OptionError, match=what):
            options(servers, **given)


def test_columns_equal_those_of_sparks_sink(servers: str) -> None:
    from pyspark.sql import types as t

    headers = t.ArrayType(t.StructType([t.StructField("key", t.StringType()), t.StructField("value", t.BinaryType())]))
    kinds = {
        "str": t.StringType(),
        "bin": t.BinaryType(),
        "int": t.IntegerType(),
        "long": t.LongType(),
        "headers": headers,
        "map": t.MapType(t.StringType(), t.BinaryType()),
    }

    def schema(text: str) -> t.StructType:
        return t.StructType([t.StructField(name, kinds[kind]) for name, kind in map(str.split, text.split(", "))])

    def columns(text: str, **more: str) -> tuple[str, ...]:
        source = KafkaLiveSource({"kafka.bootstrap.servers": servers, **more})
        return source.writer(schema(text), overwrite=False).columns

    create(servers, "columns")
    everything = "value str, offset long, key bin, topic str, partition int"
    assert columns(everything) == ("key", "value", "topic", "partition")
    assert columns(everything, topic="columns") == ("key", "value", "partition")
    assert columns("value bin, headers headers", topic="columns") == ("value", "headers")
    wrong = [
        ("key str, topic str", "Required attribute 'value' not found"),
        ("Value str, topic str", r"did you mean 'Value'\?"),
        ("value str", "topic option required when no 'topic' attribute is present"),
        ("value int, topic str", "value attribute unsupported type int: it must be string or binary"),
        ("value str, topic bin", "topic attribute unsupported type binary: it must be string;"),
        ("value str, topic str, partition str", "partition attribute unsupported type string"),
        ("value str, topic str, headers map", "headers attribute unsupported type map"),
    ]
    for text, what in wrong:
        with pytest.raises(OptionError, match=what):
            columns(text)
    with pytest.raises(OptionError, match="Save mode Overwrite is not allowed"):
        KafkaLiveSource({"kafka.bootstrap.servers": "localhost:1"}).writer(schema("value int"), overwrite=True)


# ---- through Spark


def test_spark_writes_batches_and_rejects_invalid_ones_before_writing(spark: SparkSession, servers: str) -> None:
    topic = create(servers, "spark-batch", 3)
    frame = spark.range(1000, numPartitions=3).selectExpr(
        "CAST(id % 10 AS string) AS key", "CAST(id AS string) AS value"
    )
    kafka = {"kafka.bootstrap.servers": servers, "topic": topic}
    frame.write.format("kafka-live").options(**kafka).mode("append").save()
    committed = {**kafka, "transactional": "true", "transactionalIdPrefix": "spark-batch"}
    frame.write.format("kafka-live").options(**committed).mode("append").save()
    found = consume(servers, topic)
    assert sorted(int(message.value()) for message in found) == sorted([*range(1000)] * 2)
    assert len({(message.key(), message.partition()) for message in found}) == 10
    with pytest.raises(Exception, match="value attribute unsupported type bigint"):
        spark.range(1).selectExpr("id AS value").write.format("kafka-live").options(**kafka).mode("append").save()
    broken = frame.selectExpr("key", "IF(value = '999', raise_error('no'), value) AS value")
    with pytest.raises(Exception, match="no"):
        broken.write.format("kafka-live").options(**committed).mode("append").save()
    assert len(consume(servers, topic)) == 2000


def test_a_missing_topic_is_rejected_before_tasks_start(servers: str) -> None:
    create(servers, "orders.paid")
    from pyspark.sql.types import StructType

    schema = StructType().add("value", "binary")
    kafka = {"kafka.bootstrap.servers": servers, "transactionalIdPrefix": "p"}
    with pytest.raises(BrokerError, match=r"topic 'order.paid' does not exist \(did you mean 'orders.paid'\?\)"):
        KafkaLiveSource({**kafka, "topic": "order.paid"}).writer(schema, overwrite=False)
    KafkaLiveSource({**kafka, "topic": "orders.paid"}).writer(schema, overwrite=False)


def start_copy(spark: SparkSession, servers: str, checkpoint: str) -> StreamingQuery:
    """Start a transactional stream from topic `from` to topic `to`, up to the available records."""
    return (
        spark.readStream.format("kafka-live")
        .options(**{"kafka.bootstrap.servers": servers, "subscribe": "from"})
        .options(startingOffsets="earliest", maxOffsetsPerTrigger=400)
        .load()
        .select("key", "value")
        .writeStream.format("kafka-live")
        .options(**{"kafka.bootstrap.servers": servers, "topic": "to", "transactionalIdPrefix": "copy"})
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )


KILLED = """
import sys
from pyspark.sql import SparkSession
from tests.spark.live.test_sink import start_copy
spark = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
    .config("spark.log.level", "ERROR").getOrCreate()
)
start_copy(spark, *sys.argv[1:]).awaitTermination()
"""


@pytest.mark.slow
def test_a_killed_stream_writes_every_row_once(servers: str, tmp_path: Path, spark: SparkSession) -> None:
    for name in ("from", "to"):
        create(servers, name, 2)
    rows = [f"{n:05d}" for n in range(1600)]
    write(batch(value=pa.array(rows), partition=[n % 2 for n in range(len(rows))]), options(servers, topic="from"))
    checkpoint = str(tmp_path / "checkpoint")
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, servers, checkpoint],
        env={**environment_of_a_new_session(), "PYTHONPATH": str(Path(__file__).parents[3])},
        start_new_session=True,
    )
    with Client(servers) as client:
        until(lambda: stable_offset(client) >= 400 or process.poll() is not None)
        with contextlib.suppress(ProcessLookupError):  # it was quicker than this test
            os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() in (0, -signal.SIGKILL)
    query = start_copy(spark, servers, checkpoint)
    query.awaitTermination(int(HANG_S))
    assert query.exception() is None
    assert values(servers, "to") == rows


def stable_offset(client: Client) -> int:
    """Return the last stable offset of the topic `to`."""
    found = client.list_offsets({("to", n): LATEST_TIMESTAMP for n in (0, 1)}, isolation="read_committed")
    return sum(each.offset for each in found.values())


@pytest.mark.slow
def test_rows_of_a_repeated_update_batch_are_written_once(spark: SparkSession, servers: str, tmp_path: Path) -> None:
    # Spark refuses output mode update for Python sinks; foreachBatch takes it, but a batch write knew no micro-batch.
    create(servers, "updates.in")
    create(servers, "updates.out")

    def write_counts(rows: DataFrame, batch: int) -> None:
        (
            rows.selectExpr("CAST(key AS string) AS key", "CAST(count AS string) AS value")
            .write.format("kafka-live")
            .options(**{"kafka.bootstrap.servers": servers, "topic": "updates.out"})
            .options(transactionalIdPrefix="updates", oncePerBatch=True)
            .mode("append")
            .save()
        )

    def run() -> None:
        query = (
            spark.readStream.format("kafka-live")
            .options(**{"kafka.bootstrap.servers": servers, "subscribe": "updates.in", "startingOffsets": "earliest"})
            .load()
            .groupBy("key")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(write_counts)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(int(HANG_S))
        assert query.exception() is None

    write(batch(key=[b"a", b"b", b"a"], value=[b"1", b"2", b"3"]), options(servers, topic="updates.in"))
    run()
    assert values(servers, "updates.out") == ["1", "2"]
    write(batch(key=[b"a"], value=[b"4"]), options(servers, topic="updates.in"))
    run()
    assert values(servers, "updates.out") == ["1", "2", "3"]
    commits = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    for path in (commits[-1], commits[-1].with_name(f".{commits[-1].name}.crc")):
        path.unlink(missing_ok=True)  # as if the driver had been killed before it noted the batch
    run()
    assert values(servers, "updates.out") == ["1", "2", "3"]


def test_exactly_once_requires_a_prefix_and_a_micro_batch(spark: SparkSession, servers: str) -> None:
    with pytest.raises(OptionError, match="'oncePerBatch': requires transactionalIdPrefix"):
        options(servers, topic="t", oncePerBatch="true")
    create(servers, "no.batch")
    given = {"kafka.bootstrap.servers": servers, "topic": "no.batch", "transactionalIdPrefix": "no-batch"}
    rows = spark.range(1).selectExpr("CAST(id AS string) AS value")
    with pytest.raises(Exception, match="this task belongs to no micro-batch"):
        rows.write.format("kafka-live").options(**given, oncePerBatch=True).mode("append").save()
