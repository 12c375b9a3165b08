"""Records that become dead letters, and the letters that Kafka 4.4.0 writes of them.

test_dead_letters.py compares them with those of our broker, tests/interop/test_dead_letters.py with those of Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kwire import messages as m
from kwire.protocol.error_codes import ErrorCode
from kwire.records import BatchBuilder, read_batches
from tests.broker.shares.harness import EARLIEST, Acks, Member, acquired, configure, result
from tests.broker.wire import RawClient
from tests.waiting import until

ENABLE, NAME, COPY = (
    "errors.deadletterqueue.group.enable",
    "errors.deadletterqueue.topic.name",
    "errors.deadletterqueue.copy.record.enable",
)
KAFKA: dict[str, str | int] = {
    "errors.deadletterqueue.auto.create.topics.enable": "true",
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.assignment.interval.ms": 0,
    "group.share.min.record.lock.duration.ms": 1000,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "share.coordinator.state.topic.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
    "num.partitions": 2,
}
OURS: dict[str, Any] = {name.replace(".", "_"): value for name, value in KAFKA.items()}
ACCEPT, RELEASE, REJECT = 1, 2, 3
LOCK_MS = 1000
EXPIRE, LEAVE = "locks end", "the session ends"
CLIENT, COUNT = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
COPIED = {COPY: "true"}
LIMITED = {"share.delivery.count.limit": "2", "share.record.lock.duration.ms": str(LOCK_MS)}

Letter = tuple[int, bytes | None, bytes | None, int, int, str]
"""Partition, key and value; offset, delivery count and message of the headers."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Records of a topic, how its share group ends their deliveries, and the dead letters.

    batches: (values, codec). steps: acknowledgements after each fetch, EXPIRE or LEAVE. queue: configs of the topic for
    dead letters; None if it does not exist. partitions: of that topic. source: the partition of the records.
    """

    name: str
    letters: Sequence[Letter]
    steps: Sequence[Acks | str]
    batches: Sequence[tuple[Sequence[bytes], str]] = (((b"a", b"b", b"c"), "none"),)
    group: dict[str, str] = field(default_factory=dict)
    queue: dict[str, str] | None = None
    partitions: int = 1
    source: int = 0
    topic: dict[str, str] = field(default_factory=dict)

    @property
    def queue_name(self) -> str:
        """The topic for dead letters."""
        return self.group.get(NAME, f"dlq.{self.name}")


ALL_REJECTED = [[(0, 2, [REJECT])]]
ENABLED = {ENABLE: "true"}
BIG = b"v" * 3000
CASES = [
    Case(
        name="rejected",
        steps=[[(0, 0, [ACCEPT]), (1, 2, [REJECT])]],
        letters=[(0, None, None, 1, 1, CLIENT), (0, None, None, 2, 1, CLIENT)],
    ),
    Case(
        name="copied",
        steps=ALL_REJECTED,
        group=COPIED,
        letters=[(0, b"k", b"a", 0, 1, CLIENT), (0, b"k", b"b", 1, 1, CLIENT), (0, b"k", b"c", 2, 1, CLIENT)],
    ),
    Case(
        name="compressed",
        steps=[[(0, 0, [ACCEPT]), (1, 1, [REJECT]), (2, 2, [ACCEPT])]],
        batches=[((b"a", b"b", b"c"), "gzip")],
        group=COPIED,
        letters=[(0, b"k", b"b", 1, 1, CLIENT)],
    ),
    Case(name="gap", steps=[[(0, 2, [0, REJECT, ACCEPT])]], letters=[(0, None, None, 1, 1, CLIENT)]),
    Case(
        name="released",
        steps=[[(0, 2, [RELEASE])], [(0, 2, [RELEASE, REJECT, ACCEPT])]],
        group={**COPIED, **LIMITED},
        letters=[(0, b"k", b"a", 0, 2, COUNT), (0, b"k", b"b", 1, 2, CLIENT)],
    ),
    Case(
        name="expired",
        steps=[[(0, 1, [RELEASE]), (2, 2, [ACCEPT])], EXPIRE],
        group={**COPIED, **LIMITED},
        letters=[(0, b"k", b"a", 0, 2, COUNT), (0, b"k", b"b", 1, 2, COUNT)],
    ),
    Case(
        name="left",
        steps=[[(0, 1, [RELEASE]), (2, 2, [ACCEPT])], LEAVE],
        group=LIMITED,
        letters=[(0, None, None, 0, 2, COUNT), (0, None, None, 1, 2, COUNT)],
    ),
    Case(name="disabled", steps=ALL_REJECTED, queue={}, letters=[]),
    Case(name="prefix", steps=ALL_REJECTED, queue=ENABLED, group={NAME: "other"}, letters=[]),
    Case(name="illegal", steps=ALL_REJECTED, group={NAME: "dlq.a b"}, letters=[]),
    Case(name="unset", steps=ALL_REJECTED, group={NAME: ""}, letters=[]),
    Case(name="compacted", steps=ALL_REJECTED, queue={**ENABLED, "cleanup.policy": "compact"}, letters=[]),
    Case(
        name="keyed",
        steps=ALL_REJECTED,
        group=COPIED,
        queue={**ENABLED, "cleanup.policy": "compact"},
        letters=[(0, b"k", b"a", 0, 1, CLIENT), (0, b"k", b"b", 1, 1, CLIENT), (0, b"k", b"c", 2, 1, CLIENT)],
    ),
    Case(
        name="partitions",
        steps=ALL_REJECTED,
        queue=ENABLED,
        partitions=3,
        source=4,
        letters=[(1, None, None, 0, 1, CLIENT), (1, None, None, 1, 1, CLIENT), (1, None, None, 2, 1, CLIENT)],
    ),
    Case(
        name="small",
        steps=ALL_REJECTED,
        batches=[((BIG, b"b"), "none"), ((BIG, b"c"), "none"), ((BIG, b"d"), "gzip"), ((b"e",), "none")],
        group=COPIED,
        queue={**ENABLED, "max.message.bytes": "2000"},
        letters=[
            (0, None, None, 0, 1, CLIENT),
            (0, b"k", b"b", 1, 1, CLIENT),
            (0, None, None, 2, 1, CLIENT),
            (0, b"k", b"c", 3, 1, CLIENT),
            (0, None, None, 4, 1, CLIENT),
            (0, None, None, 5, 1, CLIENT),
            (0, b"k", b"e", 6, 1, CLIENT),
        ],
    ),
    Case(
        name="no-room",
        steps=ALL_REJECTED,
        batches=[((b"a", b"x" * 900, b"c"), "none")],
        group=COPIED,
        queue={**ENABLED, "max.message.bytes": "1000"},
        letters=[(0, b"k", b"a", 0, 1, CLIENT)],
    ),
]


def ask_all(client: RawClient, case: Case) -> None:
    """Create the topics, the group's configs and the records."""
    create(client, case.name, case.source + 1, case.topic)
    if case.queue is not None:
        create(client, case.queue_name, case.partitions, case.queue)
    configure(client, case.name, {**EARLIEST, NAME: case.queue_name, **case.group})
    for values, codec in case.batches:
        produce(client, case.name, values, codec, case.source)


