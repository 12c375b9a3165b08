"""One record of an internal topic with its key and value as messages, or with what is wrong with them.

    key and value decoded          key, value: messages; error: None
    a tombstone                    key; is_tombstone; value: None
    a type nobody knows            kind "unknown", record_type: its number; raw_key, raw_value
    a version nobody knows         key; error in "value"; raw_value
    bytes that break the format    what could be read before; error, error_field, error_position; raw_key, raw_value
    bytes behind the message       the message, and an error that says how many
    a control record               kind COMMIT, ABORT, LEADER_CHANGE...; value: a message where there is one
    a batch that cannot be read    kind "damage": the error; offset is where the lost records begin

So whatever the bytes are, reading gives rows and raises nothing.
Source: CoordinatorRecordSerde, MetadataRecordSerde (which skip or refuse what is a row here).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kwire.errors import DecodeError, Malformed, UnsupportedVersion

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.records import Record

__all__ = ["DAMAGE", "UNKNOWN", "Decoder", "TypedRecord", "decode_control", "read_message"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedRecord:
    """A record of an internal topic.

    topic, partition, offset, timestamp (ms): where it stands; partition -1 in a snapshot file.
    kind: Kafka's name of the message, without Key, Value (OffsetCommit, GroupMetadata, TransactionLog, TopicRecord...);
    the type's name of a control record; "unknown" or "damage".
    record_type: the number that says so, None where it could not be read.
    version: of the value (of the key's contents there are no versions); None without a value.
    coordinator_epoch: of COMMIT and ABORT.
    error, error_field, error_position: what is wrong, in "key", "value" or "batch", at which byte of it.
    producer_id, producer_epoch: of the batch, -1 without; is_transactional: it counts once its producer's COMMIT comes.
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
        """Whether it deletes what its key names."""
        return self.raw_value is None and not self.is_control and self.kind != DAMAGE

    @property
    def is_usable(self) -> bool:
        """Whether state may be made of it: key and value (or its absence) are as they should be."""
        return self.error is None and self.kind not in (UNKNOWN, DAMAGE)

    def wrong(self, field: str, error: DecodeError | UnsupportedVersion, shift: int = 0) -> TypedRecord:
        """The same record with an error in one of its fields; shift: bytes before the message in the field."""
        if isinstance(error, DecodeError):
            text, position = str(replace_position(error, shift)), error.position + shift
        else:
            text, position = str(error), 0
        return replace(self, error=text, error_field=field, error_position=position)


Decoder = Callable[[TypedRecord], TypedRecord]
"""Makes kind, key, value and error of a record's raw_key and raw_value."""


def replace_position(error: DecodeError, shift: int) -> DecodeError:
    """error as seen from the start of the field, shift bytes before the message."""
    return Malformed(error.what, error.position + shift, error.path)


def read_message(
    typed: TypedRecord, field: str, cls: type[Message], data: bytes, position: int, version: int
) -> tuple[Message | None, TypedRecord]:
    """(message, record): of data from position on; the record has the error where there is one.

    Bytes behind the message are an error too, which leaves the message readable.
    """
    try:
        message, end = cls.decode_from(data, position, version=version)
    except (DecodeError, UnsupportedVersion) as error:
        return None, typed.wrong(field, error)
    if end != len(data):
        return message, typed.wrong(field, Malformed(f"{len(data) - end} bytes left over", end))
    return message, typed


def decode_control(typed: TypedRecord, record: Record) -> TypedRecord:
    """A record of a control batch."""
    from kwire.messages import registry
    from kwire.records import parse_control_record

    try:
        control = parse_control_record(record)
    except Malformed as error:
        return replace(typed.wrong("key", error), kind=UNKNOWN)
    typed = replace(
        typed,
        kind=control.type.name if control.type_id == control.type else UNKNOWN,
        record_type=control.type_id,
        coordinator_epoch=control.coordinator_epoch,
    )
    name = CONTROL_VALUES.get(typed.kind)
    if name is None:
        return typed
    cls, data = registry.get(name), control.value or b""
    # each begins with its own version; one that is not known begins with the fields of the last that is
    version = min(max(int.from_bytes(data[:2], "big", signed=True), 0), cls.VALID_VERSIONS.highest)
    try:
        value, _ = cls.decode_from(data, 0, version=version)
    except DecodeError as error:
        return typed.wrong("value", error)
    return replace(typed, value=value, version=version)
