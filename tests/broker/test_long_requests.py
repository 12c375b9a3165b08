"""Requests that create many partitions are handled in slices, and delay no other client."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from kwire import messages
from kwire.broker import Broker
from kwire.broker.network import long_requests
from kwire.broker.network.long_requests import LongRequests, complete
from kwire.broker.node import Node
from kwire.log import LogDirectory
from kwire.protocol.error_codes import ErrorCode
from kwire.storage.checkpoints import PARTITION_METADATA
from tests.broker.test_connection import asks, produces
from tests.broker.wire import RawClient
from tests.waiting import until

MANY = 40


def creates(*names: str, partitions: int = MANY) -> messages.CreateTopicsRequest:
    cls = messages.CreateTopicsRequest
    topics = [cls.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return cls(topics=topics, timeout_ms=1000)


def open_partitions(node: Node, topic: str) -> int:
    found = node.topics.get(topic)
    return 0 if found is None else sum(partition.log is not None for partition in found.partitions.values())


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve other clients after each partition."""
    monkeypatch.setattr(long_requests, "SLICE_S", 0.0)


def test_other_clients_are_served_between_slices(broker: Broker) -> None:
    go_on = False

    def steps() -> Generator[None, None, str]:
        while not go_on:
            yield
        return "done"

    async def run(node: Node) -> str:
        return await asyncio.ensure_future(node.long_requests.run(steps()))  # type: ignore[arg-type]

    result: list[asyncio.Task[str]] = []
    broker.call(lambda node: result.append(asyncio.get_running_loop().create_task(run(node))))
    with RawClient(broker) as other:
        for _ in range(3):
            assert other.ask(asks("t"), 12).topics[0].name == "t"
        assert not result[0].done()
        go_on = True
        until(result[0].done)
    assert result[0].result() == "done"


def test_many_partitions_are_created(broker: Broker) -> None:
    with RawClient(broker) as client:
        response = client.ask(creates("one", "two"), 7)
        assert [(each.error_code, each.num_partitions) for each in response.topics] == [(0, MANY)] * 2
        assert broker.call(lambda node: (open_partitions(node, "one"), open_partitions(node, "two"))) == (MANY, MANY)
        more = messages.CreatePartitionsRequest
        topic = more.CreatePartitionsTopic(name="one", count=2 * MANY, assignments=None)
        assert client.ask(more(topics=[topic], timeout_ms=1000), 3).results[0].error_code == 0
        assert broker.call(lambda node: open_partitions(node, "one")) == 2 * MANY
        repeated = client.ask(creates("one"), 7).topics[0]
        assert repeated.error_code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_client_that_disconnects_does_not_stop_the_creation(broker: Broker) -> None:
    with RawClient(broker) as client:
        client.send(creates("abandoned"), 7)
        until(lambda: broker.call(lambda node: open_partitions(node, "abandoned")) > 0)
    until(lambda: broker.call(lambda node: open_partitions(node, "abandoned")) == MANY)


def test_partitions_have_no_leader_until_their_log_is_open(broker: Broker) -> None:
    """Kafka's broker answers NOT_LEADER_OR_FOLLOWER until it has applied the metadata."""

    def begin(node: Node) -> Generator[None, None, object]:
        steps = node.controller.creating_topic("begun", 2, {}, 1)
        next(steps)
        return steps

    steps = broker.call(begin)
    with RawClient(broker) as client:
        codes = []
        for partition in range(2):
            request = produces("begun", b"x")
            request.topic_data[0].partition_data[0].index = partition
            codes.append(client.ask(request, 8).responses[0].partition_responses[0].error_code)
        assert codes == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        broker.call(lambda _: complete(steps))
        assert client.ask(request, 8).responses[0].partition_responses[0].error_code == 0


def test_a_topic_deleted_during_its_creation_leaves_no_logs(broker: Broker) -> None:
    def delete_and_finish(node: Node) -> set[str]:
        steps = node.controller.creating_topic("gone", 5, {}, 1)
        next(steps)
        topic = node.topics.get("gone")
        assert topic is not None
        node.controller.delete_topic(topic)
        complete(steps)
        return {name for name, _ in node.log_manager.logs}

    assert "gone" not in broker.call(delete_and_finish)


def test_a_step_that_fails_fails_the_request() -> None:
    def steps() -> Generator[None, None, str]:
        yield
        yield
        raise ValueError("full")

    async def run() -> object:
        return await LongRequests().run(steps())  # type: ignore[misc]

    with pytest.raises(ValueError, match="full"):
        asyncio.run(run())


@pytest.mark.parametrize("left", [None, b""])
def test_a_topic_id_that_a_crash_lost_is_written_again(tmp_path: Path, left: bytes | None) -> None:
    """partition.metadata is not synced when a topic is created: the metadata log has the id."""
    with Broker(data_dir=tmp_path) as broker, RawClient(broker) as client:
        topic_id = client.ask(creates("t", partitions=1), 7).topics[0].topic_id
    path = tmp_path / "t-0" / PARTITION_METADATA
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    with Broker(data_dir=tmp_path):
        pass
    assert LogDirectory(tmp_path)["t", 0].topic_id == topic_id
