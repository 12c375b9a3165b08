"""The committed offsets of all groups, and those of transactions that have not ended.

An offset that is committed within a transaction waits, by producer, until the transaction's marker stands in the same
partition of `__consumer_offsets`: then it counts, unless a commit that stands later in the log has overtaken it, or it
is forgotten.

Source: org.apache.kafka.coordinator.group.OffsetMetadataManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kwire.identifiers import TopicPartition
from kwire.messages.offset_commit_value import OffsetCommitValue

__all__ = ["CommittedOffset", "OffsetTable"]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What was committed, and the offset of its record in `__consumer_offsets`."""

    value: OffsetCommitValue
    record_offset: int


class OffsetTable:
    """See the module's head. A transaction is named by (partition of `__consumer_offsets`, producer id)."""

    def __init__(self) -> None:
        self._committed: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        self._pending: dict[tuple[int, int], dict[str, dict[TopicPartition, CommittedOffset]]] = {}

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """What counts for a partition."""
        return self._committed.get(group_id, {}).get(partition)

    def of_group(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """All that counts for a group; not to be changed."""
        return self._committed.get(group_id, {})

    def groups(self) -> Iterable[str]:
        """The groups that have offsets which count."""
        return self._committed.keys()

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        """It counts from now on."""
        self._committed.setdefault(group_id, {})[partition] = offset

    def put_pending(
        self, transaction: tuple[int, int], group_id: str, partition: TopicPartition, offset: CommittedOffset
    ) -> None:
        """It counts if the transaction commits."""
        self._pending.setdefault(transaction, {}).setdefault(group_id, {})[partition] = offset

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Neither what counts nor what waits is there any more."""
        offsets = self._committed.get(group_id)
        if offsets is not None:
            offsets.pop(partition, None)
            if not offsets:
                del self._committed[group_id]
        for groups in self._pending.values():
            groups.get(group_id, {}).pop(partition, None)

    def is_pending(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has committed an offset for the partition."""
        return any(partition in groups.get(group_id, ()) for groups in self._pending.values())

    def has_open_transaction(self, group_id: str) -> bool:
        """Whether a transaction that has not ended has committed offsets of the group."""
        return any(group_id in groups for groups in self._pending.values())

    def pending_partitions(self, group_id: str) -> Iterator[TopicPartition]:
        """The partitions for which open transactions have committed offsets; one may come more than once."""
        for groups in self._pending.values():
            yield from groups.get(group_id, ())

    def open_transactions(self, producer_id: int) -> list[tuple[int, int]]:
        """The transactions of a producer that have not ended here."""
        return [transaction for transaction in self._pending if transaction[1] == producer_id]

    def end(self, transaction: tuple[int, int], *, commit: bool) -> None:
        """The transaction's marker is written. One that has committed no offsets is no business of ours."""
        for group_id, offsets in self._pending.pop(transaction, {}).items():
            for partition, offset in offsets.items():
                existing = self.get(group_id, partition)
                if commit and (existing is None or offset.record_offset > existing.record_offset):
                    self.put(group_id, partition, offset)
