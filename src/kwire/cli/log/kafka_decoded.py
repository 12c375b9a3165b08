"""Keys and payloads of internal topics in the format of kafka-dump-log's decoders, character for character.

    --offsets-decoder, --transaction-log-decoder     3.9 and later: JSON of key and value; transactions of 3.9 and
                                                     everything of 2.8: separate text formats
    --cluster-metadata-decoder                       JSON of the value
    --share-group-state-decoder                      4.3 only
    --remote-log-metadata-decoder                    Java's toString of the value; 3.9 and later

JSON is in Jackson's format: no spaces, no escapes above ASCII, doubles as in Java. Records that cannot be decoded have
the tool's sentence with kwire's reason; the tool prints the message of a Java exception.
Source: DumpLogSegments and TransactionLog of 2.8.2 and 3.9.1, GroupMetadataManager of 2.8.2, DumpLogSegments of 4.3.0.
"""

from __future__ import annotations

import enum
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kwire.cli.log.kafka_lines import Lines, Reading
from kwire.cli.log.scala_order import partition_hash, table_order
from kwire.errors import DecodeError, Malformed, OptionError
from kwire.internal_topics.placement import java_hash

if TYPE_CHECKING:
    from kwire.internal_topics.typed_record import Decoder, TypedRecord
    from kwire.records import Record

__all__ = ["InternalTopic", "decoded_reading"]


class InternalTopic(enum.StrEnum):
    """The decoders of the tool."""

    OFFSETS = "offsets"
    TRANSACTION_LOG = "transaction-log"
    CLUSTER_METADATA = "cluster-metadata"
    SHARE_GROUP_STATE = "share-group-state"
    REMOTE_LOG_METADATA = "remote-log-metadata"


RELEASES = {Lines.KAFKA_2_8: "2.8.2", Lines.KAFKA_3_9: "3.9.1", Lines.KAFKA_4_3: None}
GROUP_TYPES = {Lines.KAFKA_2_8: range(3), Lines.KAFKA_3_9: range(9), Lines.KAFKA_4_3: None}


def decoded_reading(topic: InternalTopic, lines: Lines) -> Reading:
    """Return the format of records of that release's tool. Raises OptionError if it has no such decoder."""
    from kwire.internal_topics.coordinator_records import coordinator_decoder
    from kwire.internal_topics.metadata_records import metadata_decoder

    release = RELEASES[lines]
    if topic is InternalTopic.CLUSTER_METADATA:
        return _metadata(metadata_decoder(kafka=release))
    if topic is InternalTopic.REMOTE_LOG_METADATA:
        if lines is Lines.KAFKA_2_8:
            raise OptionError(f"--remote-log-metadata-decoder: not supported by Kafka {lines}; added in 3.6")
        return _remote(metadata_decoder("storage", kafka=release), with_index=lines is Lines.KAFKA_4_3)
    if topic is InternalTopic.SHARE_GROUP_STATE:
        if lines is not Lines.KAFKA_4_3:
            raise OptionError(f"--share-group-state-decoder: not supported by Kafka {lines}; added in 4.0")
        return _coordinator(coordinator_decoder("share-coordinator"))
    if topic is InternalTopic.OFFSETS:
        decode = coordinator_decoder("group-coordinator", kafka=release, types=GROUP_TYPES[lines])
        return _group_text(decode) if lines is Lines.KAFKA_2_8 else _coordinator(decode)
    decode = coordinator_decoder("transaction-coordinator", kafka=release)
    return _coordinator(decode) if lines is Lines.KAFKA_4_3 else _transaction_text(decode, lines)


def _typed(record: Record, decode: Decoder) -> TypedRecord:
    from kwire.internal_topics.typed_record import UNKNOWN, TypedRecord

    typed = TypedRecord(
        topic="",
        partition=0,
        offset=record.offset,
        timestamp=record.timestamp,
        kind=UNKNOWN,
        raw_key=record.key,
        raw_value=record.value,
    )
    decode(typed)
    return typed


def _keyed(record: Record, decode: Decoder) -> TypedRecord:
    """Decode a coordinator's record. Raises Malformed without a key, where the tool ends."""
    if record.key is None:
        raise Malformed(f"record at offset {record.offset} has no key; records of this topic require one", 0)
    return _typed(record, decode)


# ---- JSON


def _coordinator(decode: Decoder) -> Reading:
    from kwire.internal_topics.consumer_protocol import group_json

    def read(record: Record) -> tuple[str | None, str | None]:
        typed = _keyed(record, decode)
        if typed.key is None and typed.error is None:
            return f"Unknown record type {typed.record_type} at offset {record.offset}, skipping.", None
        if typed.key is None or (typed.value is None and record.value is not None):
            return f"Error at offset {record.offset}, skipping. {typed.error}", None
        key = java_json({"type": str(typed.record_type), "data": typed.key.to_json(version=0)})
        if typed.value is None:
            return key, "<DELETE>"
        assert typed.version is not None
        data = typed.value.to_json(version=typed.version)
        if typed.kind == "GroupMetadata":
            data = group_json(typed.value, data)
        return key, java_json({"version": str(typed.version), "data": data})

    return read


def _metadata(decode: Decoder) -> Reading:
    def read(record: Record) -> tuple[str | None, str | None]:
        typed = _typed(record, decode)
        if typed.error is not None or typed.value is None:
            reason = typed.error or f"Unknown metadata record type {typed.record_type}"
            return None, f"Error at {record.offset}, skipping. {reason}"
        assert typed.version is not None
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", typed.kind).upper()
        data = typed.value.to_json(version=typed.version)
        return None, java_json({"type": name, "version": typed.version, "data": data})

    return read


