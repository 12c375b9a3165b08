"""A record of an internal topic with its key and value as messages, or with the error of decoding them.

    key and value decoded          key, value: messages; error: None
    a tombstone                    key; is_tombstone; value: None
    an unknown record type         kind "unknown", record_type: its number; raw_key, raw_value
    an unknown version             key; error in "value"; raw_value
    malformed bytes                the part that was decoded; error, error_field, error_position; raw_key, raw_value
    bytes after the message        the message, and an error with their number
    a control record               kind COMMIT, ABORT, LEADER_CHANGE...; value: a message where Kafka has one
    an unreadable batch            kind "damage": the error; offset is that of the first lost record

Malformed bytes yield records with errors; reading them raises nothing.
Source: CoordinatorRecordSerde, MetadataRecordSerde, which skip or reject the records with errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kwire.errors import CorruptBatch, DecodeError, Malformed, UnsupportedVersion, counted

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.records import Batch, Record

__all__ = [
    "DAMAGE",
    "UNKNOWN",
    "Decoder",
    "Problems",
    "TypedRecord",
    "damage_row",
    "decode_control",
    "read_message",
    "typed_records",
    "usable",
]

UNKNOWN = "unknown"
DAMAGE = "damage"

# The values of control records that are messages.
CONTROL_VALUES = {
    "LEADER_CHANGE": "LeaderChangeMessage",
    "SNAPSHOT_HEADER": "SnapshotHeaderRecord",
    "SNAPSHOT_FOOTER": "SnapshotFooterRecord",
    "KRAFT_VERSION": "KRaftVersionRecord",
    "KRAFT_VOTERS": "VotersRecord",
}


@dataclass(slots=True, kw_only=True)
class TypedRecord:
    """A record of an internal topic. Its topic's decoder fills it in; nothing changes it afterwards.

    topic, partition, offset, timestamp (ms): of the record; partition is -1 in a snapshot file. kind: Kafka's name of
    the message without Key or Value (OffsetCommit, GroupMetadata, TransactionLog, TopicRecord...), the type of a
    control record, "unknown" or "damage". record_type: the type's number, None if unreadable. version: of the value,
    None without one. coordinator_epoch: of COMMIT and ABORT. error, error_field, error_position: the error, in "key",
    "value" or "batch", and its byte. producer_id, producer_epoch: of the batch, -1 without. is_transactional: the
    record applies once its producer's COMMIT follows.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    kind: str
    record_type: int | None = None
    version: int | None = None
    key: Message | None = None
    value: Message | None = None
    coordinator_epoch: int | None = None
    error: str | None = None
    error_field: str | None = None
    error_position: int | None = None
    raw_key: bytes | None = None
    raw_value: bytes | None = None
    is_control: bool = False
    is_transactional: bool = False
    producer_id: int = -1
    producer_epoch: int = -1

    @property
    def is_tombstone(self) -> bool:
        """Whether the record deletes what its key names."""
        return self.raw_value is None and not self.is_control and self.kind != DAMAGE

    @property
    def is_usable(self) -> bool:
        """Whether the record can be applied to a state: its key and value are valid."""
        return self.error is None and self.kind not in (UNKNOWN, DAMAGE)

    def fail(self, field: str, error: DecodeError | UnsupportedVersion) -> None:
        """Record an error of a field: "key", "value" or "batch"."""
        self.error, self.error_field = str(error), field
        self.error_position = error.position if isinstance(error, DecodeError) else 0


MOST_KEPT = 1000


@dataclass(slots=True, kw_only=True)
class Problems:
    """Records that could not be applied to a state: the first thousand of them, and their number."""

    records: list[TypedRecord] = field(default_factory=list)
    count: int = 0

    def add(self, record: TypedRecord) -> None:
        """Add a record."""
        self.count += 1
        if len(self.records) < MOST_KEPT:
            self.records.append(record)


Decoder = Callable[[TypedRecord], None]
"""Fills in kind, key, value and error of a record from its raw_key and raw_value."""


def read_message(
    typed: TypedRecord, field: str, cls: type[Message], data: bytes, position: int, version: int
) -> Message | None:
    """Decode the message in data from position on; None, and the error in the record, if that fails.

    Bytes after the message are an error too, but the message is returned.
    """
    try:
        message, end = cls.decode_from(data, position, version=version)
    except (DecodeError, UnsupportedVersion) as error:
        typed.fail(field, error)
        return None
    if end != len(data):
        typed.fail(field, Malformed(f"{counted(len(data) - end, 'byte')} after the message", end))
    return message


def decode_control(typed: TypedRecord, record: Record) -> None:
    """Fill in a record of a control batch."""
    from kwire.messages import registry
    from kwire.records import parse_control_record

    try:
        control = parse_control_record(record)
    except Malformed as error:
        typed.fail("key", error)
        return
    typed.kind = control.type.name if control.type_id == control.type else UNKNOWN
    typed.record_type, typed.coordinator_epoch = control.type_id, control.coordinator_epoch
    name = CONTROL_VALUES.get(typed.kind)
    if name is None:
        return
    cls, data = registry.get(name), control.value or b""
    # each begins with its version; unknown versions begin with the fields of the newest known one
    version = min(max(int.from_bytes(data[:2], "big", signed=True), 0), cls.VALID_VERSIONS.highest)
    try:
        typed.value, _ = cls.decode_from(data, 0, version=version)
    except DecodeError as error:
        typed.fail("value", error)
    else:
        typed.version = version


def typed_records(topic: str, partition: int, batch: Batch, decoder: Decoder) -> Iterator[TypedRecord]:
    """Yield the records of one batch, and a row of kind "damage" for the part that is unreadable."""
    try:
        batch.check()
        for record in batch.records(check_crc=False):
            typed = TypedRecord(
                topic=topic,
                partition=partition,
                offset=record.offset,
                timestamp=record.timestamp,
                kind=UNKNOWN,
                raw_key=record.key,
                raw_value=record.value,
                is_control=batch.is_control,
                is_transactional=batch.is_transactional,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
            )
            if batch.is_control:
                decode_control(typed, record)
            else:
                decoder(typed)
            yield typed
    except CorruptBatch as error:
        offset = batch.base_offset if batch.magic == 2 else batch.last_offset
        yield damage_row(topic, partition, offset, error, batch.max_timestamp)


def damage_row(topic: str, partition: int, offset: int, error: CorruptBatch, timestamp: int = -1) -> TypedRecord:
    """Return the row for unreadable records from an offset on."""
    return TypedRecord(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        kind=DAMAGE,
        error=str(error),
        error_field="batch",
        error_position=error.position,
    )


def usable(records: Iterable[TypedRecord], problems: Problems) -> Iterator[TypedRecord]:
    """Yield the records that can be applied to a state; add the others to problems.

    Unknown record types are not a problem: Kafka skips them too.
    """
    for record in records:
        if record.is_usable:
            yield record
        elif record.error is not None:
            problems.add(record)
