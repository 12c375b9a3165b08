"""Tasks that read several partitions: as many rows as in a task each, in fewer requests."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource")

from tests.spark.live.test_source import Cluster

from kwire.broker import Broker
from kwire.client.broker_connection import BrokerConnection
from kwire.errors import LogError
from kwire.spark.live import reading
from kwire.spark.live.options import parse_options
from kwire.spark.live.planning import ONE_EACH, LivePartition, plan_batch
from kwire.spark.live.reading import read_partition

PARTITIONS = 3 * ONE_EACH
COLUMNS = ("topic", "partition", "offset", "value")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Topics with 0 to 5 records a partition, and one partition with large ones."""
    with Broker() as broker:
        found = Cluster(broker.bootstrap_servers)
        for topic in ("few", "more"):
            found.create(topic, PARTITIONS)
            for partition in range(PARTITIONS):
                if records := partition % 6:
                    found.write(topic, partition, [f"{topic} {partition} {n}" for n in range(records)])
        for _ in range(10):
            found.write("few", 0, ["x" * 100_000])
        yield found
        found.client.close()
        reading.close_clients()


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of requests by name."""
    sent: Counter[str] = Counter()
    send = BrokerConnection.send

    def count(self: BrokerConnection, message: Any, **rest: Any) -> None:
        sent[type(message).__name__] += 1
        send(self, message, **rest)

    monkeypatch.setattr(BrokerConnection, "send", count)
    return sent


def plan(cluster: Cluster, **options: object) -> tuple[list[LivePartition], Any]:
    given = {"kafka.bootstrap.servers": cluster.servers, "subscribe": "few,more"}
    parsed = parse_options(given | {name: str(value) for name, value in options.items()}, "batch")
    return plan_batch(parsed), parsed


def rows(tasks: list[LivePartition], options: Any) -> list[tuple[Any, ...]]:
    return [
        row
        for task in tasks
        for batch in read_partition(task, COLUMNS, options)
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


@pytest.mark.slow
def test_many_partitions_share_tasks_and_requests(cluster: Cluster, requests: Counter[str]) -> None:
    one_each, options = plan(cluster, minPartitions=1)
    assert all(len(task.ranges) == 1 for task in one_each)
    assert len(one_each) == 2 * PARTITIONS * 5 // 6 + 1
    requests.clear()
    tasks, options = plan(cluster)
    assert requests["ListOffsetsRequest"] == 2  # earliest and latest, not one for each partition
    assert ONE_EACH < len(tasks) < len(one_each)
    assert [each for task in tasks for each in task.ranges] == [each for task in one_each for each in task.ranges]
    everything = plan(cluster, openCostInBytes="1m", maxPartitionBytes="1g", subscribe="more")[0][0]
    requests.clear()
    together = rows([everything], options)
    assert requests["FetchRequest"] < 10
    apart = rows(one_each, options)
    wanted = [row for row in apart if (row[0], row[1]) in {(each.topic, each.partition) for each in everything.ranges}]
    assert sorted(together) == sorted(wanted)
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset, _ in rows(tasks, options):
        offsets.setdefault((topic, partition), []).append(offset)
    assert all(each == list(range(len(each))) for each in offsets.values())
    assert sum(map(len, offsets.values())) == len(apart)


@pytest.mark.slow
def test_small_responses_reach_every_partition(cluster: Cluster) -> None:
    # The large records of the first partition fill each response.
    tasks, options = plan(cluster, **{"kafka.max.partition.fetch.bytes": 150_000, "openCostInBytes": 0})
    assert len(rows(tasks, options)) == len(rows(*plan(cluster, minPartitions=1)))


@pytest.mark.parametrize("topics", ["few", "few,more"])
def test_up_to_64_partitions_are_a_task_each(cluster: Cluster, topics: str) -> None:
    named = {topic: list(range(ONE_EACH // 2)) for topic in topics.split(",")}
    given = {"kafka.bootstrap.servers": cluster.servers, "assign": str(named).replace("'", '"')}
    assert {len(task.ranges) for task in plan_batch(parse_options(given, "batch"))} == {1}


@pytest.mark.slow
def test_a_start_timestamp_is_looked_up_for_all_partitions_at_once(cluster: Cluster, requests: Counter[str]) -> None:
    plan(cluster, startingTimestamp=1, endingTimestamp=1 << 50, startingOffsetsByTimestampStrategy="latest")
    assert requests["ListOffsetsRequest"] == 4


@pytest.mark.slow
def test_deleted_records_are_data_loss_in_packed_tasks(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.create("cut", PARTITIONS)
    for partition in range(PARTITIONS):
        cluster.write("cut", partition, ["a", "b", "c"])
    tasks, strict = plan(cluster, subscribe="cut")
    _, lenient = plan(cluster, subscribe="cut", failOnDataLoss="false")
    assert len(tasks[0].ranges) > 1
    assert len(rows(tasks, strict)) == 3 * PARTITIONS
    cluster.delete_before("cut", 1, 2)
    with pytest.raises(LogError, match="offsets from 0 on were deleted"):
        rows(tasks, strict)
    with caplog.at_level(logging.WARNING):
        found = rows(tasks, lenient)
    assert len(found) == 3 * PARTITIONS - 2
    assert [row[2] for row in found if row[1] == 1] == [2]
    cluster.delete("cut")
    cluster.create("cut", PARTITIONS)
    with pytest.raises(LogError, match="topic 'cut' was deleted and created again after this task was planned"):
        rows(tasks[:1], strict)
