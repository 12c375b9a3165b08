"""Dead letters in a topic: a record with the bytes of key and value, and headers that say where it was and why.

Tasks write, and wait for acknowledgments, before the rows are committed, so none is lost. Delivery is at least once: a
task or micro-batch that is run again writes its dead letters again, which have the same topic, partition and offset.
Source: Kafka Connect's DeadLetterQueueReporter, for the names of headers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from kwire.errors import BrokerError, OptionError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from kwire.client import Client, Producer
    from kwire.client.address import ClusterAddress
    from kwire.records import Record

__all__ = ["DeadLetterTopic", "TopicWriter"]

PREFIX = "__connect.errors."
BATCH_BYTES = 512 << 10  # below brokers' default of message.max.bytes, unless a record is larger by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterTopic:
    """A topic of a cluster for dead letters. Picklable. settings: of the client. table: that rows are for."""

    address: ClusterAddress
    name: str
    settings: Mapping[str, object] = field(repr=False)
    table: str = ""

    @classmethod
    def parse(cls, url: str, settings: Mapping[str, object]) -> DeadLetterTopic:
        """Parse `kafka://host:port[,host:port]/topic`. Raises OptionError."""
        from kwire.client.address import ClusterAddress

        address = ClusterAddress.parse(url)
        if address.name is None:
            raise OptionError(f"{url}: expected a topic for dead letters, kafka://host:port[,host:port]/topic")
        return cls(address=address, name=address.name, settings=settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Do nothing: clients are those of tasks."""

    def connect(self) -> Client:
        """Return a client of the cluster.

        Raises OptionError for acks other than all, as letters could get lost, and for a transactional id.
        """
        client = self.address.connect(self.settings)
        what = f"topic '{self.name}' for dead letters"
        if client.settings.acks != -1:
            raise OptionError(f"config 'acks': {what} requires all")
        if client.settings.transactional_id is not None:
            raise OptionError(f"config 'transactional.id': {what} is written without transactions; remove the config")
        return client

    def partitions(self, client: Client) -> int:
        """Return the number of partitions. Raises BrokerError for a missing topic, ConnectionFailed."""
        from kwire.protocol.error_codes import ErrorCode

        described = client.metadata([self.name]).topics.get(self.name)
        if described is None or described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            hint = did_you_mean(self.name, client.metadata().topics)
            raise BrokerError(
                f"topic '{self.name}' for dead letters does not exist{hint}; create it first",
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
        if described.error_code:
            raise BrokerError(f"topic '{self.name}': {described.error_code.name}", described.error_code)
        return len(described.partitions)

    def check(self) -> None:
        """Raise BrokerError unless the topic exists, ConnectionFailed, OptionError for a wrong setting."""
        with self.connect() as client:
            self.partitions(client)


class TopicWriter:
    """Writes the dead letters of a task; connects with the first one."""

    def __init__(self, topic: DeadLetterTopic) -> None:
        self._topic = topic
        self._client: Client | None = None
        self._producer: Producer | None = None
        self._partitions = 0

    def add(self, letters: pa.RecordBatch) -> None:
        """Write dead letters, and wait until they are acknowledged. Raises BrokerError, ConnectionFailed.

        A topic may refuse timestamps, as Kafka 4 does of more than an hour ahead: these letters are written without.
        """
        import pyarrow as pa
        from msgspec.structs import replace

        from kwire.protocol.error_codes import ErrorCode
        from kwire.records.attributes import NO_TIMESTAMP
        from kwire.records.format.wrapping import MAX_INT64
        from kwire.records.partitioner import murmur2

        producer, count = self._connected()
        at = letters.schema.get_field_index("timestamp")
        letters = letters.set_column(at, "timestamp", letters.column(at).cast(pa.int64()))  # some are no datetime
        by_partition: dict[int, list[Record]] = {}
        for row in letters.to_pylist():
            chosen = row["partition"] if row["key"] is None else murmur2(row["key"]) & 0x7FFFFFFF
            by_partition.setdefault(chosen % count, []).append(_record(row))
        for partition, records in by_partition.items():
            for latest in (MAX_INT64, time.time_ns() // 1_000_000, NO_TIMESTAMP):  # of the timestamps that are kept
                kept = [each if each.timestamp <= latest else replace(each, timestamp=NO_TIMESTAMP) for each in records]
                try:
                    self._send(producer, partition, kept)
                    break
                except BrokerError as error:
                    if error.code != ErrorCode.INVALID_TIMESTAMP or latest == NO_TIMESTAMP:
                        raise

    def _send(self, producer: Producer, partition: int, records: Sequence[Record]) -> None:
        from kwire.records.format.batch_header import DEFAULT_HEADER, batch_spans
        from kwire.records.format.builder import write_batches

        fields = producer.fields(self._topic.name, partition)
        codec, level = producer.client.settings.compression_type, producer.client.settings.compression_level
        for data in write_batches(records, batch_size=BATCH_BYTES, compression=codec, level=level, **fields):
            for start, end in batch_spans(data):
                batch = bytearray(data[start:end])
                batch[:8] = bytes(8)  # brokers assign offsets
                producer.send(self._topic.name, partition, bytes(batch), DEFAULT_HEADER.unpack_from(batch)[-1])

    def _connected(self) -> tuple[Producer, int]:
        from kwire.client import Producer

        if self._producer is None:
            self._client = self._topic.connect()
            self._partitions = self._topic.partitions(self._client)
            self._producer = Producer(self._client)
        return self._producer, self._partitions

    def close(self) -> tuple[()]:
        """Close the connection; there are no files."""
        self.discard()
        return ()

    def discard(self) -> None:
        """Close the connection. What was written stays."""
        if self._client is not None:
            self._client.close()
            self._client = self._producer = None


def _record(row: Mapping[str, Any]) -> Record:
    """Return a dead letter as a record. Kafka has no timestamps before 1970."""
    from kwire.records import Record, TimestampType
    from kwire.records.attributes import NO_TIMESTAMP

    texts = {f"{PREFIX}{name}": row[name] for name in ("topic", "partition", "offset")}
    texts |= {f"{PREFIX}exception.message": row["reason"], "kwire.table": row["table"]}
    when = row["timestamp"]
    return Record(
        offset=0,
        timestamp=NO_TIMESTAMP if when is None or when < 0 else when // 1000,
        timestamp_type=TimestampType.CREATE_TIME,
        key=row["key"],
        value=row["value"],
        headers=[(name, str(value).encode()) for name, value in texts.items()],
    )
