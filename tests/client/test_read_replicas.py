"""Partitions read from the replica that their leader names for the client's rack (KIP-392).

Two proxies in front of one broker are the leader, node 1, and a replica, node 7. As Kafka does, the leader sends no
records to a client whose rack has a replica.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.client import Client, fetch_requests
from kwire.client.fetcher import FetchedBatches, Fetcher, FetchError, Position
from kwire.client.follower import Follower
from kwire.client.settings import ClientSettings
from kwire.client.shared_fetch import read_together
from kwire.errors import BrokerError
from kwire.identifiers import TopicPartition
from kwire.messages import FetchRequest
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.records import read_batches
from tests.client.test_client import closed_port
from tests.client.test_cluster_logs import create, write
from tests.rewriting_proxy import RewritingProxy
from tests.waiting import until

LEADER, REPLICA = 1, 7
BATCHES = 12
END = BATCHES * 10
SETTINGS: dict[str, Any] = {
    "client.rack": "a",
    "retry.backoff.ms": 5,
    "max.partition.fetch.bytes": 300,
    "fetch.max.bytes": 300,
    "default.api.timeout.ms": 60_000,
}


class World:
    """A broker behind the proxies. requests: node id and request of each Fetch, in order.

    named: what the leader names for rack `a`, or always.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.broker = stack.enter_context(Broker())
        target = "127.0.0.1", self.broker.port
        self.leader, self.replica = (stack.enter_context(RewritingProxy(target)) for _ in range(2))
        self.requests: list[tuple[int, FetchRequest]] = []
        self.named, self.always = REPLICA, False
        self.leader.brokers[REPLICA] = self.replica.port
        self.leader.observe["FetchRequest"] = lambda each: self.requests.append((LEADER, each))
        self.replica.observe["FetchRequest"] = lambda each: self.requests.append((REPLICA, each))
        self.leader.rewrite["FetchResponse"] = self._redirect
        self.replica.rewrite["MetadataResponse"] = self._addresses
        with Client(self.broker.bootstrap_servers) as writer:
            for topic in ("t", "u", "v"):
                create(writer, topic)
                write(writer, topic, BATCHES)

    def _addresses(self, response: Any) -> None:
        kind = type(response.brokers[0])
        ports = {LEADER: self.leader.port, **self.leader.brokers}
        response.brokers = [kind(node_id=each, host="127.0.0.1", port=port) for each, port in ports.items()]

    def _redirect(self, response: Any) -> None:
        rack = [request.rack_id for node_id, request in self.requests if node_id == LEADER][-1]
        if rack == "a" or self.always:
            for _, data in partitions(response):
                data.records, data.preferred_read_replica = None, self.named

    def fail(self, change: Callable[[Any], None]) -> None:
        """Let the replica change each partition of its responses."""

        def rewrite(response: Message) -> None:
            for _, data in partitions(response):
                data.records = None
                change(data)

        self.replica.rewrite["FetchResponse"] = rewrite

    @property
    def sources(self) -> str:
        """Who got the requests: L for the leader with the rack, l without, R for the replica."""
        return "".join("R" if node == REPLICA else "L" if each.rack_id else "l" for node, each in self.requests)

    def client(self, **settings: Any) -> Client:
        return Client(
            self.leader.address, **SETTINGS, **{key.replace("_", "."): value for key, value in settings.items()}
        )


def partitions(response: Any) -> Iterator[tuple[str, Any]]:
    for topic in response.responses:
        for data in topic.partitions:
            yield topic.topic, data


@pytest.fixture
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


def offsets(records: memoryview) -> list[int]:
    return [record.offset for batch in read_batches(records) for record in batch.records()]


def by_read(client: Client) -> list[int]:
    return [each for fetched in client.read("t", 0, 0, END) for each in offsets(fetched.records)]


def by_fetcher(client: Client) -> list[int]:
    found: list[int] = []
    with Fetcher(client) as fetcher:
        fetcher.add(("t", 0), Position(0))
        while len(found) < END:
            for each in fetcher.poll():
                assert isinstance(each, FetchedBatches), each
                assert len(each.fetched.records), "an empty result while there are records"
                found += offsets(each.fetched.records)
    return found


