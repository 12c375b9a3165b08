"""Producer of complete batches: idempotent, or transactional.

    with Producer(client) as producer:                        producer = Producer(client)   # with transactional.id
        producer.send("orders", 0, batch, 10)                 producer.begin(); ...; producer.commit()

A batch is the bytes of one magic 2 batch with the producer's id, epoch and next sequence in its header, which
`fields(...)` returns. `send_all` writes to many partitions, with one request per broker. `post` does not wait for the
responses, `flush` does:

    round    at most one batch per partition, sent in one request to each of their leaders
    settle   receive the responses to the oldest round
    retry    after an error, receive all responses in flight, then send the batches that are not written again, a round
             when the one before is written. Brokers recognize batches that they have by their sequence

Brokers before Kafka 0.11 (Produce 0 to 2) accept older record formats only: batches are down-converted for them, and
refused if the older format cannot represent them (`old_brokers`).

A transaction can begin in one process and end in another: `leave` returns what the other process needs.
Source: KIP-98, KIP-360, KIP-447.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import GROUP, PRODUCE_VERSION, Client, raise_for, raise_for_offsets
from kwire.client.old_brokers import data_for, require_producer_ids
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.identifiers import TopicPartition, by_topic
from kwire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kwire.messages.base import Message
from kwire.messages.produce_response import PartitionProduceResponse
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.splicing import RECORDS_ELSEWHERE
from kwire.records.format.batch_header import DEFAULT_HEADER, DEFAULT_HEADER_BYTES, FRAME_BYTES

__all__ = ["OpenTransaction", "OutgoingBatch", "Produced", "Producer"]

MAX_SEQUENCE = 2**31 - 1
MAX_ROUNDS_IN_FLIGHT = 5  # brokers recognize the last five batches of a producer (ProducerStateEntry)
MAX_BYTES_IN_FLIGHT = 16 << 20


class OutgoingBatch(NamedTuple):
    """A batch to be written. data: bytes of one magic 2 batch of record_count records."""

    topic: str
    partition: int
    data: bytes | memoryview
    record_count: int


def require_one_batch(batch: OutgoingBatch) -> None:
    """Raise OptionError unless the bytes are one batch with the stated number of records.

    Brokers refuse several with INVALID_RECORD and do not say why. What ColumnWriter.write yields may hold several.
    """
    header = bytes(batch.data[:DEFAULT_HEADER_BYTES]).ljust(DEFAULT_HEADER_BYTES, b"\0")
    _, size, *_, count = DEFAULT_HEADER.unpack(header)
    if FRAME_BYTES + size != len(batch.data) or count != batch.record_count:
        raise OptionError(
            f"{batch.topic}-{batch.partition}: expected one batch of {batch.record_count} records, found "
            f"{len(batch.data)} bytes whose first batch has {FRAME_BYTES + size} bytes and {count} records; "
            "send each batch by itself"
        )


class OpenTransaction(NamedTuple):
    """A transaction that its producer left open for another process to end.

    partitions: those written to. groups: those with offsets in it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    groups: tuple[str, ...] = ()


class Produced(NamedTuple):
    """A written batch. base_offset: -1 with acks=0, and for a batch that the broker had already."""

    topic: str
    partition: int
    base_offset: int


