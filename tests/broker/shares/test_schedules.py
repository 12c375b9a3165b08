"""Random schedules of a share group while the nodes of a cluster move, stop, crash and start, against a model.

Each record is done once: accepted, or with one dead letter, because a member has rejected it or it was delivered too
often. What is done is not delivered again; what a member holds is not delivered to another one; delivery counts grow
and stay within the limit. Releases are kept by the next leader, deliveries that were not ended need not be counted.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kwire.broker import Cluster
from kwire.protocol.error_codes import ErrorCode
from tests.broker.schedules import run_schedules
from tests.broker.shares.dead_letter_cases import CLIENT, COPY, COUNT, ENABLED, NAME, create, produce
from tests.broker.shares.harness import EARLIEST, SETTINGS, Member, acquired, configure, result
from tests.broker.wire import RawClient

NODES, PARTITIONS, ACTS, MEMBERS, LIMIT, LOCK_MS = 3, 2, 30, 2, 3, 30_000
SEEDS = int(os.environ.get("KWIRE_CLUSTER_SCHEDULES", "1000"))
"""Seeds of the slow test."""
SESSION_MS = 9000
ACCEPT, RELEASE, REJECT = 1, 2, 3
NOT_HELD = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors for records that a member has lost; the last one if the leader has not loaded the share partition."""
Place = tuple[int, int]
"""A partition and an offset."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    settings = {**SETTINGS, "share_coordinator_state_topic_min_isr": 1}
    with Cluster(nodes=NODES, keep_requests=0, **settings) as running:  # type: ignore[arg-type]
        yield running


@dataclass(kw_only=True)
class Held:
    """A record that a member has acquired. node, epoch: of the leader then. until_ms: when its lock ends."""

    member: int
    node: int
    count: int
    epoch: int
    until_ms: int


class Schedule:
    """One schedule. done: how each record ended. written: the delivery count of its last release."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.cluster, self.random = cluster, random.Random(seed)
        self.values: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
        self.held: dict[Place, Held] = {}
        self.done: dict[Place, int] = {}
        self.written: defaultdict[Place, int] = defaultdict(int)
        self.delivered: defaultdict[Place, int] = defaultdict(int)
        self.clients: dict[int, RawClient] = {}
        self.sessions: dict[tuple[int, int], Member] = {}
        self.crashed: set[int] = set()
        self.now_ms = 0

    def run(self) -> None:
        client = self.client(1)
        self.topic_id = create(client, "t", PARTITIONS, {"retention.ms": "-1"})  # the records are of 1970
        create(client, "dlq.t", 1, ENABLED)
        configs = {**EARLIEST, NAME: "dlq.t", COPY: "true", "share.delivery.count.limit": str(LIMIT)}
        configure(client, "g", configs)
        coordinator = self.cluster.call(
            lambda node: node.coordinators.partition_of("__consumer_offsets", "g").state.leader
        )
        Member(self.client(coordinator), "g", "t", self.topic_id).join()
        acts = [self.produce, *[self.deliver] * 4, *[self.acknowledge] * 4]
        acts += [self.move, self.move_state, self.stop, self.crash, self.start, self.start, self.expire]
        for _ in range(ACTS):
            self.random.choice(acts)()
        for node in self.cluster.nodes:
            if not node.is_running:
                self.cluster.start(node.id)
        self.crashed.clear()
        self.drain()
        for each in self.clients.values():
            each.sock.close()
        self.check_letters()

    def drain(self) -> None:
        """Accept what is left."""
        self.expire()
        while True:
            self.held.clear()
            for index in range(PARTITIONS):
                self.deliver(index, 0)
            if not self.held:
                return
            for index in range(PARTITIONS):
                self.acknowledge(index, 0, ACCEPT)

    def check_letters(self) -> None:
        """Check that every record has ended, and once."""
        letters: dict[Place, tuple[bytes | None, str]] = {}
        for record in self.cluster.records("dlq.t"):
            headers = {key.removeprefix("__dlq.errors."): (value or b"").decode() for key, value in record.headers}
            place = int(headers["partition"]), int(headers["offset"])
            assert place not in letters
            letters[place] = record.value, headers["message"]
        for index, values in self.values.items():
            for offset, value in enumerate(values):
                place = index, offset
                if self.done.get(place) == ACCEPT:
                    assert place not in letters
                elif self.done.get(place) == REJECT:
                    assert letters[place] == (value, CLIENT)
                else:
                    assert letters[place] == (value, COUNT)
                    assert self.delivered[place] >= LIMIT

    # --- nodes

    def running(self) -> list[int]:
        return [node.id for node in self.cluster.nodes if node.is_running]

    def client(self, node: int) -> RawClient:
        if node not in self.clients:
            self.clients[node] = RawClient(self.cluster, node=node)
        return self.clients[node]

    def closed(self, node: int) -> None:
        """Follow the end of a node's connections, with which the sessions there end: held records are released."""
        if node in self.clients:
            assert self.clients[node].is_closed()
            self.clients.pop(node).sock.close()
        self.sessions = {key: each for key, each in self.sessions.items() if key[0] != node}
        self.held = {place: held for place, held in self.held.items() if held.node != node}

    def leader(self, index: int) -> tuple[int, int]:
        """Return the leader of a partition, which is running, and its epoch."""
        state = self.cluster.call(lambda node: node.topics.partition("t", index).state)  # type: ignore[union-attr]
        if state.leader in self.crashed:
            self.end_sessions()
            return self.leader(index)
        return int(state.leader), int(state.leader_epoch)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.cluster.advance(ms)

    def end_sessions(self) -> None:
        self.advance(SESSION_MS)
        self.crashed.clear()

    # --- acts

    def produce(self) -> None:
        index = self.random.randrange(PARTITIONS)
        node, _ = self.leader(index)
        values = [b"%d-%d" % (index, len(self.values[index]) + i) for i in range(self.random.randint(1, 4))]
        produce(self.client(node), "t", values, partition=index)
        self.values[index] += values

    def deliver(self, index: int | None = None, member: int | None = None) -> None:
        """Acquire records as a member, in a new session with the leader of a partition."""
        index = self.random.randrange(PARTITIONS) if index is None else index
        member = self.random.randrange(MEMBERS) if member is None else member
        node, epoch = self.leader(index)
        session = Member(self.client(node), "g", "t", self.topic_id, f"m{member}")
        response = session.fetch(partitions=(index,), max_records=self.random.choice([1, 3, 500]))
        (topic,) = response.responses
        assert [part.error_code for part in topic.partitions] == [0]
        self.sessions[node, member] = session
        for first, last, count in acquired(response):
            for offset in range(first, last + 1):
                place = index, offset
                assert place not in self.done
                held = self.held.get(place)
                assert held is None or not self.is_held(place, held), (place, held)
                assert self.written[place] < count <= min(LIMIT, self.delivered[place] + 1), (place, count)
                self.delivered[place] += 1
                self.held[place] = Held(
                    member=member, node=node, count=count, epoch=epoch, until_ms=self.now_ms + LOCK_MS
                )

    def is_held(self, place: Place, held: Held) -> bool:
        """Return whether a member still holds a record: its leader and lock are those of the acquisition."""
        _, epoch = self.leader(place[0])
        return held.epoch == epoch and self.now_ms < held.until_ms

    def acknowledge(self, index: int | None = None, member: int | None = None, kind: int | None = None) -> None:
        """End some deliveries of a member, in the order of their offsets."""
        index = self.random.randrange(PARTITIONS) if index is None else index
        member = self.random.randrange(MEMBERS) if member is None else member
        node, _ = self.leader(index)
        session = self.sessions.get((node, member))
        places = sorted(place for place, held in self.held.items() if place[0] == index and held.member == member)
        chosen = places if kind else [place for place in places if self.random.random() < 0.6]
        if session is None or not chosen:
            return
        ends = {place: kind or self.random.choice([ACCEPT, ACCEPT, RELEASE, RELEASE, REJECT]) for place in chosen}
        are_held = all(self.is_held(place, self.held[place]) for place in chosen)
        response = session.acknowledge([(at, at, [end]) for (_, at), end in ends.items()], partition=index)
        code, _ = result(response)
        assert code == 0 if are_held else code in (0, *NOT_HELD), code
        if code == 0:
            for place, end in ends.items():
                count = self.held.pop(place).count
                if end != RELEASE:
                    self.done[place] = end
                else:
                    self.written[place] = count
        else:
            for place in chosen:
                del self.held[place]

    def expire(self) -> None:
        self.advance(LOCK_MS + 1)
        self.crashed.clear()

    def move(self) -> None:
        index = self.random.randrange(PARTITIONS)
        others = [node for node in self.running() if node not in self.crashed and node != self.leader(index)[0]]
        if others:
            self.cluster.move_leader("t", index, to=self.random.choice(others))

    def move_state(self) -> None:
        """Move the coordinators of the group and of its states, and the leader of the dead letters."""
        running = [node for node in self.running() if node not in self.crashed]
        for topic, index in [("__share_group_state", self.random.randrange(3)), ("dlq.t", 0)]:
            self.cluster.move_leader(topic, index, to=self.random.choice(running))

    def stop(self) -> None:
        running = self.running()
        if len(running) > 1:
            node = self.random.choice(running)
            self.cluster.stop(node)
            self.closed(node)

    def crash(self) -> None:
        running = self.running()
        if len(running) > 1:
            node = self.random.choice(running)
            self.cluster.crash(node)
            self.closed(node)
            self.crashed.add(node)
            if self.random.random() < 0.5:
                self.end_sessions()

    def start(self) -> None:
        stopped = [node.id for node in self.cluster.nodes if not node.is_running]
        if stopped:
            node = self.random.choice(stopped)
            self.cluster.start(node)
            self.crashed.discard(node)


@pytest.mark.parametrize("seed", range(6))
def test_every_record_is_done_once(cluster: Cluster, seed: int) -> None:
    run_schedules(Schedule, cluster, [seed])


@pytest.mark.slow
def test_every_record_is_done_once_in_many_schedules(cluster: Cluster) -> None:
    run_schedules(Schedule, cluster, range(100, 100 + SEEDS))