def by_read_together(client: Client) -> list[int]:
    ranges: dict[TopicPartition, tuple[int, int]] = {("t", 0): (0, END)}
    together = read_together(client, ranges, isolation="read_uncommitted", topic_ids={})
    return [each for _, fetched in together for each in offsets(fetched.records)]


READERS = pytest.mark.parametrize("read", [by_read, by_fetcher])


@pytest.mark.parametrize("read", [by_read, by_fetcher, by_read_together])
def test_records_come_from_the_replica_that_the_leader_names(world: World, read: Callable[[Client], list[int]]) -> None:
    with world.client() as client:
        assert read(client) == list(range(END))
        assert world.sources.startswith("LRRRRRR")
        assert world.sources.count("L") == 1
        assert {each.rack_id for _, each in world.requests} == {"a"}
        world.requests.clear()
        assert read(client) == list(range(END))
        assert set(world.sources) == {"R"}, "further reads ask the leader again before its answer is old"


@READERS
def test_without_a_rack_leaders_are_read_from(world: World, read: Callable[[Client], list[int]]) -> None:
    with Client(
        world.leader.address, **{key: value for key, value in SETTINGS.items() if key != "client.rack"}
    ) as client:
        assert read(client) == list(range(END))
    assert set(world.sources) == {"l"}


@READERS
def test_the_leader_is_asked_again_when_the_replica_expires(world: World, read: Callable[[Client], list[int]]) -> None:
    with world.client(metadata_max_age_ms=0) as client:
        assert read(client) == list(range(END))
    assert world.sources.startswith("LRLRLRLRLR"), "each replica that is named is read from at least once"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ],
)
@READERS
def test_an_error_of_the_replica_leads_back_to_the_leader(
    world: World, read: Callable[[Client], list[int]], code: ErrorCode
) -> None:
    world.fail(lambda data: setattr(data, "error_code", code))
    with world.client() as client:
        assert read(client) == list(range(END))
    assert world.sources.startswith("LRllll")
    assert world.sources.count("R") == 1


@READERS
def test_a_replica_that_lags_behind_is_not_a_truncated_log(world: World, read: Callable[[Client], list[int]]) -> None:
    def diverge(data: Any) -> None:
        data.diverging_epoch.epoch, data.diverging_epoch.end_offset = 0, 0

    world.fail(diverge)
    with world.client() as client:
        assert read(client) == list(range(END))
    assert world.sources.startswith("LRllll")


@READERS
def test_a_whole_response_with_an_error_leads_back_to_the_leader(
    world: World, read: Callable[[Client], list[int]]
) -> None:
    def refuse(response: Any) -> None:
        response.error_code, response.responses = ErrorCode.UNKNOWN_SERVER_ERROR, []

    world.replica.rewrite["FetchResponse"] = refuse
    with world.client() as client:
        assert read(client) == list(range(END))
    assert world.sources.startswith("LRllll")


@pytest.mark.sampled
@READERS
@pytest.mark.parametrize("how", ["closed", "unknown", "breaks", "silent"])
def test_a_replica_that_cannot_be_reached_leads_back_to_the_leader(
    world: World, read: Callable[[Client], list[int]], how: str
) -> None:
    match how:
        case "closed":
            world.leader.brokers[REPLICA] = closed_port()
        case "unknown":
            world.named = 8
        case "breaks":
            world.replica.observe["FetchRequest"] = lambda _: (_ for _ in ()).throw(OSError)
        case "silent":
            world.replica.rewrite["FetchResponse"] = lambda response: until(lambda: len(world.requests) > 2)
    timeout_ms = 500 if how == "silent" else 30_000
    with world.client(request_timeout_ms=timeout_ms) as client:
        assert read(client) == list(range(END))
    assert set(world.sources.removeprefix("LR" if how == "silent" else "L")) == {"l"}


