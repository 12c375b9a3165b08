"""Writing whole batches: idempotent, or as part of a transaction.

    with Producer(client) as producer:                        producer = Producer(client)   # with transactional.id
        producer.send("orders", 0, batch, 10)                 producer.begin(); ...; producer.commit()

A batch is bytes of one magic 2 batch with the producer's id, epoch and next sequence in its header: `fields(...)` says
which. send_all writes to many partitions in one request a broker; post does not wait for the answer, flush does:

    post     a round: one batch for each of some partitions, a request for each broker that leads some of them
    settle   the answers to the oldest round
    retry    when one fails: all answers under way are taken, then what is not written is sent again round by round,
             each when the one before is written. Brokers tell batches that they have already by their sequence

Brokers before Kafka 0.11 (Produce 0 to 2) take older record formats: batches are converted down for them, and refused
where the format cannot hold what is in them (`old_brokers`).

A transaction can be begun in one process and ended in another: leave() gives what the other one needs.
Source: KIP-98, KIP-360, KIP-447.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import GROUP, PRODUCE_VERSION, Client, raise_for
from kwire.client.cluster import TopicPartition
from kwire.client.old_brokers import data_for, require_producer_ids
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.splicing import RECORDS_ELSEWHERE

__all__ = ["OpenTransaction", "OutgoingBatch", "Produced", "Producer"]

MAX_SEQUENCE = 2**31 - 1
MOST_ROUNDS = 5  # under way: brokers know the last five batches of a producer again (ProducerStateEntry)
MOST_BYTES = 16 << 20  # of all rounds under way


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


@dataclass(slots=True)
class Round:
    """Batches that go together. left: not written yet; sequences: that they begin with; asked: who has to answer."""

    left: dict[TopicPartition, OutgoingBatch]
    sequences: dict[TopicPartition, int]
    size_bytes: int
    asked: list[tuple[BrokerConnection, list[OutgoingBatch]]] = field(default_factory=list)
    done: dict[TopicPartition, Produced] = field(default_factory=dict)


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
        self._under_way: deque[Round] = deque()
        self._begun: set[TopicPartition] = set()  # brokers have a batch of this producer
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
            require_producer_ids(self.client.connection(), transactions=self.transactional_id is not None)
            if self.transactional_id:
                self._coordinator = self.client.coordinator(self.transactional_id)
            connection = self.client.connection(self._coordinator if self.transactional_id else None)
            answer = connection.request(request, version=5)
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
        self.flush()
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
        self.flush()
        self._add_to_transaction(list(self._in_transaction)[:1])

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit offsets of a group if the transaction commits, each with metadata. The group has no members.

        Raises OptionError outside of a transaction, BrokerError for offsets that the group's coordinator refuses.
        """
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        self.flush()
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
        self.flush()
        self._end(committed=True)

    def abort(self) -> None:
        """Abort: readers of committed data never see the transaction's batches."""
        while self._under_way:
            self._take(self._under_way.popleft())  # whatever became of it
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
            self.flush()
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
        sent = self.post(batches)
        self.flush()
        return [sent.done[each.topic, each.partition] for each in batches]

    def post(self, batches: Sequence[OutgoingBatch]) -> Round:
        """Send batches, at most one for each partition, and leave the answers for flush() or a later call.

        With idempotence up to MOST_ROUNDS are under way, else one: sent again, batches could come in another order.
        Raises for batches posted before, too. fields() counts what was posted; after an error, what was written.
        """
        left = {(each.topic, each.partition): each for each in batches}
        assert len(left) == len(batches)  # one for each partition
        self._add_partitions(left)
        size = sum(len(each.data) for each in batches)
        most = MOST_ROUNDS if self.producer_id >= 0 else 1
        while self._under_way and (
            len(self._under_way) >= most or size + sum(each.size_bytes for each in self._under_way) > MOST_BYTES
        ):
            self._settle()
        # What finds a leader is answered behind those under way. And of a producer that a broker does not know it takes
        # any sequence: were a partition's first batch refused, it would take the second before the first is sent again.
        if not (self._begun.issuperset(left) and all(map(self.client.is_ready_for, left))):
            self.flush()
        posted = Round(left, {key: self._sequences.get(key, 0) for key in left}, size)
        for key, each in left.items():
            self._advance(key, each.record_count)
        self._under_way.append(posted)
        failure = self._ask(posted)
        if failure is not None:
            self._send_again(failure)
        return posted

    def flush(self) -> None:
        """Wait until the brokers have everything that was posted. Raises as send does."""
        while self._under_way:
            self._settle()

    def _settle(self) -> None:
        """Take the answers to the oldest round; where one fails, to all of them."""
        failure = self._take(self._under_way[0])
        if failure is None:
            self._under_way.popleft()
        else:
            self._send_again(failure)

    def _send_again(self, failure: BrokerError | ConnectionFailed) -> None:
        """Write what the rounds under way have left, one round after the other. failure: of one of them.

        A round behind one that failed fails for that reason alone, or is written: so only the first failure counts.
        """
        rounds = list(self._under_way)
        self._under_way.clear()
        for each in rounds:
            first = self._take(each)
            if first is not None and each is rounds[0]:
                failure = first
        passing: BrokerError | ConnectionFailed | None = failure
        try:
            for each in rounds:

                def attempt(each: Round = each) -> None:
                    nonlocal passing
                    error, passing = passing, None
                    if error is None and each.left:
                        error = self._ask(each)
                        error = self._take(each) or error
                    if error is not None:
                        raise error

                self.client.retry(attempt)
        except BaseException:
            for each in reversed(rounds):
                self._sequences.update({key: each.sequences[key] for key in each.left})
            raise

    def _ask(self, posted: Round) -> BrokerError | ConnectionFailed | None:
        """Send what is left of a round to its leaders; what failed, where something did.

        What was sent is to be taken all the same: an answer that is left would be taken for the next one.
        """
        failure: BrokerError | ConnectionFailed | None = None
        by_leader: dict[int, list[OutgoingBatch]] = {}
        try:
            for key, each in posted.left.items():
                by_leader.setdefault(self.client.leader(key), []).append(each)
        except (BrokerError, ConnectionFailed) as error:
            return error
        for node_id, some in by_leader.items():
            try:
                connection = self.client.connection(node_id)
                version = version_of(connection)
                request, payloads = self._request(some, version, connection.address)
                connection.send(request, version=version, payloads=payloads)
                posted.asked.append((connection, some))
            except (BrokerError, ConnectionFailed) as error:
                failure = error
        return failure

    def _take(self, posted: Round) -> BrokerError | ConnectionFailed | None:
        """The answers to a round; what failed, where something did. An error that does not pass goes before others."""
        failure: BrokerError | ConnectionFailed | None = None
        asked, posted.asked = posted.asked, []
        for connection, some in asked:
            try:
                answers = self._answers(connection, some)
            except ConnectionFailed as error:
                failure = failure or error
                continue
            for key, answer in answers.items():
                try:
                    posted.done[key] = self._check(key, answer)
                    self._begun.add(key)
                    del posted.left[key]
                except BrokerError as error:
                    failure = error if failure is None or not ErrorCode(error.code).retriable else failure
        if posted.left and asked and failure is None:
            (topic, partition), *_ = posted.left
            failure = BrokerError(f"the answer lacks {topic}-{partition}", ErrorCode.UNKNOWN_SERVER_ERROR)
        return failure

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

    def _request(
        self, batches: Iterable[OutgoingBatch], version: int, address: str
    ) -> tuple[Any, list[bytes | memoryview]]:
        """A request, and the batches that belong in its places, as this version of it may carry them."""
        cls: Any = registry.get("ProduceRequest")
        topics: dict[str, list[OutgoingBatch]] = {}
        for each in batches:
            topics.setdefault(each.topic, []).append(each)
        request = cls(
            transactional_id=self.transactional_id,
            acks=self.client.settings.acks,
            timeout_ms=self.client.settings.request_timeout_ms,
            topic_data=[
                cls.TopicProduceData(
                    name=name,
                    partition_data=[
                        cls.PartitionProduceData(index=each.partition, records=RECORDS_ELSEWHERE) for each in some
                    ],
                )
                for name, some in topics.items()
            ],
        )
        payloads = [
            data_for(each.data, version, f"{name}-{each.partition} on {address}")
            for name, some in topics.items()
            for each in some
        ]
        return request, payloads

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