class ProducerFields(TypedDict, total=False):
    """Fields of a batch header that depend on the producer, by the argument names of kwire.records' writers."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool


@dataclass(slots=True)
class Round:
    """Batches that are sent together.

    unwritten: batches the brokers have not acknowledged. sequences: of the first record of each batch.
    open_requests: connections with a response to be received, and the batches sent on them.
    """

    unwritten: dict[TopicPartition, OutgoingBatch]
    sequences: dict[TopicPartition, int]
    size_bytes: int
    open_requests: list[tuple[BrokerConnection, list[OutgoingBatch]]] = field(default_factory=list)
    written: dict[TopicPartition, Produced] = field(default_factory=dict)


class Producer:
    """Writes batches to the leaders of partitions.

    Transactional if the client has transactional.id. A producer that was fenced (INVALID_PRODUCER_EPOCH,
    PRODUCER_FENCED) must not be used again. resume: a transaction left open by another producer, to be ended by this
    one. Raises BrokerError, ConnectionFailed, OptionError.
    """

    def __init__(self, client: Client, *, resume: OpenTransaction | None = None) -> None:
        self.client, settings = client, client.settings
        self.transactional_id = settings.transactional_id
        self.producer_id, self.producer_epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._in_transaction: set[TopicPartition] | None = None
        self._groups: set[str] = set()  # with offsets in the transaction
        self._coordinator = -1
        self._in_flight: deque[Round] = deque()
        self._begun: set[TopicPartition] = set()  # partitions with a batch of this producer
        if settings.acks != -1 and (self.transactional_id or settings.enable_idempotence):
            raise OptionError("config 'acks': idempotence requires all; set enable.idempotence to false to use others")
        if resume is not None:
            self.transactional_id = resume.transactional_id
            self.producer_id, self.producer_epoch = resume.producer_id, resume.producer_epoch
            self._in_transaction, self._groups = set(resume.partitions), set(resume.groups)
            self._coordinator = client.coordinator(resume.transactional_id)
        elif self.transactional_id or settings.enable_idempotence:
            self._init_producer_id()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if self._in_transaction is not None:
            try:
                self.abort()
            except (BrokerError, ConnectionFailed):
                if kind is None:  # else the first error says more
                    raise

    def _init_producer_id(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self.client.settings.transaction_timeout_ms
        )

        def attempt() -> InitProducerIdResponse:
            require_producer_ids(self.client.connection(), transactions=self.transactional_id is not None)
            if self.transactional_id:
                self._coordinator = self.client.coordinator(self.transactional_id)
            connection = self.client.connection(self._coordinator if self.transactional_id else None)
            response = connection.request(request, InitProducerIdResponse, version=5)
            raise_for(response.error_code, f"producer {self.transactional_id or ''}".strip())
            return response

        response = self.client.retry(attempt)
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self._sequences.clear()

    def fields(self, topic: str, partition: int) -> ProducerFields:
        """Return the header fields of the next batch for a partition, as arguments of kwire.records' writers."""
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
            raise OptionError("transactions require the config transactional.id")
        if self._in_transaction is not None:
            raise OptionError("a transaction is already open")
        self._in_transaction, self._groups = set(), set()

    def leave(self) -> OpenTransaction | None:
        """Leave the transaction open for another process to end; None if it is empty.

        This producer must not be used again. Raises OptionError if no transaction is open.
        """
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        self.flush()
        partitions, self._in_transaction = self._in_transaction, None
        if not partitions and not self._groups:
            return None
        assert self.transactional_id is not None  # begin()
        written, groups = tuple(sorted(partitions)), tuple(sorted(self._groups))
        return OpenTransaction(self.transactional_id, self.producer_id, self.producer_epoch, written, groups)

    def check(self) -> None:
        """Check with the coordinator that the transaction is still open.

        Raises BrokerError if it was aborted after transaction.timeout.ms, or another producer uses its id now.
        """
        if self._in_transaction is None or not (self._in_transaction or self._groups):
            raise OptionError("no transaction is open")
        self.flush()
        if self._in_transaction:
            self._add_to_transaction(list(self._in_transaction)[:1])
        else:
            self._add_offsets(next(iter(self._groups)))

    def send_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Commit offsets of a group without members as part of the transaction, each with the same metadata.

        Raises OptionError if no transaction is open, BrokerError if the group's coordinator refuses an offset.
        """
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        self.flush()
        self._add_offsets(group)
        assert self.transactional_id is not None  # begin()
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offsets[topic, partition],
                            committed_metadata=metadata,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in by_topic(offsets).items()
            ],
        )

        def attempt() -> None:
            connection = self.client.connection(self.client.coordinator(group, GROUP))
            # Version 5 implies version 5 of EndTxn, see _end.
            topics = connection.request(request, TxnOffsetCommitResponse, version=4).topics
            codes = [
                ((topic.name, each.partition_index), each.error_code) for topic in topics for each in topic.partitions
            ]
            raise_for_offsets(codes, offsets, f"of group {group!r}", "TxnOffsetCommit")

        self.client.retry(attempt)

    def commit(self) -> None:
        """Commit the transaction: read_committed consumers see its batches from now on."""
        self.flush()
        self._end(committed=True)

    def abort(self) -> None:
        """Abort the transaction: read_committed consumers never see its batches."""
        while self._in_flight:
            self._receive_round(self._in_flight.popleft())  # whether it failed or not
        self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        if self._in_transaction is None:
            raise OptionError("no transaction is open")
        partitions, self._in_transaction = self._in_transaction, None
        if not partitions and not self._groups:  # the coordinator knows of no transaction
            return
        assert self.transactional_id is not None  # begin()
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            committed=committed,
        )
        # With version 5, brokers add partitions themselves and increase the epoch.
        self._request_coordinator(request, EndTxnResponse, version=4, what="commit" if committed else "abort")

    def _request_coordinator(
        self,
        request: Message,
        response: type[AddOffsetsToTxnResponse | AddPartitionsToTxnResponse | EndTxnResponse],
        *,
        version: int,
        what: str,
    ) -> None:
        def attempt() -> None:
            try:
                received = self.client.connection(self._coordinator).request(request, response, version=version)
                codes = [received.error_code]
                if isinstance(received, AddPartitionsToTxnResponse):
                    codes += [
                        each.partition_error_code
                        for topic in received.results_by_topic_v3_and_below
                        for each in topic.results_by_partition
                    ]
                for code in codes:
                    raise_for(code, f"{what} of {self.transactional_id}")
            except (BrokerError, ConnectionFailed):
                self._coordinator = self.client.coordinator(self.transactional_id or "")
                raise

        self.client.retry(attempt)

    def _add_offsets(self, group: str) -> None:
        assert self.transactional_id is not None  # begin()
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            group_id=group,
        )
        self._request_coordinator(request, AddOffsetsToTxnResponse, version=3, what=f"offsets of group {group!r}")
        self._groups.add(group)

    def _add_partitions(self, keys: Iterable[TopicPartition]) -> None:
        if self.transactional_id is None:
            return
        if self._in_transaction is None:
            raise OptionError("no transaction is open; call begin() before writing")
        new = [key for key in keys if key not in self._in_transaction]
        if new:
            self.flush()
            self._add_to_transaction(new)
            self._in_transaction.update(new)

    def _add_to_transaction(self, keys: Sequence[TopicPartition]) -> None:
        assert self.transactional_id is not None  # begin()
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic(keys).items()
            ],
        )
        self._request_coordinator(request, AddPartitionsToTxnResponse, version=3, what="transaction")

    # ---- batches

    def send(self, topic: str, partition: int, batch: bytes | memoryview, record_count: int) -> Produced:
        """Write one batch of record_count records and wait until it is acknowledged. Raises OptionError for several.

        A batch is sent again if the response is lost; with idempotence, the broker then recognizes it.
        """
        (written,) = self.send_all([OutgoingBatch(topic, partition, batch, record_count)])
        return written

    def send_all(self, batches: Sequence[OutgoingBatch]) -> list[Produced]:
        """Write batches, at most one per partition, and wait until they are acknowledged.

        All brokers work at the same time, each on one request.
        """
        posted = self.post(batches)
        self.flush()
        return [posted.written[each.topic, each.partition] for each in batches]

    def post(self, batches: Sequence[OutgoingBatch]) -> Round:
        """Send batches, at most one per partition, without waiting for the responses.

        With idempotence, up to MAX_ROUNDS_IN_FLIGHT calls are in flight; else one, as retries could reorder batches.
        Raises errors of batches posted before, too, and OptionError for two of a partition. `fields` counts posted
        batches, after an error only written ones.
        """
        unwritten = {(each.topic, each.partition): each for each in batches}
        if len(unwritten) < len(batches):
            raise OptionError("batches: two of one partition; post each by itself, so that their sequences follow")
        for each in batches:
            require_one_batch(each)
        self._add_partitions(unwritten)
        size = sum(len(each.data) for each in batches)
        limit = MAX_ROUNDS_IN_FLIGHT if self.producer_id >= 0 else 1
        while self._in_flight and (
            len(self._in_flight) >= limit
            or size + sum(each.size_bytes for each in self._in_flight) > MAX_BYTES_IN_FLIGHT
        ):
            self._settle()
        # Looking up a leader needs a connection without responses in flight. And a broker accepts any first sequence
        # of a producer: if it refused a partition's first batch, it would accept the second one before the retry.
        if not (self._begun.issuperset(unwritten) and all(map(self.client.is_ready_for, unwritten))):
            self.flush()
        posted = Round(unwritten, {key: self._sequences.get(key, 0) for key in unwritten}, size)
        for key, each in unwritten.items():
            self._advance(key, each.record_count)
        self._in_flight.append(posted)
        failure = self._send_round(posted)
        if failure is not None:
            self._retry_rounds(failure)
        return posted

    def flush(self) -> None:
        """Wait until all posted batches are acknowledged. Raises the errors of `send`."""
        while self._in_flight:
            self._settle()

    def _settle(self) -> None:
        """Receive the responses to the oldest round; after an error, retry all rounds in flight."""
        failure = self._receive_round(self._in_flight[0])
        if failure is None:
            self._in_flight.popleft()
        else:
            self._retry_rounds(failure)

    def _retry_rounds(self, failure: BrokerError | ConnectionFailed) -> None:
        """Write the unwritten batches of all rounds in flight, round by round. failure: of one of the rounds.

        The rounds after a failed one are written or fail because of it, so only the first failure counts.
        """
        rounds = list(self._in_flight)
        self._in_flight.clear()
        for each in rounds:
            error = self._receive_round(each)
            if error is not None and each is rounds[0]:
                failure = error
        first_error: BrokerError | ConnectionFailed | None = failure
        try:
            for each in rounds:

                def attempt(each: Round = each) -> None:
                    nonlocal first_error
                    error, first_error = first_error, None
                    if error is None and each.unwritten:
                        error = self._send_round(each)
                        error = self._receive_round(each) or error
                    if error is not None:
                        raise error

                self.client.retry(attempt)
        except BaseException:
            for each in reversed(rounds):
                self._sequences.update({key: each.sequences[key] for key in each.unwritten})
            raise

    def _send_round(self, posted: Round) -> BrokerError | ConnectionFailed | None:
        """Send the unwritten batches of a round to their leaders; return an error instead of raising it.

        The responses to what was sent have to be received even then, or they would be taken for later ones.
        """
        failure: BrokerError | ConnectionFailed | None = None
        by_leader: dict[int, list[OutgoingBatch]] = {}
        try:
            for key, each in posted.unwritten.items():
                by_leader.setdefault(self.client.leader(key), []).append(each)
        except (BrokerError, ConnectionFailed) as error:
            return error
        for node_id, some in by_leader.items():
            try:
                connection = self.client.connection(node_id)
                version = version_of(connection)
                request, payloads = self._request(some, version, connection.address)
                connection.send(request, version=version, payloads=payloads)
                posted.open_requests.append((connection, some))
            except (BrokerError, ConnectionFailed) as error:
                failure = error
        return failure

    def _receive_round(self, posted: Round) -> BrokerError | ConnectionFailed | None:
        """Receive the responses to a round; return an error instead of raising it, preferably one not retriable."""
        failure: BrokerError | ConnectionFailed | None = None
        open_requests, posted.open_requests = posted.open_requests, []
        for connection, some in open_requests:
            try:
                results = self._receive_results(connection, some)
            except ConnectionFailed as error:
                failure = failure or error
                continue
            for key, result in results.items():
                if key not in posted.unwritten:
                    continue
                try:
                    posted.written[key] = self._check(key, result)
                    self._begun.add(key)
                    del posted.unwritten[key]
                except BrokerError as error:
                    failure = error if failure is None or not ErrorCode(error.code).retriable else failure
        if posted.unwritten and open_requests and failure is None:
            (topic, partition), *_ = posted.unwritten
            what = f"{topic}-{partition}: missing in the Produce response"
            failure = BrokerError(what, ErrorCode.UNKNOWN_SERVER_ERROR)
        return failure

    def _receive_results(
        self, connection: BrokerConnection, batches: Sequence[OutgoingBatch]
    ) -> dict[TopicPartition, PartitionProduceResponse | None]:
        """Receive a Produce response, by partition; with acks=0 there is none, and results are None."""
        if self.client.settings.acks == 0:
            return {(each.topic, each.partition): None for each in batches}
        return {
            (topic.name, each.index): each
            for topic in connection.receive(ProduceResponse).responses
            for each in topic.partition_responses
        }

    def _advance(self, key: TopicPartition, record_count: int) -> None:
        if self.producer_id >= 0:
            following = self._sequences.get(key, 0) + record_count
            self._sequences[key] = following if following <= MAX_SEQUENCE else following - MAX_SEQUENCE - 1

    def _request(
        self, batches: Iterable[OutgoingBatch], version: int, address: str
    ) -> tuple[ProduceRequest, list[bytes | memoryview]]:
        """Make a request and its payloads: the batches in the format that this version of Produce accepts."""
        topics: dict[str, list[OutgoingBatch]] = {}
        for each in batches:
            topics.setdefault(each.topic, []).append(each)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=self.client.settings.acks,
            timeout_ms=self.client.settings.request_timeout_ms,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=name,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=each.partition, records=RECORDS_ELSEWHERE)
                        for each in some
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

    def _check(self, key: TopicPartition, result: PartitionProduceResponse | None) -> Produced:
        if result is None or result.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return Produced(*key, -1)
        message = result.error_message or "; ".join(
            f"record {error.batch_index}: {error.batch_index_error_message}" for error in result.record_errors
        )
        raise_for(result.error_code, f"{key[0]}-{key[1]}", message)
        return Produced(*key, result.base_offset)


def version_of(connection: BrokerConnection) -> int:
    """Return the version of Produce to use: the highest one with topic names instead of topic ids."""
    return min(PRODUCE_VERSION, connection.version_for(0))
