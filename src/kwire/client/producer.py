"""Writing whole batches: idempotent, or as part of a transaction.

    with Producer(client) as producer:                        producer = Producer(client)   # with transactional.id
        producer.send("orders", 0, batch, 10)                 producer.begin(); ...; producer.commit()

A batch is bytes of one magic 2 batch with the producer's id, epoch and next sequence in its header: `fields(...)` says
which. send_all writes to many partitions in one request a broker.

A transaction can be begun in one process and ended in another: leave() gives what the other one needs.
Source: KIP-98, KIP-360, KIP-447.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import GROUP, PRODUCE_VERSION, Client, raise_for
from kwire.client.cluster import TopicPartition
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode

__all__ = ["OpenTransaction", "OutgoingBatch", "Produced", "Producer"]

MAX_SEQUENCE = 2**31 - 1


class OutgoingBatch(NamedTuple):
    """One batch on its way. data: bytes of one magic 2 batch of record_count records."""

    topic: str
    partition: int
    data: bytes | memoryview
    record_count: int


class OpenTransaction(NamedTuple):
    """A transaction that its producer has left open, for another process to end. partitions: that it wrote to."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]


class Produced(NamedTuple):
    """Where a batch went. base_offset: -1 with acks=0, and for a batch that the broker had already."""

    topic: str
    partition: int
    base_offset: int


