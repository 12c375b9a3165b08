"""Kafka's internal topics, typed: groups and offsets, transactions, share groups' state, the cluster's metadata."""

from kwire.log.internal.typed_record import TypedRecord

__all__ = ["TypedRecord"]
