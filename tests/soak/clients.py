"""Clients of a soak: threads with librdkafka that write and read while the broker is killed and restarted.

Every value has its writer and a sequence number, so that a reader can detect lost, duplicate and reordered records:

    plain   PlainWriter: "writer:partition:number", numbers of a writer in a partition are 0, 1, 2 ...
    in      a PlainWriter too; Copier copies it to `out` in transactions together with the group's offsets
    tx      TransactionalWriter: "writer:transaction:partition:i:n", n records of the transaction in the partition
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from enum import Enum
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from tests.waiting import HANG_S

__all__ = ["GIVE_UP_S", "PARTITIONS", "Copier", "LiveReader", "Outcome", "PlainWriter", "TransactionalWriter", "Worker"]

PARTITIONS = 3
GIVE_UP_S = HANG_S
CLIENT: dict[str, Any] = {
    "log_level": 0,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "metadata.recovery.strategy": "none",  # with rebootstrap, librdkafka 2.15 waits forever for a removed broker
}
PRODUCER = {
    **CLIENT,
    "enable.idempotence": True,
    "message.timeout.ms": 0,
    "linger.ms": 5,
    "queue.buffering.max.messages": 5000,
}


class Worker(threading.Thread):
    """A thread that works until `finish` is set. problem: the error that ended it."""

    def __init__(self, name: str, bootstrap_servers: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.servers = {"bootstrap.servers": bootstrap_servers}
        self.random = random.Random(f"{seed}/{name}")
        self.finish = threading.Event()
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.problem = error

    def work(self) -> None:
        """Work until `finish` is set."""
        raise NotImplementedError

    def end(self) -> None:
        """Wait for it to finish. Raises its error."""
        self.finish.set()
        self.join(GIVE_UP_S)
        if self.is_alive():
            raise AssertionError(f"{self.name} did not finish in {GIVE_UP_S} s")
        if self.problem is not None:
            raise AssertionError(f"{self.name}: {self.problem!r}") from self.problem


class PlainWriter(Worker):
    """Idempotent producer. acknowledged: records by partition."""

    def __init__(self, name: str, bootstrap_servers: str, seed: int, topic: str, codec: str = "none") -> None:
        super().__init__(name, bootstrap_servers, seed)
        self.topic, self.codec = topic, codec
        self.acknowledged: Counter[int] = Counter()
        self.errors: list[str] = []

    def work(self) -> None:
        producer = Producer({**self.servers, **PRODUCER, "compression.type": self.codec})
        numbers: Counter[int] = Counter()
        while not self.finish.is_set():
            for _ in range(self.random.randint(1, 60)):
                partition = self.random.randrange(PARTITIONS)
                value = f"{self.name}:{partition}:{numbers[partition]}"
                with contextlib.suppress(BufferError):  # the broker is away
                    producer.produce(self.topic, value, partition=partition, on_delivery=self._delivered)
                    numbers[partition] += 1
            producer.poll(0)
            self.finish.wait(self.random.random() * 0.06)
        left = producer.flush(GIVE_UP_S)
        if left or self.errors or self.acknowledged != numbers:
            raise AssertionError(f"{left} records without a response, errors {self.errors[:3]}")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[message.partition()] += 1


class Outcome(Enum):
    """The outcome of a transaction, as far as its producer knows."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # the producer failed permanently during the commit


class Transactions:
    """A transactional producer that recovers from every error. end() returns the outcome of a transaction."""

    def __init__(self, settings: dict[str, Any], transactional_id: str) -> None:
        self._settings = {**settings, **PRODUCER, "transactional.id": transactional_id}
        self.replaced = 0
        self.producer = self._new()

    def _new(self) -> Producer:
        while True:
            producer = Producer(self._settings)
            with contextlib.suppress(KafkaException):
                again(producer.init_transactions, 10)
                return producer

    def replace(self) -> None:
        """Replace the producer, as after a crash; an open transaction is aborted."""
        self.producer, self.replaced = self._new(), self.replaced + 1

    def end(self, *, commit: bool) -> Outcome:
        """Commit or abort the transaction."""
        if commit:
            try:
                again(self.producer.commit_transaction, 10)
            except KafkaException as error:
                if not error.args[0].txn_requires_abort():
                    self.replace()
                    return Outcome.UNKNOWN
            else:
                return Outcome.COMMITTED
        try:
            again(self.producer.abort_transaction, 10)
        except KafkaException:
            self.replace()
        return Outcome.ABORTED


def again(call: Any, *arguments: Any) -> None:
    """Call until success or an error that is not retriable."""
    while True:
        try:
            return call(*arguments)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


