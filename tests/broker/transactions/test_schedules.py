"""Random schedules of transactions beside moves, stops, crashes, starts and timeouts, against a model of the outcomes.

The raw client commits as Kafka's clients do in transaction version 2: it asks again after errors that may be retried,
also at other nodes, and sends some EndTxn requests again, as a client does whose response was lost. In the end, all
nodes run, no transaction is open or undecided, and what was committed is visible. The slow test has more seeds.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kwire import messages
from kwire.broker import Cluster
from kwire.broker.node import Node
from kwire.broker.stored_records import batches_of
from kwire.broker.transactions import TransactionState
from kwire.errors import OptionError
from kwire.messages.error_codes import ErrorCode
from kwire.records import BatchBuilder
from tests.broker.schedules import run_schedules
from tests.broker.wire import RawClient

NODES, PARTITIONS, ACTS = 3, 3, 40
TRIES = 20
SEEDS = int(os.environ.get("KWIRE_CLUSTER_SCHEDULES", "300"))
"""Seeds of the slow test."""
SESSION_MS = 600_000
"""Longer than a schedule takes on any machine: the sessions of crashed nodes end only when the clock is advanced."""
TIMEOUT_MS, CHECK_MS = 30_000, 10_000
"""The timeout of transactions, and the time between two checks of it."""
IDS = ("a", "b", "c", "d")
GROUP_KEY, TRANSACTION_KEY = 0, 1
COMMIT_MARKER = b"\0\0\0\1"
RETRIED = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
FENCED = {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH}
FINAL = {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=NODES, keep_requests=0, broker_session_timeout_ms=SESSION_MS) as running:
        yield running


class Producer:
    """A transactional producer; its group has its id. values: of the open transaction, in order, by partition.

    offset: committed in the open transaction; may_be_fenced: since the clock passed the timeout of a transaction.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.id, self.epoch = -1, -1
        self.may_be_fenced = False
        self.begin()

    def begin(self) -> None:
        self.values: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
        self.offset: int | None = None

    @property
    def is_open(self) -> bool:
        return self.offset is not None or any(self.values.values())