def create(client: RawClient, topic: str, partitions: int, configs: dict[str, str]) -> UUID:
    """Create a topic and return its id."""
    cls = m.CreateTopicsRequest
    given = [cls.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()]
    asked = cls.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1, configs=given)
    (created,) = client.ask(cls(topics=[asked], timeout_ms=10_000), 7).topics
    assert created.error_code == 0, created
    return UUID(int=created.topic_id.int)


def produce(client: RawClient, topic: str, values: Sequence[bytes], codec: str = "none", partition: int = 0) -> None:
    """Append one batch."""
    builder = BatchBuilder(compression=codec)
    for value in values:
        builder.append(b"k", value, timestamp=1, headers=[("own", b"1")])
    cls = m.ProduceRequest
    part = cls.PartitionProduceData(index=partition, records=builder.build())
    request = cls(acks=-1, timeout_ms=10_000, topic_data=[cls.TopicProduceData(name=topic, partition_data=[part])])
    until(lambda: client.ask(request, 10).responses[0].partition_responses[0].error_code == 0)


def end_deliveries(client: RawClient, case: Case, pass_time: Callable[[int], object]) -> None:
    """Deliver the records and end that as the case says, until all are done."""
    topic_id = topic_id_of(client, case.name)
    member = joined(client, case.name, topic_id)
    for step in case.steps:
        member.epoch = 0
        count = sum(len(values) for values, _ in case.batches)
        found: list[tuple[int, int, int]] = []

        def fetched(found: list[tuple[int, int, int]] = found, count: int = count, first: object = step) -> bool:
            partitions = [case.source] if member.epoch == 0 else []
            found.extend(acquired(member.fetch(partitions=partitions, max_wait_ms=200)))
            return sum(last - low + 1 for low, last, _ in found) >= (count if first == case.steps[0] else 1)

        until(fetched)
        if step == LEAVE:
            member.fetch(epoch=-1, partitions=())
        elif step == EXPIRE:
            pass_time(LOCK_MS + 1)
        elif case.steps == ALL_REJECTED:
            assert acknowledge(member, [(low, last, [REJECT]) for low, last, _ in found], case.source) == (0, None)
        else:
            assert not isinstance(step, str)
            assert acknowledge(member, step, case.source) == (0, None)
    until(lambda: lag(client, case.name, case.source) == 0)


