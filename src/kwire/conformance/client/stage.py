"""What a scenario works with: its cluster and script, topics and records of its own, and the log that came of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from kwire import records
from kwire.broker import Broker
from kwire.broker.faults import parse_api
from kwire.client import LATEST_TIMESTAMP, Client, Producer
from kwire.client.client import GROUP
from kwire.client.group_offsets import commit_offsets, fetch_offsets
from kwire.conformance.client.cluster import Front, Loop
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.script import Script
from kwire.identifiers import TopicPartition
from kwire.messages import LeaveGroupRequest, LeaveGroupResponse
from kwire.records.format.control_record import ControlRecordType, parse_control_record

if TYPE_CHECKING:
    from kwire.broker.node import Node
    from kwire.records import Record

__all__ = ["PASSWORD", "TIME", "USER", "Stage", "batch", "text"]

TIME = 1_760_000_000_000
"""Timestamp of the first record of a batch, in milliseconds; the others follow by one."""

USER, PASSWORD = "alice", "alice-secret"
"""A user of the broker, for each mechanism."""
LEAVE_GROUP = 5
SETTLED_S = 3.0
"""How long to wait for what the client does not wait for, such as markers of transactions."""


def batch(*values: bytes | None, **options: Any) -> bytes:
    """Return records as one batch, or as messages of magic 0 and 1. options: of records.BatchBuilder."""
    builder = records.BatchBuilder(**options)
    for i, value in enumerate(values):
        builder.append(b"k", value, timestamp=TIME + i if builder.magic else -1)
    return builder.build()


class Stage:
    """A scenario's part of the run; a context manager."""

    def __init__(self, loop: Loop, broker: Broker, scenario_id: str, *, nodes: int = 1) -> None:
        self._broker = broker
        self._prefix = f"{scenario_id.lower()}-{uuid.uuid4().hex[:4]}"
        self.front = Front(loop, broker, nodes=nodes)
        self._at_end = ExitStack()
        self._client: Client | None = None

    def __enter__(self) -> Self:
        self._at_end.enter_context(self.front)
        return self

    def __exit__(self, *_: object) -> None:
        self._at_end.close()

    @property
    def script(self) -> Script:
        """The rules of the broker's responses."""
        return self.front.script

    # Names and records

    def name(self, suffix: str) -> str:
        """Return a name of this scenario's own, for a group or a transactional id."""
        return f"{self._prefix}-{suffix}"

    def topic(self, suffix: str = "topic", *, partitions: int = 1, **configs: Any) -> str:
        """Create a topic. configs: with underscores for dots."""
        name = self.name(suffix)
        self._broker.create_topic(name, partitions, **configs)
        topic_id = self._broker.call(lambda node: _topic_id(node, name))
        self.front.placement.topics.add(name)
        self.front.placement.topic_ids[topic_id] = name
        return name

    @property
    def client(self) -> Client:
        """A client of kwire's, directly at the broker behind the script."""
        if self._client is None:
            self._client = self._connected()
        return self._client

    def _connected(self, **settings: object) -> Client:
        return self._at_end.enter_context(Client(self._broker.bootstrap_servers, **settings))

    def write(self, topic: str, *values: bytes | None, partition: int = 0, **options: Any) -> None:
        """Write records as one batch. options: of records.BatchBuilder."""
        with Producer(self.client) as producer:
            data = batch(*values, **{**producer.fields(topic, partition), **options})
            producer.send(topic, partition, data, len(values))

    def transaction(self, topic: str, *values: bytes | None, commits: bool, partition: int = 0) -> None:
        """Write records as a transaction of a producer of its own, and end it."""
        client = self._connected(**{"transactional.id": self.name(f"seed-{uuid.uuid4().hex[:6]}")})
        producer = Producer(client)
        producer.begin()
        producer.send(topic, partition, batch(*values, **producer.fields(topic, partition)), len(values))
        (producer.commit if commits else producer.abort)()

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """Return the records of a partition of the broker."""
        return self._broker.records(topic, partition)

    def settle(self, topic: str, count: int) -> None:
        """Wait for records that the client does not wait for."""
        deadline = time.monotonic() + SETTLED_S
        while len(self.log(topic)) < count and time.monotonic() < deadline:
            time.sleep(0.05)

    def committed_values(self, topic: str, partition: int = 0) -> list[str | None]:
        """Return the values that a reader of committed records gets, when all transactions have their markers."""
        deadline = time.monotonic() + SETTLED_S
        while True:
            committed, is_open = self._transactions(topic, partition)
            if not is_open or time.monotonic() > deadline:
                return committed
            time.sleep(0.05)

    def _transactions(self, topic: str, partition: int) -> tuple[list[str | None], bool]:
        """Return the values of committed transactions, and whether one has no marker yet."""
        key = (topic, partition)
        end = self.client.list_offsets({key: LATEST_TIMESTAMP})[key].offset
        found: list[tuple[int, str | None]] = []
        pending: dict[int, list[tuple[int, str | None]]] = {}
        for fetched in self.client.read(topic, partition, 0, end):
            for each in records.read_batches(fetched.records):
                if each.is_control:
                    marker = parse_control_record(next(iter(each.records())))
                    values = pending.pop(each.producer_id, [])
                    found += values if marker.type == ControlRecordType.COMMIT else []
                else:
                    values = [(value.offset, text(value.value)) for value in each.records()]
                    (pending.setdefault(each.producer_id, []) if each.is_transactional else found).extend(values)
        return [value for _, value in sorted(found, key=lambda entry: entry[0])], bool(pending)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group."""
        return {key: each.offset for key, each in fetch_offsets(self.client, group).items()}

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """Commit an offset of a group without members."""
        commit_offsets(self.client, group, {(topic, partition): offset})

    def forget(self, group: str, member_id: str) -> None:
        """Remove a member from a group, as a coordinator does after the session timeout."""
        request = LeaveGroupRequest(group_id=group, members=[LeaveGroupRequest.MemberIdentity(member_id=member_id)])
        connection = self.client.connection(self.client.coordinator(group, GROUP))
        connection.request(request, LeaveGroupResponse, version=LEAVE_GROUP)

    def log(self, topic: str, partition: int = 0) -> list[str | None]:
        """Return the values in a partition of the broker."""
        return [text(each.value) for each in self.records(topic, partition)]

    # What the program has sent

    def exchanges(self, api: str, when: Callable[[Exchange], bool] = lambda exchange: True) -> list[Exchange]:
        """Return the requests of an API so far."""
        return [each for each in self.front.exchanges if each.api == api and when(each)]

    def versions(self, api: str, low: int, high: int) -> None:
        """List and serve only these versions of an API."""
        self.front.versions[_key(api)] = (low, high)

    def without(self, *apis: str) -> None:
        """Do not serve these APIs."""
        for api in apis:
            self.front.versions[_key(api)] = None


def _key(api: str) -> int:
    key = parse_api(api)
    assert key is not None
    return key


def text(value: bytes | memoryview | None) -> str | None:
    """Return bytes as text."""
    return None if value is None else bytes(value).decode()


def _topic_id(node: Node, name: str) -> uuid.UUID:
    topic = node.topics.get(name)
    assert topic is not None
    return topic.topic_id