class TransactionalWriter(Worker):
    """Writes transactions to several partitions. outcomes: by transaction, with its records by partition."""

    def __init__(self, name: str, bootstrap_servers: str, seed: int) -> None:
        super().__init__(name, bootstrap_servers, seed)
        self.outcomes: list[tuple[Outcome, dict[int, int]]] = []
        self.replaced = 0

    def work(self) -> None:
        transactions = Transactions(self.servers, self.name)
        while not self.finish.is_set():
            counts = {
                partition: self.random.randint(1, 20)
                for partition in self.random.sample(range(PARTITIONS), self.random.randint(1, PARTITIONS))
            }
            self.outcomes.append((self._transact(transactions, counts), counts))
            self.finish.wait(self.random.random() * 0.05)
        self.replaced = transactions.replaced

    def _transact(self, transactions: Transactions, counts: dict[int, int]) -> Outcome:
        wanted = self.random.random()
        try:
            transactions.producer.begin_transaction()
            for partition, count in counts.items():
                for i in range(count):
                    value = f"{self.name}:{len(self.outcomes)}:{partition}:{i}:{count}"
                    transactions.producer.produce("tx", value, partition=partition)
        except KafkaException:
            return transactions.end(commit=False)
        if wanted < 0.1:
            if wanted < 0.05:
                transactions.producer.flush(1)
            transactions.replace()  # the old one is fenced with a transaction open
            return Outcome.ABORTED
        return transactions.end(commit=wanted < 0.8)


class Copier(Worker):
    """Reads `in` in a group and writes it to `out`, each batch and the group's offsets in one transaction."""

    def __init__(self, name: str, bootstrap_servers: str, seed: int) -> None:
        super().__init__(name, bootstrap_servers, seed)
        self.copied = 0
        self.aborted = 0
        self.replaced = 0
        self.goal: Counter[int] | None = None  # records by partition; ends when as many were copied

    def work(self) -> None:
        transactions = Transactions(self.servers, self.name)
        consumer = Consumer(
            {
                **self.servers,
                **CLIENT,
                "group.id": self.name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe(["in"])
        while not self._is_done(consumer):
            batch = [each for each in consumer.consume(self.random.randint(1, 300), 0.2) if each.error() is None]
            if batch and not self._copy(consumer, transactions, batch):
                self.aborted += 1
                rewind(consumer)
        consumer.close()
        self.replaced = transactions.replaced

    def _is_done(self, consumer: Consumer) -> bool:
        if not self.finish.is_set() or self.goal is None:
            return False
        partitions = [TopicPartition("in", number) for number in range(PARTITIONS)]
        try:
            committed = consumer.committed(partitions, 5)
        except KafkaException:
            return False
        return all(each.offset >= self.goal[each.partition] for each in committed)

    def _copy(self, consumer: Consumer, transactions: Transactions, batch: list[Message]) -> bool:
        producer = transactions.producer
        places = {each.partition(): each.offset() + 1 for each in batch}
        offsets = [TopicPartition("in", partition, offset) for partition, offset in places.items()]
        try:
            producer.begin_transaction()
            for each in batch:
                producer.produce("out", each.value(), partition=each.partition())
            again(producer.send_offsets_to_transaction, offsets, consumer.consumer_group_metadata(), 10)
        except KafkaException:
            transactions.end(commit=False)
            return False
        done = transactions.end(commit=self.random.random() < 0.85) is Outcome.COMMITTED
        self.copied += len(batch) if done else 0
        return done


def rewind(consumer: Consumer) -> None:
    """Continue at the committed offsets of the group, those of the last committed transaction."""
    while True:
        assigned = consumer.assignment()
        try:
            for each in consumer.committed(assigned, 10) if assigned else []:
                consumer.seek(TopicPartition(each.topic, each.partition, max(each.offset, 0)))
        except KafkaException:  # no broker, or the partitions went meanwhile
            consumer.poll(0.1)  # its records come again after the seek
            continue
        return


class LiveReader(Worker):
    """Reads a topic continuously. seen: value by partition and offset, compared with the topic at the end."""

    def __init__(self, name: str, bootstrap_servers: str, seed: int, topic: str, group: str | None = None) -> None:
        super().__init__(name, bootstrap_servers, seed)
        self.topic, self.group = topic, group
        self.seen: dict[tuple[int, int], bytes] = {}
        self.goal = 0  # records; ends when it has seen as many

    def work(self) -> None:
        consumer = Consumer(
            {
                **self.servers,
                **CLIENT,
                "group.id": self.group or self.name,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 300,
                "enable.auto.commit": self.group is not None,
                "isolation.level": "read_committed",
            }
        )
        if self.group is None:
            consumer.assign([TopicPartition(self.topic, number, 0) for number in range(PARTITIONS)])
        else:
            consumer.subscribe([self.topic])
        places: Counter[int] = Counter()
        while not (self.finish.is_set() and len(self.seen) >= self.goal):
            for message in consumer.consume(1000, 0.2):
                if message.error() is not None:
                    continue
                place, value = (message.partition(), message.offset()), message.value()
                if self.seen.setdefault(place, value) != value:
                    raise AssertionError(f"{self.topic} {place} was {self.seen[place]!r} and is {value!r}")
                if self.group is None and message.offset() < places[message.partition()]:
                    raise AssertionError(f"{self.topic} {place} came a second time")
                places[message.partition()] = message.offset() + 1
        consumer.close()
