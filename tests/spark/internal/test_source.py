"""`kafka-internal`: rows equal the records of kwire.log.topics."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.log.internal.dumps import batch, keyed, log_of
from tests.log.writing import with_times

from kwire.errors import LogError, OptionError
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.group_rows import LogEnds, group_row
from kwire.internal_topics.record_rows import record_row
from kwire.log import LogDirectory
from kwire.log.topics import read_group_records, replay_cluster, replay_groups
from kwire.messages import registry
from kwire.spark.arrow_types import arrow_type
from kwire.spark.internal.columns import COLUMNS, HISTORY_COLUMNS, TOPICS
from kwire.spark.internal.options import column_types, parse_options
from kwire.spark.internal.source import InternalReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, path: Path | str, **options: Any) -> DataFrame:
    texts = {key: str(value) for key, value in options.items()}
    return spark.read.format("kafka-internal").options(**texts).load(str(path))


def read(path: Path, **options: Any) -> list[dict[str, Any]]:
    """Read rows without Spark, through pickle as Spark sends them."""
    given = parse_options({"path": str(path)} | {key: str(value) for key, value in options.items()})
    reader = pickle.loads(pickle.dumps(InternalReader(given)))
    partitions = pickle.loads(pickle.dumps(reader.partitions()))
    return [row for partition in partitions for found in reader.read(partition) for row in found.to_pylist()]


# ---- through Spark


@pytest.mark.slow
def test_groups_members_and_offsets_are_found_by_name(spark: SparkSession, kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    groups = load(spark, data, kind="groups")
    assert {row["group"]: (row["state"], row["lag"]) for row in groups.collect()} == {
        name: (group.state, group_row(group, LogEnds(LogDirectory(data)))["lag"])
        for name, group in replay_groups(LogDirectory(data)).groups.items()
    }
    assert groups.rdd.getNumPartitions() == 3
    lag = load(spark, data, kind="offsets").where("topic = 'orders'").groupBy("group").sum("lag").collect()
    assert {row["group"]: row["sum(lag)"] for row in lag} == {
        "g-admin": 7008,
        "g-classic": 15311,
        "g-new": 16457,
        "g-static": 12712,
    }
    nested = load(spark, data, kind="members", columns="group,assigned").selectExpr("assigned[0].partitions[2] AS last")
    assert [row["last"] for row in nested.collect()] == [2]


def test_history_has_every_record_with_its_json(spark: SparkSession, kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    frame = load(spark, data, topic="__consumer_offsets", mode="history")
    assert frame.count() == 139
    commits = frame.where("kind = 'OffsetCommit' AND NOT is_tombstone").selectExpr(
        "get_json_object(key, '$.group') AS group", "CAST(get_json_object(value, '$.offset') AS BIGINT) AS offset"
    )
    assert commits.where("group = 'g-static'").selectExpr("max(offset) AS last").collect()[0]["last"] == 844


def test_a_schema_selects_columns(spark: SparkSession, kafka_logs: dict[str, Path]) -> None:
    reader = spark.read.format("kafka-internal").option("kind", "transactions")
    frame = reader.schema("state string, transactional_id string").load(str(kafka_logs["modern"] / "data"))
    assert ("Ongoing", "txn-tx-0") in map(tuple, frame.collect())
    with pytest.raises(Exception, match="column 'state' is of type string, not int"):
        reader.schema("state int").load(str(kafka_logs["modern"] / "data")).collect()


# ---- without


@pytest.mark.parametrize("kind", list(COLUMNS))
@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_rows_of_every_kind_match_their_schema(archive: str, kind: str, kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs[archive] / "data"
    if archive == "modern" and kind == "share":
        with pytest.raises(LogError, match="no partition of '__share_group_state'"):
            read(data, kind=kind)
        return
    rows = read(data, kind=kind)
    assert bool(rows) == (kind != "tokens")
    if TOPICS[kind] == "__cluster_metadata":
        expected = list(cluster_rows(replay_cluster(LogDirectory(data)), ClusterPart(kind)))
        assert rows == expected
        assert not expected or set(expected[0]) == set(COLUMNS[kind])


@pytest.mark.parametrize("topic", sorted(set(TOPICS.values())))
def test_every_internal_topic_has_a_history(topic: str, kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern44"] / "data"
    rows = read(data, topic=topic, mode="history")
    assert len(rows) > 10
    assert set(rows[0]) == set(HISTORY_COLUMNS)
    if topic == "__consumer_offsets":
        for row, record in zip(rows, read_group_records(LogDirectory(data)), strict=True):
            expected = record_row(record)
            assert (None if row["key"] is None else json.loads(row["key"])) == expected["key"]
            assert (None if row["value"] is None else json.loads(row["value"])) == expected["value"]
            assert row["timestamp"].timestamp() * 1000 == pytest.approx(expected["timestamp"], abs=0.5)


def test_the_state_at_an_earlier_time_is_read(kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    (group,) = [
        row for row in read(data / "__consumer_offsets-1", kind="groups", atOffset=48) if row["group"] == "g-new"
    ]
    assert (group["state"], group["lag"]) == ("Reconciling", None)
    assert [(row["topic"], row["partitions"]) for row in read(data, kind="topics", atOffset=25)] == [("orders", 3)]
    assert [row["topic"] for row in read(data, kind="topics", atTime=1795235259341)] == ["orders"]
    with pytest.raises(OptionError, match="__consumer_offsets has 3 here"):
        read(data, kind="groups", atOffset=48)


def test_unreadable_records_fail_the_state_and_are_rows_of_the_history(tmp_path: Path) -> None:
    key = registry.get("OffsetCommitKey")(group="g", topic="t", partition=0)  # type: ignore[call-arg]
    value: Any = registry.get("OffsetCommitValue")
    good = keyed(key, value(offset=5, commit_timestamp=2**62), 3)
    data = log_of(tmp_path, "__consumer_offsets-0", batch([good, (good[0], b"\0\3\0")], 0))
    with pytest.raises(LogError, match="1 records of __consumer_offsets-0 cannot be read, the first at offset 1"):
        read(data, kind="offsets")
    (row,) = read(data, kind="offsets", failOnDataLoss=False)
    assert (row["offset"], row["commit_timestamp"]) == (5, None)  # a time beyond any calendar
    assert [each["error_position"] for each in read(data, kind="offsets", mode="history")] == [None, 2]


def test_secrets_are_hidden_by_default(kafka_logs: dict[str, Path]) -> None:
    data = kafka_logs["modern"] / "data"
    assert {row["salt"] for row in read(data, kind="users")} == {"[hidden]"}
    assert {row["salt"] for row in read(data, kind="users", redact=False)} == {"dGVzdC1zYWx0LTAxMjM0NTY="}
    assert "dGVzdC1z" not in str(read(data, kind="users", mode="history"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "Option 'kind' must be specified"),
        ({"kind": "group"}, "expected one of groups, .* got 'group' .did you mean 'groups'"),
        ({"topic": "orders"}, "Option 'topic': expected one of __consumer_offsets"),
        ({"topic": "__cluster_metadata"}, "must be specified for __cluster_metadata: one of brokers"),
        ({"kind": "users", "topic": "__consumer_offsets"}, "users are in __cluster_metadata"),
        ({"kind": "users", "mode": "now"}, "Option 'mode': expected one of current, history"),
        ({"kind": "users", "atTime": "5", "atOffset": "5"}, "Only one of"),
        ({"kind": "users", "atTime": "yesterday"}, "expected milliseconds since 1970"),
        ({"kind": "users", "atOffset": "-1"}, "expected an offset"),
        ({"kind": "users", "startingOffsets": "5"}, "Unknown option 'startingoffsets'"),
        ({"kind": "users", "columns": "user,name"}, "unknown column 'name'"),
        ({"kind": "users", "columns": "user,user"}, "duplicate column in user, user"),
    ],
)
def test_invalid_options_are_rejected_with_a_remedy(options: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        column_types(parse_options({"path": "/logs"} | options))


def test_a_topic_without_a_kind_reads_its_first_one() -> None:
    assert parse_options({"path": "/logs", "topic": "__consumer_offsets"}).kind == "groups"
    assert parse_options({"path": "/logs", "topic": "__cluster_metadata", "mode": "history"}).kind is None


def test_columns_have_their_arrow_types() -> None:
    assert str(arrow_type("array<struct<a:string,b:array<struct<c:int,d:bigint>>>>")) == (
        "list<element: struct<a: string, b: list<element: struct<c: int32, d: int64>>>>"
    )


def test_times_that_spark_does_not_have_are_null_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    last = 253_402_300_799_999
    source = with_times(tmp_path / "data", [last, last + 1, 1 << 60, -1], topic="__consumer_offsets")
    rows = read(source, topic="__consumer_offsets", mode="history")
    assert [row["timestamp"] and int(row["timestamp"].timestamp()) for row in rows] == [last // 1000, None, None, None]
    assert [each.getMessage() for each in caplog.records] == [
        f"__consumer_offsets-0: timestamp {last + 1} ms is outside of the years 1970 to 9999 and becomes null, like "
        "others of this task"
    ]
