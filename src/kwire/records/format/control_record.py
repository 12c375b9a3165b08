"""Control records, which brokers and KRaft voters write between the data, in control batches.

    key     int16 version (0) | int16 type
    value   ABORT and COMMIT: int16 version (0) | int32 coordinator epoch. Others: a generated message, kept as bytes

Higher versions are read as version 0, whose fields they begin with.
Source: KIP-98, KIP-595, KIP-630; org.apache.kafka.common.record.ControlRecordType, EndTransactionMarker.
"""

from __future__ import annotations

import enum
import struct

import msgspec

from kwire.errors import Malformed
from kwire.records.format.record import Record

__all__ = ["ControlRecord", "ControlRecordType", "parse_control_record"]

KEY = struct.Struct(">hh")
MARKER = struct.Struct(">hi")


class ControlRecordType(enum.IntEnum):
    """Type of a control record; UNKNOWN for numbers of later Kafka releases, which readers skip."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class ControlRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded control record.

    type_id: the number as stored. version: of the key for ABORT and COMMIT's value, else of the key.
    coordinator_epoch: of the transaction coordinator that wrote the marker; None but for ABORT and COMMIT.
    value: the raw bytes of the value.
    """

    type: ControlRecordType
    type_id: int
    version: int
    coordinator_epoch: int | None
    value: bytes | None


def parse_control_record(record: Record) -> ControlRecord:
    """Parse a record of a control batch. Raises Malformed for a short key or marker, or a negative version."""
    if record.key is None or len(record.key) < KEY.size:
        raise Malformed(f"control record key of {len(record.key or b'')} bytes, {KEY.size} at least", 0)
    version, type_id = KEY.unpack_from(record.key)
    if version < 0:
        raise Malformed(f"control record key version {version}", 0)
    known = type_id in ControlRecordType._value2member_map_ and type_id >= 0
    kind = ControlRecordType(type_id) if known else ControlRecordType.UNKNOWN
    epoch = None
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        if record.value is None or len(record.value) < MARKER.size:
            raise Malformed(f"transaction marker of {len(record.value or b'')} bytes, {MARKER.size} at least", 0)
        version, epoch = MARKER.unpack_from(record.value)
        if version < 0:
            raise Malformed(f"transaction marker version {version}", 0)
    return ControlRecord(type=kind, type_id=type_id, version=version, coordinator_epoch=epoch, value=record.value)
