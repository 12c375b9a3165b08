"""Records of the coordinators' topics: `__consumer_offsets`, `__transaction_state`, `__share_group_state`.

    key      int16 record type, message of that type (version 0)
    value    int16 version, message; null is a tombstone

Each topic counts its types from 0. In `__consumer_offsets` types 0 and 1 are offset commits, 2 a classic group, 3 to 8
and 16 groups of the consumer protocol (KIP-848), 10 to 15 share groups, 17 to 23 streams groups.
Source: CoordinatorRecordSerde; GroupCoordinatorRecordSerde, TransactionCoordinatorRecordSerde and
ShareCoordinatorRecordSerde of 4.x.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from kwire.errors import Truncated, UnsupportedVersion
from kwire.internal_topics.typed_record import Decoder, TypedRecord, read_message

if TYPE_CHECKING:
    from kwire.messages.base import Message

__all__ = [
    "coordinator_decoder",
    "decode_group",
    "decode_share_state",
    "decode_transaction",
]


def coordinator_decoder(module: str, *, kafka: str | None = None, types: range | None = None) -> Decoder:
    """Return the decoder of one coordinator's records.

    module: group-coordinator, transaction-coordinator or share-coordinator. kafka: the release whose value versions
    apply, the newest by default. types: the known record types, all by default.
    """

    @functools.cache
    def messages(record_type: int) -> tuple[str, type[Message], type[Message]] | None:
        from kwire.messages import registry

        if types is not None and record_type not in types:
            return None
        try:
            key = registry.find("coordinator-key", record_type, module=module)
        except UnsupportedVersion:
            return None
        # type 0 is the offset commit of 0.8 brokers, like type 1; 4.x has separate classes for it
        kind = key.__name__.removesuffix("Key").removeprefix("Legacy")
        return kind, key, registry.get(f"{kind}Value", kafka=kafka)

    def decode(typed: TypedRecord) -> None:
        raw = typed.raw_key
        if raw is None or len(raw) < 2:
            typed.fail("key", Truncated(f"record type of 2 bytes, {len(raw or b'')} left", 0))
            return
        typed.record_type = int.from_bytes(raw[:2], "big", signed=True)
        known = messages(typed.record_type)
        if known is None:
            return
        typed.kind, key_class, value_class = known
        typed.key = read_message(typed, "key", key_class, raw, 2, 0)
        if typed.key is not None and typed.raw_value is not None:
            _read_value(typed, value_class, typed.raw_value)

    return decode


def _read_value(typed: TypedRecord, cls: type[Message], raw: bytes) -> None:
    if len(raw) < 2:
        typed.fail("value", Truncated(f"version of 2 bytes, {len(raw)} left", 0))
        return
    typed.version = int.from_bytes(raw[:2], "big", signed=True)
    typed.value = read_message(typed, "value", cls, raw, 2, typed.version)


decode_group = coordinator_decoder("group-coordinator")
decode_transaction = coordinator_decoder("transaction-coordinator")
decode_share_state = coordinator_decoder("share-coordinator")