def acknowledge(member: Member, acks: Acks, partition: int = 0) -> tuple[int, str | None]:
    """Acknowledge records of a partition; returns its error."""
    return result(member.acknowledge(acks, partition=partition))


def topic_id_of(client: RawClient, topic: str) -> UUID:
    """Return the id of a topic."""
    cls = m.MetadataRequest
    (found,) = client.ask(cls(topics=[cls.MetadataRequestTopic(name=topic)]), 12).topics
    return UUID(int=found.topic_id.int)


def joined(client: RawClient, name: str, topic_id: UUID) -> Member:
    """Return a member with the partitions of the topic that is named as its group."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[name])
    until(lambda: client.ask(find, 4).coordinators[0].error_code == 0)
    member = Member(client, name, name, topic_id)
    until(lambda: member.heartbeat(0).error_code == 0)

    def has_partitions() -> bool:
        assignment = member.heartbeat(topics=[name]).assignment
        return assignment is not None and bool(assignment.topic_partitions)

    until(has_partitions)
    return member


def lag(client: RawClient, group: str, partition: int = 0) -> int:
    """Return the number of records of a partition that are not done."""
    cls = m.DescribeShareGroupOffsetsRequest
    topic = cls.DescribeShareGroupOffsetsRequestTopic(topic_name=group, partitions=[partition])
    asked = cls.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[topic])
    (found,) = client.ask(cls(groups=[asked]), 1).groups
    return int(found.topics[0].partitions[0].lag)


def letters_of(client: RawClient, case: Case, topic: str = "") -> list[Letter]:
    """Return the dead letters of a case in order of their partitions and offsets."""
    letters: list[Letter] = []
    cls = m.FetchRequest
    for partition in range(max(case.partitions, int(KAFKA["num.partitions"]))):
        offset, code = 0, 0
        while not code:
            part = cls.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
            asked = cls.FetchTopic(topic=topic or case.queue_name, partitions=[part])
            (found,) = client.ask(cls(max_wait_ms=0, min_bytes=0, topics=[asked]), 12).responses[0].partitions
            code = found.error_code
            records = [each for batch in read_batches(found.records or b"") for each in batch.records()]
            if not records:
                break
            offset = records[-1].offset + 1
            letters += [letter(case, partition, each) for each in records]
        assert code in (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)
    return sorted(letters, key=lambda each: (each[0], each[3]))


def letter(case: Case, partition: int, record: Any) -> Letter:
    """Return what a case expects of a record, and check the rest of it."""
    names = ["topic", "partition", "offset", "group", "delivery.count", "message"]
    assert [key for key, _ in record.headers] == [f"__dlq.errors.{name}" for name in names]
    topic, source, offset, group, count, message = (value.decode() for _, value in record.headers)
    assert (topic, source, group) == (case.name, str(case.source), case.name)
    assert record.timestamp > 1  # that of the copy
    return partition, record.key, record.value, int(offset), int(count), message


def observe(client: RawClient, case: Case, pass_time: Callable[[int], object]) -> list[Letter]:
    """Return the dead letters that a broker writes."""
    ask_all(client, case)
    end_deliveries(client, case, pass_time)
    return letters_of(client, case)


def archiving(client: RawClient, case: Case, *counts: int) -> None:
    """Write states of records that were being copied, one for each delivery count."""
    cls = m.WriteShareGroupStateRequest
    batches = [
        cls.StateBatch(first_offset=at, last_offset=at, delivery_state=3, delivery_count=count)
        for at, count in enumerate(counts)
    ]
    part = cls.PartitionData(partition=0, state_epoch=9, leader_epoch=0, start_offset=0, state_batches=batches)
    data = cls.WriteStateData(topic_id=topic_id_of(client, case.name), partitions=[part])
    assert client.ask(cls(group_id=case.name, topics=[data]), 1).results[0].partitions[0].error_code == 0
