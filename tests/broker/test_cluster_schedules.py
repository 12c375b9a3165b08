"""Random schedules of moves, stops, crashes, starts and losses, against a model of what must be in the logs.

The raw client produces idempotently: it follows the leader that an error names, and sends some batches again after
other acts, as a client does whose response was lost. The slow tests have the same with more seeds.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Cluster
from kwire.errors import OptionError
from kwire.messages.error_codes import ErrorCode
from kwire.records import BatchBuilder
from tests.broker.schedules import run_schedules
from tests.broker.wire import RawClient

NODES, PARTITIONS, ACTS = 3, 3, 25
TRIES = 20
SEEDS = int(os.environ.get("KWIRE_CLUSTER_SCHEDULES", "1000"))
"""Seeds of the slow test."""
SESSION_MS = 600_000
"""Longer than a schedule takes on any machine: the sessions of crashed nodes end only when the clock is advanced."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=NODES, keep_requests=0, broker_session_timeout_ms=SESSION_MS) as running:
        yield running


class Schedule:
    """One schedule. expected: the values that each partition must have, in order."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.expected: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
        self.producers = {index: (seed * 1000 + index, 0) for index in range(PARTITIONS)}
        """(producer id, next sequence) by partition."""
        self.sent: list[tuple[int, bytes, int]] = []
        """(partition, batch, offset) of acknowledged batches that may be sent again."""
        self.epochs = dict.fromkeys(range(PARTITIONS), 0)
        self.clients: dict[int, RawClient] = {}
        self.factor = self.random.choice([1, 2, 3])
        self.crashed: set[int] = set()
        """Nodes whose sessions have not ended."""

    def run(self) -> None:
        self.cluster.create_topic("t", PARTITIONS, replication_factor=self.factor, retention_ms=-1)
        acts = [self.produce] * 5 + [self.move, self.stop, self.crash, self.start, self.start, self.again, self.lose]
        for _ in range(ACTS):
            self.random.choice(acts)()
            self.check_state()
        for node in self.cluster.nodes:
            if not node.is_running:
                self.cluster.start(node.id)
        self.crashed.clear()
        self.check_state()
        for client in self.clients.values():
            client.sock.close()
        for index, values in self.expected.items():
            assert [record.value for record in self.cluster.records("t", index)] == values

    def running(self) -> list[int]:
        return [node.id for node in self.cluster.nodes if node.is_running]

    def check_state(self) -> None:
        """Check what holds between leaders, ISR, replicas and epochs at any time."""
        running = set(self.running()) | self.crashed  # as far as the controller knows
        states = self.cluster.call(
            lambda node: {index: each.state for index, each in node.topics.get("t").partitions.items()}  # type: ignore[union-attr]
        )
        for index, state in states.items():
            assert set(state.isr) <= set(state.replicas)
            assert state.isr
            assert state.leader_epoch >= self.epochs[index]
            self.epochs[index] = state.leader_epoch
            if state.leader == -1:
                assert not running & set(state.isr)
            else:
                assert state.leader in running & set(state.isr)
                assert set(state.isr) == running & set(state.replicas)

    # --- acts

    def produce(self) -> None:
        index = self.random.randrange(PARTITIONS)
        producer_id, sequence = self.producers[index]
        value = b"%d-%d-%d" % (index, producer_id, sequence)
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        builder.append(None, value, timestamp=time.time_ns() // 1_000_000)  # an old producer would expire
        batch = builder.build()
        offset = self.send(index, batch)
        if offset is not None:
            assert offset == len(self.expected[index])
            self.expected[index].append(value)
            self.producers[index] = producer_id, sequence + 1
            self.sent.append((index, batch, offset))

    def again(self) -> None:
        """Send the newest batch of a partition again; it must not be written twice."""
        index = self.random.randrange(PARTITIONS)
        newest = next(((batch, offset) for each, batch, offset in reversed(self.sent) if each == index), None)
        if newest is not None:
            assert self.send(index, newest[0]) in (None, newest[1])

    def send(self, index: int, batch: bytes) -> int | None:
        """Produce to a random node and follow the leaders that errors name; None while the partition is offline."""
        cls = messages.ProduceRequest
        topic = cls.TopicProduceData(name="t", partition_data=[cls.PartitionProduceData(index=index, records=batch)])
        node = self.random.choice(self.running())
        for _ in range(TRIES):
            response = self.ask(node, cls(acks=-1, timeout_ms=1000, topic_data=[topic]))
            result = response.responses[0].partition_responses[0]
            if not result.error_code:
                return int(result.base_offset)
            assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            node = result.current_leader.leader_id
            if node == -1:
                return None
            if node in self.crashed:  # refuses connections, until its session ends and another node leads
                self.end_sessions()
                node = self.random.choice(self.running())
                continue
            assert [each.node_id for each in response.node_endpoints] == [node]
        raise AssertionError("no node leads")

    def ask(self, node: int, request: Any) -> Any:
        if node not in self.clients:
            self.clients[node] = RawClient(self.cluster, node=node)
        return self.clients[node].ask(request, 10)

    def move(self) -> None:
        with contextlib.suppress(OptionError):  # there is no other replica in sync
            self.cluster.move_leader("t", self.random.randrange(PARTITIONS))

    def stop(self) -> None:
        running = self.running()
        if len(running) > 1:
            node = self.random.choice(running)
            self.cluster.stop(node)
            if node in self.clients:
                assert self.clients[node].is_closed()
                self.clients.pop(node).sock.close()

    def crash(self) -> None:
        """Kill a node; half of the time, its session ends before anything else happens."""
        running = self.running()
        if len(running) > 1:
            node = self.random.choice(running)
            self.cluster.crash(node)
            if node in self.clients:
                assert self.clients[node].is_closed()
                self.clients.pop(node).sock.close()
            self.crashed.add(node)
            if self.random.random() < 0.5:
                self.end_sessions()

    def end_sessions(self) -> None:
        self.cluster.advance(SESSION_MS)
        self.crashed.clear()

    def start(self) -> None:
        stopped = [node.id for node in self.cluster.nodes if not node.is_running]
        if stopped:
            node = self.random.choice(stopped)
            self.cluster.start(node)
            self.crashed.discard(node)

    def lose(self) -> None:
        index = self.random.randrange(PARTITIONS)
        if not self.expected[index]:
            return
        count = self.random.randint(1, min(3, len(self.expected[index])))
        state = self.cluster.call(lambda node: node.topics.partition("t", index).state)  # type: ignore[union-attr]
        if state.leader == -1 or not set(state.replicas) & set(self.running()):
            with pytest.raises(OptionError, match="is offline"):
                self.cluster.lose_records("t", index, count)
            return
        end = self.cluster.lose_records("t", index, count)
        del self.expected[index][-count:]
        assert end == len(self.expected[index])
        self.producers[index] = self.producers[index][0] + 100, 0  # a new producer: the sequences are lost too
        self.sent = [each for each in self.sent if each[0] != index]


@pytest.mark.parametrize("seed", range(8))
def test_logs_have_what_was_acknowledged(cluster: Cluster, seed: int) -> None:
    run_schedules(Schedule, cluster, [seed])


@pytest.mark.slow
def test_logs_have_what_was_acknowledged_in_many_schedules(cluster: Cluster) -> None:
    run_schedules(Schedule, cluster, range(100, 100 + SEEDS))