def _remote(decode: Decoder, *, with_index: bool) -> Reading:
    from kwire.cli.log.kafka_remote import remote_text

    def read(record: Record) -> tuple[str | None, str | None]:
        typed = _typed(record, decode)
        text = None if typed.error is not None else remote_text(typed.kind, typed.value, with_index=with_index)
        if text is None:
            reason = typed.error or f"RemoteLogMetadataTransform for apikey: {typed.record_type} does not exist."
            return None, f"Error at offset {record.offset}, skipping. {reason}"
        return None, text

    return read


_ESCAPED = re.compile(r'[\x00-\x1f"\\]')
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def java_json(value: Any) -> str:
    """Return value as JSON in Jackson's format."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{java_json(key)}:{java_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(java_json, value)) + "]"
    if isinstance(value, str):
        return '"' + _ESCAPED.sub(lambda match: _SHORT.get(match[0]) or f"\\u{ord(match[0]):04X}", value) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
    return "null" if value is None else str(value)


def java_double(value: float) -> str:
    """Return value like Double.toString: with an exponent below 0.001 and from 10,000,000."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    # the shortest decimal of this double with at least two digits: the smallest double is 4.9E-324, not 5.0E-324
    shortest = repr(value)
    decimal = Decimal(shortest if "." in shortest else f"{value:.1e}").normalize()
    sign, digits, _ = decimal.as_tuple()
    whole, *rest = map(str, digits)
    return f"{'-' * sign}{whole}.{''.join(rest) or '0'}E{decimal.adjusted()}"


# ---- 2.8, and transactions of 3.9


def _required(typed: TypedRecord, record: Record) -> None:
    """Raise Malformed if the record could not be read: the tools of these releases end there."""
    if typed.key is None or (typed.value is None and record.value is not None):
        what = typed.error or f"unknown record type {typed.record_type}"
        raise Malformed(f"record at offset {record.offset}: {what}", typed.error_position or 0)


def _group_text(decode: Decoder) -> Reading:
    def read(record: Record) -> tuple[str | None, str | None]:
        typed = _keyed(record, decode)
        _required(typed, record)
        key: Any = typed.key
        value: Any = typed.value
        if typed.kind == "OffsetCommit":
            name = f"offset_commit::group={key.group},partition={key.topic}-{key.partition}"
            if value is None:
                return name, "<DELETE>"
            return name, f"offset={value.offset}" + (f",metadata={value.metadata}" if value.metadata else "")
        name = f"group_metadata::group={key.group}"
        return name, "<DELETE>" if value is None else _group_json(value)

    return read


def _group_json(group: Any) -> str:
    members = {member.member_id: member for member in group.members}
    shown = (
        f"{member_id}={_member_text(group.protocol_type, members[member_id].assignment)}"
        for member_id in table_order(([each] for each in members), java_hash)
    )
    return java_json(
        {
            "protocolType": group.protocol_type,
            "protocol": group.protocol,
            "generationId": group.generation,
            "assignment": "{" + ",".join(shown) + "}",
        }
    )


def _member_text(protocol_type: str, assignment: bytes) -> str:
    from kwire.internal_topics.consumer_protocol import PROTOCOL_TYPE, read_assignment, stored_version

    if protocol_type != PROTOCOL_TYPE:
        return _hex(assignment)
    try:
        stored_version(assignment)
        assigned = read_assignment(assignment)
    except DecodeError:
        raise Malformed(f"assignment of {len(assignment)} bytes is not of the consumer protocol", 0) from None
    partitions = ", ".join(
        f"{each.topic}-{number}" for each in assigned.assigned_partitions for number in each.partitions
    )
    user_data = f":{_hex(assigned.user_data)}" if assigned.user_data else ""
    return f"[{partitions}]{user_data}"


def _hex(data: bytes) -> str:
    """Return data as one hexadecimal number, without leading zeros."""
    return f"{int.from_bytes(data, 'big'):X}" if data else ""


def _transaction_text(decode: Decoder, lines: Lines) -> Reading:
    from kwire.internal_topics.transactions_state import TransactionState

    def read(record: Record) -> tuple[str | None, str | None]:
        typed = _keyed(record, decode)
        if typed.key is None and typed.error is None and lines is Lines.KAFKA_3_9:
            return f"unknown::version={typed.record_type}", None
        _required(typed, record)
        key: Any = typed.key
        value: Any = typed.value
        name = f"transaction_metadata::transactionalId={key.transactional_id}"
        if value is None:
            return name, "<DELETE>"
        status = TransactionState.of(value.transaction_status)
        if not isinstance(status, TransactionState):
            raise Malformed(f"record at offset {record.offset}: unknown state {value.transaction_status}", 0)
        state = status.label
        named = value.transaction_partitions or () if state != "Empty" else ()
        partitions = table_order(([(each.topic, n) for n in set(each.partition_ids)] for each in named), partition_hash)
        shown = ",".join(f"{topic}-{number}" for topic, number in partitions)
        return name, (
            f"producerId:{value.producer_id},producerEpoch:{value.producer_epoch},state={state},partitions=[{shown}],"
            f"txnLastUpdateTimestamp={value.transaction_last_update_timestamp_ms},"
            f"txnTimeoutMs={value.transaction_timeout_ms}"
        )

    return read
