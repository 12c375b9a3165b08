"""The output lines of kafka-dump-log, character for character.

Three formats are supported, each tested against the output of that release:

    4.3   the newest
    3.9   like 4.3, with a lone `}` after the checksum of a message of magic 0 or 1, a space at the end of the line
          of a producer without data, and no contents of leader changes
    2.8   codecs in capitals, no delete horizon, `Starting offset`, every record line repeats its batch, no
          `lastTimestamp` of producers

Text is decoded as in Java (UTF-8 with U+FFFD for invalid bytes), including line breaks and control characters.
Source: DumpLogSegments of 2.8.2, 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kwire.errors import DecodeError

if TYPE_CHECKING:
    from kwire.log.files.producer_snapshot import ProducerState
    from kwire.records import Batch, Record
    from kwire.records.format.legacy_batch import LegacyBatch

__all__ = ["Lines", "Reading", "batch_line", "producer_line", "record_lines", "starting_line"]

Reading = Callable[["Record"], tuple[str | None, str | None]]
"""(key, payload) of a record as text, None if not printed. Raises DecodeError where the tool ends."""


class Lines(enum.StrEnum):
    """Kafka release of the format; values of --kafka-version."""

    KAFKA_2_8 = "2.8"
    KAFKA_3_9 = "3.9"
    KAFKA_4_3 = "4.3"


def starting_line(base_offset: int, lines: Lines) -> str:
    """Return the second line of the dump of a `.log` file."""
    return f"{'Starting' if lines is Lines.KAFKA_2_8 else 'Log starting'} offset: {base_offset}"


def batch_line(batch: Batch, lines: Lines, position: int | None) -> str:
    """Return the line of a batch, or of a message of magic 0 or 1. Raises CorruptBatch for an unknown codec.

    position: in its file; None, printed as -1, if it is unknown.
    """
    if batch.magic >= 2:
        horizon = "" if lines is Lines.KAFKA_2_8 else f" deleteHorizonMs: {_optional_long(batch.delete_horizon_ms)}"
        head = (
            f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.count}"
            f" baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
            f" producerId: {batch.producer_id} producerEpoch: {batch.producer_epoch}"
            f" partitionLeaderEpoch: {batch.partition_leader_epoch} isTransactional: {_bool(batch.is_transactional)}"
            f" isControl: {_bool(batch.is_control)}{horizon}"
        )
    else:
        head = f"offset: {batch.last_offset}"
    return (
        f"{head} position: {-1 if position is None else position} {batch.timestamp_type.text}: {batch.max_timestamp}"
        f" size: {batch.size_bytes} magic: {batch.magic} compresscodec: {_codec(batch, lines)}"
        f" crc: {batch.crc} isvalid: {_bool(batch.is_valid)}"
    )


def record_lines(
    batch: Batch, lines: Lines, *, read: Reading | None = None, bare: bool = False
) -> Iterator[tuple[Record, str]]:
    """Yield each record and its line, with keys and payloads (--print-data-log). Raises CorruptBatch, and as read does.

    read: key and payload as text, as in Java by default. bare: without offsets, sizes and contents of control records
    (--skip-record-metadata).
    """
    # like the tool: not verified here; the line says whether the checksum matches
    records = batch.records(check_crc=False)
    if bare:
        for record in records:
            yield record, _bare(batch, record, lines, read or _texts)
    elif batch.magic >= 2:
        for record in records:
            yield record, _record_head(batch, record, lines) + _contents(batch, record, lines, read)
    else:
        for record, (crc, valid) in zip(records, _message_checksums(batch), strict=True):
            yield record, _message_head(batch, record, lines, crc, valid) + _contents(batch, record, lines, read)


def producer_line(state: ProducerState, lines: Lines) -> str:
    """Return the line of a producer of a `.snapshot` file."""
    first = state.current_transaction_first_offset
    if lines is Lines.KAFKA_2_8:
        open_from = "None" if first == -1 else f"Some({first})"
        seen = ""
    else:
        open_from = _optional_long(None if first == -1 else first)
        seen = f"lastTimestamp: {state.timestamp} "
    line = (
        f"producerId: {state.producer_id} producerEpoch: {state.producer_epoch}"
        f" coordinatorEpoch: {state.coordinator_epoch} currentTxnFirstOffset: {open_from} {seen}"
    )
    if state.last_offset < 0:
        return line.rstrip() if lines is Lines.KAFKA_4_3 else line
    return line + (
        f"firstSequence: {_first_sequence(state)} lastSequence: {state.last_sequence}"
        f" lastOffset: {state.last_offset} offsetDelta: {state.offset_delta} timestamp: {state.timestamp}"
    )


def _first_sequence(state: ProducerState) -> int:
    """Return last_sequence minus offset_delta; sequences wrap from 0 to 2^31 - 1."""
    first = state.last_sequence - state.offset_delta
    return first if first >= 0 or state.last_sequence < 0 else first + (1 << 31)


def _record_head(batch: Batch, record: Record, lines: Lines) -> str:
    keys = ",".join(key for key, _ in record.headers)
    if lines is Lines.KAFKA_2_8:
        return _head_2_8(batch, record, "null", valid=True) + f" sequence: {record.sequence} headerKeys: [{keys}]"
    return _head(batch, record) + f" sequence: {record.sequence} headerKeys: [{keys}]"


def _message_head(batch: Batch, record: Record, lines: Lines, crc: int, valid: bool) -> str:
    if lines is Lines.KAFKA_2_8:
        return _head_2_8(batch, record, str(crc), valid=valid) + f" crc: {crc} isvalid: {_bool(valid)}"
    brace = "}" if lines is Lines.KAFKA_3_9 else ""
    return _head(batch, record) + f" isValid: {_bool(valid)} crc: {crc}{brace}"


def _head(batch: Batch, record: Record) -> str:
    return (
        f"| offset: {record.offset} {batch.timestamp_type.text}: {record.timestamp}"
        f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
    )


def _head_2_8(batch: Batch, record: Record, crc: str, *, valid: bool) -> str:
    return (
        f"| offset: {record.offset} isValid: {_bool(valid)} crc: {crc}"
        f" keySize: {_size(record.key)} valueSize: {_size(record.value)}"
        f" {batch.timestamp_type.text}: {record.timestamp} baseOffset: {batch.base_offset}"
        f" lastOffset: {batch.last_offset} baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence}"
        f" producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch}"
        f" batchSize: {batch.size_bytes} magic: {batch.magic} compressType: {_codec(batch, Lines.KAFKA_2_8)}"
        f" position: {batch.position}"
    )


def _contents(batch: Batch, record: Record, lines: Lines, read: Reading | None) -> str:
    if batch.is_control:
        return _control(batch, record, lines)
    key, payload = (read or _texts)(record)
    return ("" if key is None else f" key: {key}") + ("" if payload is None else f" payload: {payload}")


def _bare(batch: Batch, record: Record, lines: Lines, read: Reading) -> str:
    """Return a line of key and payload only; empty for a control record, like the tool."""
    if batch.is_control:
        return ""
    key, payload = read(record)
    if key is None:
        # the mark at the start of the line belongs to the key; since 4.0, to the first part
        start = "| " if lines is Lines.KAFKA_4_3 else " "
        return "" if payload is None else f"{start}payload: {payload}"
    return f"| key: {key}" + ("" if payload is None else f" payload: {payload}")


def _texts(record: Record) -> tuple[str | None, str | None]:
    return (
        None if record.key is None else _java_text(record.key),
        None if record.value is None else _java_text(record.value),
    )


def _control(batch: Batch, record: Record, lines: Lines) -> str:
    from kwire.errors import Malformed
    from kwire.records import parse_control_record

    try:
        control = parse_control_record(record)
    except Malformed as error:
        raise batch.corrupt(f"control record at offset {record.offset}: {error.what}") from None
    if control.coordinator_epoch is not None:
        return f" endTxnMarker: {control.type.name} coordinatorEpoch: {control.coordinator_epoch}"
    name = QUORUM_RECORDS.get(control.type.name)
    omitted = control.type.name == "LEADER_CHANGE" and lines is not Lines.KAFKA_4_3
    if name is None or lines is Lines.KAFKA_2_8 or omitted:
        return f" controlType: {control.type.name}({control.type_id})"
    from kwire.messages import registry
    from kwire.pages.escaping import compact_json

    label, message = name
    try:
        decoded = registry.get(message).decode(control.value or b"", version=0)
    except DecodeError as error:
        raise batch.corrupt(f"control record at offset {record.offset}: {error}") from None
    return f" {label} {compact_json(decoded.to_json(version=0))}"


# Control records of the metadata quorum printed as JSON: label and message of the value. Later versions start with the
# fields of version 0 and are read as 0.
QUORUM_RECORDS = {
    "LEADER_CHANGE": ("LeaderChange:", "LeaderChangeMessage"),
    "SNAPSHOT_HEADER": ("SnapshotHeader", "SnapshotHeaderRecord"),
    "SNAPSHOT_FOOTER": ("SnapshotFooter", "SnapshotFooterRecord"),
    "KRAFT_VERSION": ("KRaftVersion", "KRaftVersionRecord"),
    "KRAFT_VOTERS": ("KRaftVoters", "VotersRecord"),
}


def _message_checksums(batch: Batch) -> Iterator[tuple[int, bool]]:
    """Yield (stored checksum, whether it matches) of a message of magic 0 or 1, or of each message inside it."""
    from kwire.records import Compression
    from kwire.records.format.batch_header import CRC, LEGACY_CRC_POSITION, MAGIC_POSITION, batch_spans
    from kwire.records.format.checksum import crc32

    if batch.compression is Compression.NONE:
        yield batch.crc, batch.is_valid
        return
    wrapper: LegacyBatch = batch  # type: ignore[assignment]  # the only class below magic 2
    payload = wrapper.inner_payload()
    for start, end in batch_spans(payload):
        (crc,) = CRC.unpack_from(payload, start + LEGACY_CRC_POSITION)
        yield crc, crc == crc32(payload[start + MAGIC_POSITION : end])


def _java_text(raw: bytes) -> str:
    from kwire.records.format.record import decode_header_key

    return decode_header_key(raw)  # new String(bytes, UTF_8), as for header keys


def _codec(batch: Batch, lines: Lines) -> str:
    name = batch.compression.text
    return name.upper() if lines is Lines.KAFKA_2_8 else name


def _size(value: bytes | None) -> int:
    return -1 if value is None else len(value)


def _optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _bool(value: bool) -> str:
    return "true" if value else "false"
