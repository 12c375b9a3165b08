"""Writing whole batches: idempotent, or as part of a transaction.

    with Producer(client) as producer:                        producer = Producer(client)   # with transactional.id
        producer.send("orders", 0, batch)                     producer.begin(); ...; producer.commit()

A batch is bytes of one magic 2 batch with the producer's id, epoch and next sequence in its header: `fields(...)` says
which. One request a broker is in flight; the next batches can be made meanwhile.
Source: KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kwire.client.broker_connection import BrokerConnection
from kwire.client.client import PRODUCE_VERSION, Client, raise_for
from kwire.client.cluster import TopicPartition
from kwire.errors import BrokerError, ConnectionFailed, OptionError
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode

__all__ = ["Produced", "Producer"]

MAX_SEQUENCE = 2**31 - 1


class Produced(NamedTuple):
    """Where a batch went. base_offset: -1 with acks=0, and for a batch that the broker had already."""

    topic: str
    partition: int
    base_offset: int


class Producer:
    """Writes batches to the leaders of partitions.

    With transactional.id among the client's settings, batches belong to transactions. Raises as Client does; a
    producer that was fenced (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED) must not be used again.
    """

    def __init__(self, client: Client) -> None:
        self.client, settings = client, client.settings
        self.transactional_id = settings.transactional_id
        self.producer_id, self.producer_epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._in_transaction: set[TopicPartition] | None = None
        self._coordinator = -1
        if settings.acks != -1 and (self.transactional_id or settings.enable_idempotence):
            raise OptionError("Setting 'acks': idempotence needs all; set enable.idempotence to false for others")
        if self.transactional_id or settings.enable_idempotence:
            self._init()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        if self._in_transaction is not None:
            self.abort()

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

    def _add_partition(self, key: TopicPartition) -> None:
        if self.transactional_id is None:
            return
        if self._in_transaction is None:
            raise OptionError("a transactional producer writes between begin() and commit()")
        if key in self._in_transaction:
            return
        cls: Any = registry.get("AddPartitionsToTxnRequest")
        request = cls(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[cls.AddPartitionsToTxnTopic(name=key[0], partitions=[key[1]])],
        )
        self._ask_coordinator(request, version=3, what="transaction")
        self._in_transaction.add(key)

    # ---- batches

    def send(self, topic: str, partition: int, batch: bytes | memoryview, record_count: int) -> Produced:
        """Write a batch of record_count records and wait until the broker has it.

        A batch whose answer was lost is sent again; with idempotence the broker tells that it has it already.
        """
        key = (topic, partition)
        self._add_partition(key)
        request = self._request(key, batch)

        def attempt() -> Produced:
            connection = self.client.connection(self.client.leader(key))
            return self._check(key, connection.request(request, version=version_of(connection)))

        done = self.client.retry(attempt)
        if self.producer_id >= 0:
            following = self._sequences.get(key, 0) + record_count
            self._sequences[key] = following if following <= MAX_SEQUENCE else following - MAX_SEQUENCE - 1
        return done

    def _request(self, key: TopicPartition, batch: bytes | memoryview) -> Any:
        cls: Any = registry.get("ProduceRequest")
        data = cls.PartitionProduceData(index=key[1], records=batch)
        return cls(
            transactional_id=self.transactional_id,
            acks=self.client.settings.acks,
            timeout_ms=self.client.settings.request_timeout_ms,
            topic_data=[cls.TopicProduceData(name=key[0], partition_data=[data])],
        )

    def _check(self, key: TopicPartition, answer: Any) -> Produced:
        if answer is None:
            return Produced(*key, -1)
        (each,) = answer.responses[0].partition_responses
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