class Schedule:
    """One schedule. committed: the values of each partition that must be visible; offsets: of each group."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.producers = [Producer(name) for name in IDS]
        self.committed: dict[int, set[bytes]] = {index: set() for index in range(PARTITIONS)}
        self.offsets = dict.fromkeys(IDS, -1)
        self.clients: dict[int, RawClient] = {}
        self.factor = self.random.choice([1, 2, 3])
        self.crashed: set[int] = set()
        """Nodes whose sessions have not ended."""
        self.count = 0

    def run(self) -> None:
        self.cluster.create_topic("t", PARTITIONS, replication_factor=self.factor, retention_ms=-1)
        for producer in self.producers:
            self.init(producer)
        acts: list[Callable[[], None]] = [self.produce] * 6 + [self.commit_offsets] * 3 + [self.end] * 5
        acts += [self.move] * 3 + [self.stop, self.crash, self.start, self.start, self.expire, self.restart]
        for _ in range(ACTS):
            self.random.choice(acts)()
        for producer in self.producers[:2]:
            self.end_one(producer)
        self.recover()
        self.expire()  # the transactions of the others
        self.check()
        for client in self.clients.values():
            client.sock.close()

    def check(self) -> None:
        """Check what holds when all nodes run and all transactions have ended."""

        def look(node: Node) -> None:
            assert {each.status for each in node.transactions} <= FINAL
            for topic in node.topics:
                for partition in topic.partitions.values():
                    assert partition.opened.last_stable_offset == partition.opened.log_end_offset, partition.name
            for index, values in self.committed.items():
                assert committed_values(node, index) == values

        self.cluster.call(look)
        for name, offset in self.offsets.items():
            request = messages.OffsetFetchRequest(
                group_id=name,
                topics=[messages.OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])],
                require_stable=True,
            )
            response, code = self.ask_coordinator(name, GROUP_KEY, request, 7, lambda each: each.error_code)
            [found] = response.topics[0].partitions
            assert (code, found.error_code, found.committed_offset) == (0, 0, offset)

    # --- nodes

    def running(self) -> list[int]:
        return [node.id for node in self.cluster.nodes if node.is_running]

    def recover(self) -> None:
        """Start every node, and let the coordinators try again to write markers."""
        for node in self.cluster.nodes:
            if not node.is_running:
                self.cluster.start(node.id)
        self.crashed.clear()
        self.cluster.advance(100)

    def end_sessions(self) -> None:
        self.cluster.advance(SESSION_MS)
        self.crashed.clear()
        self.time_passed()

    def time_passed(self) -> None:
        for producer in self.producers:
            producer.may_be_fenced |= producer.is_open

    def move(self) -> None:
        topic = self.random.choice(["t", "__transaction_state", "__consumer_offsets"])
        with contextlib.suppress(OptionError):  # the topic does not exist yet, or has no other replica in sync
            self.cluster.move_leader(topic, self.random.randrange(PARTITIONS))

    def stop(self) -> None:
        self.leave(self.cluster.stop)

    def crash(self) -> None:
        """Kill a node; half of the time, its session ends before anything else happens."""
        node = self.leave(self.cluster.crash)
        if node is not None:
            self.crashed.add(node)
            if self.random.random() < 0.5:
                self.end_sessions()

    def leave(self, stop: Callable[[int], None]) -> int | None:
        running = self.running()
        if len(running) == 1:
            return None
        node = self.random.choice(running)
        stop(node)
        if node in self.clients:
            self.clients.pop(node).sock.close()
        return node

    def start(self) -> None:
        stopped = [node.id for node in self.cluster.nodes if not node.is_running]
        if stopped:
            node = self.random.choice(stopped)
            self.cluster.start(node)
            self.crashed.discard(node)

    def expire(self) -> None:
        """Let open transactions time out."""
        self.cluster.advance(TIMEOUT_MS + CHECK_MS)
        self.time_passed()

    # --- asking

    def ask(self, node: int, request: Any, version: int) -> Any:
        if node not in self.clients:
            self.clients[node] = RawClient(self.cluster, node=node)
        return self.clients[node].ask(request, version)

    def reach(self, node: int) -> int:
        """Return a node that a response names, or a running one if it is none or dead."""
        if node in self.crashed:
            self.end_sessions()
        elif node == -1:
            self.recover()
        else:
            return node
        return self.random.choice(self.running())

    def ask_coordinator(
        self, key: str, key_type: int, request: Any, version: int, code_of: Callable[[Any], int]
    ) -> tuple[Any, int]:
        """Ask the coordinator of a key until its response is final; returns it with its error."""
        for attempt in range(TRIES):
            find = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            [found] = self.ask(self.random.choice(self.running()), find, 4).coordinators
            if found.error_code or found.node_id in self.crashed:
                self.reach(found.node_id)
                continue
            response = self.ask(found.node_id, request, version)
            code = code_of(response)
            if code not in RETRIED:
                return response, code
            if attempt:
                self.recover()
        raise AssertionError(f"{ErrorCode(code).name} forever: {request}")

    # --- producers

    def restart(self) -> None:
        """Start a producer again, which aborts the transaction of its predecessor."""
        self.init(self.random.choice(self.producers))

    def init(self, producer: Producer) -> None:
        request = messages.InitProducerIdRequest(transactional_id=producer.name, transaction_timeout_ms=TIMEOUT_MS)
        response, code = self.ask_coordinator(
            producer.name, TRANSACTION_KEY, request, 4, lambda each: int(each.error_code)
        )
        assert code == 0
        producer.id, producer.epoch = response.producer_id, response.producer_epoch
        producer.may_be_fenced = False
        producer.begin()

    def fenced(self, producer: Producer, code: int) -> None:
        """Follow the error of a producer whose transaction has timed out: it is aborted."""
        assert producer.may_be_fenced, ErrorCode(code).name
        assert code in FENCED
        self.init(producer)

    def produce(self) -> None:
        producer, index = self.random.choice(self.producers), self.random.randrange(PARTITIONS)
        self.count += 1
        value = b"%d" % self.count
        builder = BatchBuilder(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=len(producer.values[index]),
            is_transactional=True,
        )
        builder.append(None, value, timestamp=time.time_ns() // 1_000_000)
        cls = messages.ProduceRequest
        topic = cls.TopicProduceData(
            name="t", partition_data=[cls.PartitionProduceData(index=index, records=builder.build())]
        )
        request = cls(acks=-1, timeout_ms=1000, topic_data=[topic], transactional_id=producer.name)
        node = self.random.choice(self.running())
        for _ in range(TRIES):
            response = self.ask(node, request, 12)
            result = response.responses[0].partition_responses[0]
            if result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                node = self.reach(result.current_leader.leader_id)
            elif result.error_code in RETRIED:
                self.recover()
            elif result.error_code:
                self.fenced(producer, result.error_code)
                return
            else:
                producer.values[index].append(value)
                return
        raise AssertionError(f"{ErrorCode(result.error_code).name} forever")

    def commit_offsets(self) -> None:
        producer = self.random.choice(self.producers)
        self.count += 1
        cls = messages.TxnOffsetCommitRequest
        partition = cls.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=self.count)
        request = cls(
            transactional_id=producer.name,
            group_id=producer.name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[cls.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        _, code = self.ask_coordinator(
            producer.name, GROUP_KEY, request, 5, lambda each: int(each.topics[0].partitions[0].error_code)
        )
        if code:
            self.fenced(producer, code)
        else:
            producer.offset = self.count

    def end(self) -> None:
        self.end_one(self.random.choice(self.producers))

    def end_one(self, producer: Producer) -> None:
        """Commit or abort the transaction of a producer, if it has one."""
        if not producer.is_open:
            return
        commit = self.random.random() < 0.7
        request = messages.EndTxnRequest(
            transactional_id=producer.name, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit
        )
        next_epochs = []
        for _ in range(self.random.choice([1, 1, 2])):  # the second time as if the first response was lost
            response, code = self.ask_coordinator(
                producer.name, TRANSACTION_KEY, request, 5, lambda each: int(each.error_code)
            )
            if code:
                self.fenced(producer, code)
                return
            next_epochs.append((response.producer_id, response.producer_epoch))
        assert len(set(next_epochs)) == 1
        producer.id, producer.epoch = next_epochs[0]
        producer.may_be_fenced = False
        if commit:
            for index, values in producer.values.items():
                self.committed[index].update(values)
            if producer.offset is not None:
                self.offsets[producer.name] = producer.offset
        producer.begin()


def committed_values(node: Node, index: int) -> set[bytes]:
    """Return the values of committed transactions in a partition of t, on the broker's thread."""
    partition = node.topics.partition("t", index)
    assert partition is not None
    pending: dict[int, set[bytes]] = {}
    committed: set[bytes] = set()
    for batch in batches_of(partition.opened):
        records = list(batch.records())
        if not batch.is_control:
            pending.setdefault(batch.producer_id, set()).update(each.value or b"" for each in records)
            continue
        values = pending.pop(batch.producer_id, set())
        if records[0].key == COMMIT_MARKER:
            committed |= values
    assert not pending
    return committed


@pytest.mark.parametrize("seed", range(6))
def test_transactions_end_as_acknowledged(cluster: Cluster, seed: int) -> None:
    run_schedules(Schedule, cluster, [seed])


@pytest.mark.slow
def test_transactions_end_as_acknowledged_in_many_schedules(cluster: Cluster) -> None:
    run_schedules(Schedule, cluster, range(100, 100 + SEEDS))