class Producer:
    """Writes batches to the leaders of partitions.

    With transactional.id among the client's settings, batches belong to transactions. Raises as Client does; a
    producer that was fenced (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED) must not be used again.
    resume: a transaction that another producer has left open, to be ended by this one.
    """

    def __init__(self, client: Client, *, resume: OpenTransaction | None = None) -> None:
        self.client, settings = client, client.settings
        self.transactional_id = settings.transactional_id
        self.producer_id, self.producer_epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._in_transaction: set[TopicPartition] | None = None
        self._coordinator = -1
        if settings.acks != -1 and (self.transactional_id or settings.enable_idempotence):
            raise OptionError("Setting 'acks': idempotence needs all; set enable.idempotence to false for others")
        if resume is not None:
            self.transactional_id = resume.transactional_id
            self.producer_id, self.producer_epoch = resume.producer_id, resume.producer_epoch
            self._in_transaction = set(resume.partitions)
            self._coordinator = client.coordinator(resume.transactional_id)
        elif self.transactional_id or settings.enable_idempotence:
            self._init()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if self._in_transaction is not None:
            try:
                self.abort()
            except (BrokerError, ConnectionFailed):
                if kind is None:  # else what brought us here says more
                    raise

    def _init(self) -> None:
        cls: Any = registry.get("InitProducerIdRequest")
        request = cls(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.client.settings.transaction_timeout_ms
        )

        def attempt() -> Any:
            if self.transactional_id:
                self._coordinator = self.client.coordinator(self.transactional_id)
            answer = self.client.connection(self._coordinator if self.transactional_id else None).request(
                request, version=5
            )
            raise_for(answer.error_code, f"producer {self.transactional_id or ''}".strip())
            return answer

        answer = self.client.retry(attempt)
        self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def fields(self, topic: str, partition: int) -> dict[str, Any]:
        """What the next batch for a partition must carry, as kwire.records' writers name it."""
        if self.producer_id < 0:
            return {}
        return {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "base_sequence": self._sequences.get((topic, partition), 0),
            "is_transactional": self.transactional_id is not None,
        }

    # ---- transactions

    def begin(self) -> None:
        """Begin a transaction. Raises OptionError without a transactional.id, or inside another one."""
        if self.transactional_id is None:
            raise OptionError("a transaction needs the setting transactional.id")
        if self._in_transaction is not None:
            raise OptionError("a transaction is open already")
        self._in_transaction = set()

    def leave(self) -> OpenTransaction | None:
        """Leave the transaction open, to be ended by another process, and this producer useless; None if it is empty.

        Raises OptionError where no transaction is open.
        """
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        partitions, self._in_transaction = self._in_transaction, None
        if not partitions:
            return None
        assert self.transactional_id is not None  # begin()
        return OpenTransaction(self.transactional_id, self.producer_id, self.producer_epoch, tuple(sorted(partitions)))

    def check(self) -> None:
        """Ask the coordinator whether the transaction is open still.

        Raises BrokerError: it was aborted after transaction.timeout.ms, or another producer has its id now.
        """
        if not self._in_transaction:
            raise OptionError("no transaction is open")
        self._add_to_transaction(list(self._in_transaction)[:1])

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit offsets of a group if the transaction commits, each with metadata. The group has no members.

        Raises OptionError outside of a transaction, BrokerError for offsets that the group's coordinator refuses.
        """
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        add: Any = registry.get("AddOffsetsToTxnRequest")
        fields: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "group_id": group,
        }
        self._ask_coordinator(add(**fields), version=3, what=f"offsets of group {group!r}")
        cls: Any = registry.get("TxnOffsetCommitRequest")
        topics: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                cls.TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = cls(
            **fields,
            topics=[cls.TxnOffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()],
        )

        def attempt() -> None:
            connection = self.client.connection(self.client.coordinator(group, GROUP))
            # Version 5 would promise what EndTxn's does, see _end.
            for topic in connection.request(request, version=4).topics:
                for each in topic.partitions:
                    raise_for(each.error_code, f"offset {topic.name}-{each.partition_index} of group {group!r}")

        self.client.retry(attempt)

    def commit(self) -> None:
        """Commit: readers of committed data see all of the transaction's batches from now on."""
        self._end(committed=True)

    def abort(self) -> None:
        """Abort: readers of committed data never see the transaction's batches."""
        self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        partitions, self._in_transaction = self._in_transaction, None
        if not partitions:
            return
        cls: Any = registry.get("EndTxnRequest")
        request = cls(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        # Version 5 would promise that the broker adds partitions by itself and raises the epoch.
        self._ask_coordinator(request, version=4, what="commit" if committed else "abort")

    def _ask_coordinator(self, request: Any, *, version: int, what: str) -> Any:
        def attempt() -> Any:
            try:
                answer = self.client.connection(self._coordinator).request(request, version=version)
                codes = [answer.error_code] if hasattr(answer, "error_code") else []
                codes += [
                    each.partition_error_code
                    for topic in getattr(answer, "results_by_topic_v3_and_below", ())
                    for each in topic.results_by_partition
                ]
                for code in codes:
                    raise_for(code, f"{what} of {self.transactional_id}")
            except (BrokerError, ConnectionFailed):
                self._coordinator = self.client.coordinator(self.transactional_id or "")
                raise
            return answer

        return self.client.retry(attempt)

    def _add_partitions(self, keys: Iterable[TopicPartition]) -> None:
        if self.transactional_id is None:
            return
        if self._in_transaction is None:
            raise OptionError("a transactional producer writes between begin() and commit()")
        new = [key for key in keys if key not in self._in_transaction]
        if new:
            self._add_to_transaction(new)
            self._in_transaction.update(new)

    def _add_to_transaction(self, keys: Sequence[TopicPartition]) -> None:
        cls: Any = registry.get("AddPartitionsToTxnRequest")
        topics: dict[str, list[int]] = {}
        for topic, partition in keys:
            topics.setdefault(topic, []).append(partition)
        request = cls(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[
                cls.AddPartitionsToTxnTopic(name=name, partitions=each) for name, each in topics.items()
            ],
        )
        self._ask_coordinator(request, version=3, what="transaction")

    # ---- batches

    def send(self, topic: str, partition: int, batch: bytes | memoryview, record_count: int) -> Produced:
        """Write a batch of record_count records and wait until the broker has it.

        A batch whose answer was lost is sent again; with idempotence the broker tells that it has it already.
        """
        (done,) = self.send_all([OutgoingBatch(topic, partition, batch, record_count)])
        return done

    def send_all(self, batches: Sequence[OutgoingBatch]) -> list[Produced]:
        """Write batches, at most one for each partition, and wait until the brokers have them; as send does.

        All brokers work at the same time, each on one request.
        """
        left = {(each.topic, each.partition): each for each in batches}
        assert len(left) == len(batches)  # one for each partition
        self._add_partitions(left)
        done: dict[TopicPartition, Produced] = {}

        def attempt() -> None:
            by_leader: dict[int, list[OutgoingBatch]] = {}
            for key, each in left.items():
                by_leader.setdefault(self.client.leader(key), []).append(each)
            asked: list[tuple[BrokerConnection, list[OutgoingBatch]]] = []
            failure: BrokerError | ConnectionFailed | None = None
            for node_id, some in by_leader.items():
                try:
                    connection = self.client.connection(node_id)
                    connection.send(self._request(some), version=version_of(connection))
                    asked.append((connection, some))
                except (BrokerError, ConnectionFailed) as error:
                    failure = error
            for connection, some in asked:  # every one: an answer that is left would be taken for the next one
                try:
                    answers = self._answers(connection, some)
                except ConnectionFailed as error:
                    failure = error
                    continue
                for key, answer in answers.items():
                    try:
                        done[key] = self._check(key, answer)
                        self._advance(key, left.pop(key).record_count)
                    except BrokerError as error:
                        failure = error if failure is None or not ErrorCode(error.code).retriable else failure
            if failure is not None:
                raise failure

        self.client.retry(attempt)
        return [done[each.topic, each.partition] for each in batches]

    def _answers(self, connection: BrokerConnection, batches: Sequence[OutgoingBatch]) -> dict[TopicPartition, Any]:
        """What the broker says of each partition; None with acks=0, where it says nothing."""
        if self.client.settings.acks == 0:
            return {(each.topic, each.partition): None for each in batches}
        return {
            (topic.name, each.index): each
            for topic in connection.receive().responses
            for each in topic.partition_responses
        }

    def _advance(self, key: TopicPartition, record_count: int) -> None:
        if self.producer_id >= 0:
            following = self._sequences.get(key, 0) + record_count
            self._sequences[key] = following if following <= MAX_SEQUENCE else following - MAX_SEQUENCE - 1

    def _request(self, batches: Iterable[OutgoingBatch]) -> Any:
        cls: Any = registry.get("ProduceRequest")
        topics: dict[str, list[Any]] = {}
        for each in batches:
            data = cls.PartitionProduceData(index=each.partition, records=each.data)
            topics.setdefault(each.topic, []).append(data)
        return cls(
            transactional_id=self.transactional_id,
            acks=self.client.settings.acks,
            timeout_ms=self.client.settings.request_timeout_ms,
            topic_data=[cls.TopicProduceData(name=name, partition_data=data) for name, data in topics.items()],
        )

    def _check(self, key: TopicPartition, each: Any) -> Produced:
        if each is None:
            return Produced(*key, -1)
        if each.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return Produced(*key, -1)
        message = each.error_message or "; ".join(
            f"record {error.batch_index}: {error.batch_index_error_message}" for error in each.record_errors
        )
        raise_for(each.error_code, f"{key[0]}-{key[1]}", message)
        return Produced(*key, each.base_offset)


def version_of(connection: BrokerConnection) -> int:
    """The version of Produce to use: none that names topics by id."""
    return min(PRODUCE_VERSION, connection.version_for(0))