@READERS
def test_a_replica_that_recovers_is_read_from_again(
    world: World, read: Callable[[Client], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_requests, "PAUSE_S", 0)
    answers = iter([ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER])

    def fail_twice(response: Any) -> None:
        for _, data in partitions(response):
            code = next(answers, ErrorCode.NONE)
            if code:
                data.records, data.error_code = None, code

    world.replica.rewrite["FetchResponse"] = fail_twice
    with world.client() as client:
        assert read(client) == list(range(END))
    assert world.sources.startswith("LRLRLRRRRR")


def test_a_replica_expires_five_minutes_after_its_first_response(monkeypatch: pytest.MonkeyPatch) -> None:
    now, settings = [0.0], ClientSettings.parse({"bootstrap.servers": "a:1"})
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    replica = fetch_requests.ReadReplica(node_id=REPLICA)
    for at, node_id in ((5000.0, REPLICA), (5299.9, REPLICA), (5300.0, None)):
        now[0] = at
        replica.answered(settings)
        assert replica.node_id == node_id
    assert not replica.is_paused


def test_pauses_double_until_the_replica_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    settings = ClientSettings.parse({"bootstrap.servers": "a:1"})
    replica = fetch_requests.ReadReplica()
    pauses = []
    for _ in range(7):
        replica.fail(settings)
        assert replica.until is not None
        pauses.append(replica.until - now[0])
        now[0] = replica.until - 0.1
        assert replica.is_paused
        now[0] = replica.until
        assert not replica.is_paused
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    replica.node_id, replica.until = REPLICA, None
    replica.answered(settings)
    replica.fail(settings)
    assert replica.until == now[0] + 10


@READERS
def test_a_leader_that_never_sends_records_is_an_error(world: World, read: Callable[[Client], list[int]]) -> None:
    """A replica selector of one's own may name a replica to clients without a rack."""
    world.always = True
    world.leader.brokers[REPLICA] = closed_port()
    with Client(world.leader.address, **{**SETTINGS, "default.api.timeout.ms": 300}) as client:
        if read is by_read:
            with pytest.raises(BrokerError, match="t-0: broker 1 refers to broker 7, and a replica has just failed"):
                read(client)
            return
        with Fetcher(client) as fetcher:
            fetcher.add(("t", 0), Position(0))
            found: list[Any] = []
            while not found:
                found = list(fetcher.poll())
    assert isinstance(found[0], FetchError)
    assert isinstance(found[0].error, BrokerError)
    assert found[0].error.code == ErrorCode.REPLICA_NOT_AVAILABLE


def test_the_partitions_of_a_replica_share_requests(world: World) -> None:
    """One partition stays with the leader: neither keeps the other waiting."""

    def redirect(response: Any) -> None:
        for topic, data in partitions(response):
            if topic != "v":
                data.records, data.preferred_read_replica = None, REPLICA

    world.leader.rewrite["FetchResponse"] = redirect
    found: dict[str, list[int]] = {"t": [], "u": [], "v": []}
    settings = {**SETTINGS, "max.partition.fetch.bytes": 1 << 20, "fetch.max.bytes": 1 << 20}
    with Client(world.leader.address, **settings) as client, Follower(client) as follower:
        for topic in found:
            follower.add((topic, 0), 0)
        while not all(len(each) == END for each in found.values()):
            for (topic, _), fetched in follower.poll():
                found[topic] += offsets(fetched.records)
    assert all(each == list(range(END)) for each in found.values())
    first = next(each for node_id, each in world.requests if node_id == REPLICA)
    assert sorted(each.topic for each in first.topics) == ["t", "u"]
    forgotten = [topic.topic for _, each in world.requests for topic in each.forgotten_topics_data]
    assert sorted(forgotten) == ["t", "u"], "the leader's session still has them"


def test_a_rack_is_sent_from_version_11_on() -> None:
    request = FetchRequest(rack_id="a")
    assert FetchRequest.decode(request.encode(version=11), version=11).rack_id == "a"
    assert FetchRequest.decode(request.encode(version=10), version=10).rack_id == ""
