"""Rounds of batches in flight at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kwire.broker import Broker
from kwire.client import Client, OutgoingBatch, Producer
from kwire.errors import BrokerError, OptionError
from kwire.records import ColumnWriter, read_batches, write_batch
from tests.client.test_client import SOON, create
from tests.records.test_builder import plain
from tests.waiting import until

ROUNDS, PARTITIONS = 12, 2


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as found:
        yield found


def batch(producer: Producer, topic: str, partition: int, value: int) -> OutgoingBatch:
    rows = pa.record_batch({"value": pa.array([b"%d" % value, b"and"], pa.binary())})
    return OutgoingBatch(topic, partition, b"".join(ColumnWriter(**producer.fields(topic, partition)).write(rows)), 2)


def written(broker: Broker, topic: str, partition: int) -> list[int]:
    with Client(broker.bootstrap_servers) as client:
        end = client.list_offsets({(topic, partition): -1})[topic, partition].offset
        return [
            int(record.value or b"")
            for fetched in client.read(topic, partition, 0, end)
            for each in read_batches(fetched.records)
            if not each.is_control
            for record in each.records()
            if record.value != b"and"
        ]


def end_of(broker: Broker, topic: str) -> int:
    with Client(broker.bootstrap_servers) as client:
        return client.list_offsets({(topic, 0): -1})[topic, 0].offset


def test_two_batches_of_a_partition_are_refused_and_none_is_sent(broker: Broker) -> None:
    """An assertion said so, without which one of them would have been lost."""
    with Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        create(client, "twice", 1)
        data = write_batch([plain(0, None, b"v", 5)], **producer.fields("twice", 0))
        batch = OutgoingBatch("twice", 0, data, 1)
        with pytest.raises(OptionError, match="batches: two of one partition"):
            producer.send_all([batch, batch])
        assert client.list_offsets({("twice", 0): -1})["twice", 0].offset == 0


def test_several_batches_at_once_are_refused(broker: Broker) -> None:
    """Brokers say INVALID_RECORD; a writer's piece has several from its batch_size on."""
    with Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        create(client, "several", 1)
        rows = pa.record_batch({"value": pa.array([b"x" * 100] * 300, pa.binary())})
        (piece,) = ColumnWriter(**producer.fields("several", 0)).write(rows)
        with pytest.raises(
            OptionError, match=r"several-0: expected one batch of 300 records, found \d+ bytes whose first"
        ):
            producer.send("several", 0, piece, 300)
        first = next(iter(read_batches(piece)))
        records, end = first.count, first.size_bytes
        for count in (records - 1, records + 1):
            with pytest.raises(OptionError, match=f"expected one batch of {count} records"):
                producer.send("several", 0, piece[:end], count)
        for size in (0, 11, 60, end - 1, end + 1):
            with pytest.raises(OptionError, match=f"found {size} bytes"):
                producer.send("several", 0, piece[:size], records)
        producer.send("several", 0, piece[:end], records)
        assert end_of(broker, "several") == records


BROKEN: dict[str, Any] = {
    "refused": lambda broker: broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER"),
    "refused-twice": lambda broker: broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2),
    "lost": lambda broker: broker.faults.drop("Produce"),
    "answer-lost": lambda broker: broker.faults.drop("Produce", after=True),
    "answers-lost": lambda broker: broker.faults.drop("Produce", after=True, times=2),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("after", [0, 3])
@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize("transactional", [False, True])
def test_rounds_are_written_once_and_in_order_if_one_fails(
    broker: Broker, kind: str, after: int, transactional: bool
) -> None:
    topic = f"rounds-{kind}-{after}-{transactional}"
    settings: dict[str, Any] = {"transactional.id": topic} if transactional else {}
    settings |= {"retry.backoff.ms": 5, "retry.backoff.max.ms": 20}
    with Client(broker.bootstrap_servers, **settings) as client, Producer(client) as producer:
        create(client, topic, PARTITIONS)
        if transactional:
            producer.begin()
        for n in range(ROUNDS):
            if n == after:
                until(lambda: end_of(broker, topic) >= 2 * after)
                BROKEN[kind](broker)
            producer.post([batch(producer, topic, partition, n) for partition in range(PARTITIONS)])
        if transactional:
            producer.commit()  # waits for them, too
        producer.flush()
        assert not broker.faults.pending
    for partition in range(PARTITIONS):
        assert written(broker, topic, partition) == list(range(ROUNDS))


def test_an_error_that_is_not_retriable_resets_the_sequence_to_the_first_lost_batch(
    broker: Broker,
) -> None:
    with Client(broker.bootstrap_servers, **SOON) as client:
        create(client, "spoilt", PARTITIONS)
        producer = Producer(client)
        producer.send_all([batch(producer, "spoilt", partition, 0) for partition in range(PARTITIONS)])

        def post_all() -> None:
            for n in range(1, 4):
                together = [batch(producer, "spoilt", partition, n) for partition in range(PARTITIONS)]
                if n == 2:
                    together[0] = together[0]._replace(data=bytes(together[0].data[:-1]) + b"?")
                producer.post(together)
            producer.flush()

        with pytest.raises(BrokerError, match=r"^spoilt-0: CORRUPT_MESSAGE"):
            post_all()
        assert producer.fields("spoilt", 0)["base_sequence"] == 4
        producer.send_all([batch(producer, "spoilt", 0, 9)])
    assert written(broker, "spoilt", 0) == [0, 1, 9]


@pytest.mark.parametrize(
    ("first", "bases"),
    [
        (2**31 - 4, [2**31 - 4, 2**31 - 2, 0]),  # the second batch ends with the largest number
        (2**31 - 3, [2**31 - 3, 2**31 - 1, 1]),  # the second batch has the largest number and 0
        (2**31 - 2, [2**31 - 2, 0, 2]),
        (2**31 - 1, [2**31 - 1, 1, 3]),
    ],
)
def test_sequence_numbers_wrap_to_zero_as_kafkas(broker: Broker, first: int, bases: list[int]) -> None:
    """DefaultRecordBatch.incrementSequence; the broker's log refuses any other number as out of order."""
    topic = f"wraps-{first}"
    with Client(broker.bootstrap_servers, **SOON) as client, Producer(client) as producer:
        create(client, topic, 1)
        producer.fields(topic, 0)  # which asks for the producer id
        producer._sequences[topic, 0] = first
        for n in range(3):
            producer.send_all([batch(producer, topic, 0, n)])
        stored = [one for fetched in client.read(topic, 0, 0, 6) for one in read_batches(fetched.records)]
    assert [one.base_sequence for one in stored] == bases
    assert written(broker, topic, 0) == [0, 1, 2]


def test_without_idempotence_one_round_is_in_flight(broker: Broker) -> None:
    settings = {"acks": "1", "enable.idempotence": "false"}
    with Client(broker.bootstrap_servers, **settings) as client:
        create(client, "one-by-one")
        producer = Producer(client)
        producer.send_all([batch(producer, "one-by-one", 0, 0)])
        broker.faults.delay("Produce", 300)
        before = time.monotonic()
        producer.post([batch(producer, "one-by-one", 0, 1)])
        producer.post([batch(producer, "one-by-one", 0, 2)])
        assert time.monotonic() - before >= 0.29
        producer.flush()
    assert written(broker, "one-by-one", 0) == [0, 1, 2]


def test_the_first_producer_id_of_a_cluster_has_several_rounds_in_flight() -> None:
    with Broker() as broker, Client(broker.bootstrap_servers) as client, Producer(client) as producer:
        create(client, "first")
        producer.send_all([batch(producer, "first", 0, 0)])
        assert producer.producer_id == 0
        for n in (1, 2):
            producer.post([batch(producer, "first", 0, n)])
        assert len(producer._in_flight) == 2
