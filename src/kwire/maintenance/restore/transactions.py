"""Decide the transactions that a cut divides: each is committed in all of its partitions, or aborted in all of them.

A transaction is committed if its outcome was known below the cut (by a COMMIT marker, or PREPARE_COMMIT in
`__transaction_state`) and all of its records are below the cut. Any other transaction with records below the cut is
aborted; where its COMMIT marker is below the cut, an ABORT marker replaces it.

`__transaction_state` may end before the logs of other topics, as in a copy of a running cluster, which copies it first.
A transaction that is newer than the last record of its transactional id may have more partitions than the source shows,
such as committed offsets: it is aborted as well.

Which parts in several partitions are of one transaction:

    the producer epoch    from transaction.version 2 on (KIP-890), and where a producer was fenced: the marker's epoch
                          is above that of the records, so each epoch has one transaction
    __transaction_state   its PREPARE records list the partitions; a producer's next transaction begins when the markers
                          are written, so its markers in a partition follow in the order of these records
    the markers' times    where neither is known: markers of one transaction are written within GAP_MS
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kwire.identifiers import TopicPartition
from kwire.maintenance.restore.survey import Part, ProducerTrace

__all__ = ["Decision", "Known", "PartWindow", "Transaction", "group_parts", "mark_newer", "producer_windows"]

GAP_MS = 1000
"""Time between the markers of two transactions, where nothing else tells them apart."""
LARGEST_EPOCH = (1 << 15) - 1
SLACK_MS = 60_000
"""How much earlier or later than the first or last relevant marker others are considered."""


class Decision(NamedTuple):
    """A PREPARE record of `__transaction_state`. timestamp: ms. is_kept: whether it is below the cut."""

    producer_id: int
    producer_epoch: int
    timestamp: int
    is_commit: bool
    partitions: frozenset[TopicPartition]
    is_kept: bool


class Known(NamedTuple):
    """How far `__transaction_state` knows a producer.

    until_ms: transactions with later markers are newer than its last record. prepared_ms, prepared: time and partitions
    of that record if it is a PREPARE record: a marker of the same transaction follows in each.
    """

    until_ms: int
    prepared_ms: int
    prepared: frozenset[TopicPartition]


@dataclass(slots=True)
class PartWindow:
    """The parts of one producer that matter: markers between two times, and the nearest ones around the cuts."""

    low_ms: float
    high_ms: float
    kept: dict[TopicPartition, list[Part]] = field(default_factory=dict)
    cut: dict[TopicPartition, list[Part]] = field(default_factory=dict)

    def add(self, part: Part, cut_offset: int) -> None:
        """Add a part if it matters. Parts of a partition come in order."""
        marker = part.marker
        if marker is not None and marker.offset < cut_offset:
            before = self.kept.setdefault(part.key, [])
            if before and before[-1].marker is not None and before[-1].marker.timestamp < self.low_ms:
                before.pop()
            before.append(part)
            return
        after = self.cut.setdefault(part.key, [])
        if not after or marker is None or marker.timestamp <= self.high_ms:
            after.append(part)

    def parts(self) -> dict[TopicPartition, list[Part]]:
        """Return the parts of each partition, in order."""
        return {key: [*self.kept.get(key, ()), *self.cut.get(key, ())] for key in sorted({*self.kept, *self.cut})}


def producer_windows(
    traces: Iterable[Mapping[int, ProducerTrace]], known: Mapping[int, Known]
) -> dict[int, PartWindow]:
    """Return the producers that the cut may divide, from their traces in each partition."""
    divided: set[int] = set()
    last_kept: dict[int, int] = {}
    first_cut: dict[int, int] = {}
    for producers in traces:
        for producer_id, trace in producers.items():
            if trace.is_open or trace.first_cut_ms is not None:
                divided.add(producer_id)
            if trace.last_kept_ms is not None:
                last_kept[producer_id] = max(trace.last_kept_ms, last_kept.get(producer_id, trace.last_kept_ms))
                until_ms = known[producer_id].until_ms if producer_id in known else trace.last_kept_ms
                if trace.last_kept_ms > until_ms:
                    divided.add(producer_id)
                    first_cut[producer_id] = min(until_ms, first_cut.get(producer_id, until_ms))
            if trace.first_cut_ms is not None:
                first_cut[producer_id] = min(trace.first_cut_ms, first_cut.get(producer_id, trace.first_cut_ms))
    return {
        producer_id: PartWindow(
            first_cut.get(producer_id, float("inf")) - SLACK_MS, last_kept.get(producer_id, float("-inf")) + SLACK_MS
        )
        for producer_id in divided
    }


@dataclass(slots=True)
class Transaction:
    """The parts of one transaction.

    decision: its record in `__transaction_state`, None if that is unknown. is_newer: whether it is newer than the last
    record there, so that it may have other parts.
    """

    parts: list[Part] = field(default_factory=list)
    decision: Decision | None = None
    is_newer: bool = False

    @property
    def producer_id(self) -> int:
        """The producer's id."""
        return self.parts[0].producer_id

    @property
    def producer_epoch(self) -> int:
        """The largest producer epoch of its records."""
        return max(part.producer_epoch for part in self.parts)

    @property
    def last_marker_ms(self) -> int | None:
        """Time of its last marker; None without one."""
        return max((part.marker.timestamp for part in self.parts if part.marker is not None), default=None)

    @property
    def marker_epoch(self) -> int:
        """Producer epoch of its markers. An undecided transaction is aborted with the next epoch, as by a timeout."""
        known = [part.marker.producer_epoch for part in self.parts if part.marker is not None]
        if known:
            return max(known)
        if self.decision is not None:
            return max(self.decision.producer_epoch, self.producer_epoch)
        return min(self.producer_epoch + 1, LARGEST_EPOCH)

    @property
    def coordinator_epoch(self) -> int:
        """Coordinator epoch of its markers, -1 without one."""
        return max((part.marker.coordinator_epoch for part in self.parts if part.marker is not None), default=-1)

    def is_kept(self, cuts: Mapping[TopicPartition, int]) -> bool:
        """Whether any of its records are below the cuts."""
        return any(part.first_offset < cuts[part.key] for part in self.parts)

    def is_committed(self, cuts: Mapping[TopicPartition, int]) -> bool:
        """Whether it is committed after the cut."""
        markers = [(part, part.marker) for part in self.parts if part.marker is not None]
        is_commit = all(marker.is_commit for _, marker in markers)
        is_known = any(marker.offset < cuts[part.key] for part, marker in markers)
        if self.decision is not None:
            is_commit &= self.decision.is_commit
            is_known |= self.decision.is_kept
        # all records before a marker are there, and all records of a transaction that was prepared
        return (
            is_commit
            and is_known
            and not self.is_newer
            and all(
                part.last_offset < cuts[part.key] and (part.marker is not None or self.decision is not None)
                for part in self.parts
            )
        )


def group_parts(
    parts: Mapping[TopicPartition, Sequence[Part]], decisions: Sequence[Decision], newest_ms: int
) -> list[Transaction]:
    """Return the transactions of one producer.

    decisions: its PREPARE records, oldest first. newest_ms: time of the last marker of any producer in the source.
    """
    by_epoch: dict[int, Transaction] = defaultdict(Transaction)
    by_decision: dict[int, Transaction] = defaultdict(Transaction)
    by_time: list[Part] = []
    still_open: list[tuple[Part, int]] = []  # with the number of its partition's last decision
    prepared = {each.producer_epoch: each for each in decisions}
    for key, key_parts in parts.items():
        ended = [part for part in key_parts if part.marker is not None]
        same_epoch = [part for part in ended if part.marker and part.marker.producer_epoch == part.producer_epoch]
        matched = match_decisions(key, same_epoch, decisions)
        for part in ended:
            if part.marker and part.marker.producer_epoch != part.producer_epoch:
                add_to(by_epoch[part.producer_epoch], part, prepared.get(part.marker.producer_epoch))
            elif part.first_offset in matched:
                number = matched[part.first_offset]
                add_to(by_decision[number], part, decisions[number])
            else:
                by_time.append(part)
        last = max(matched.values(), default=-1)
        still_open += [(part, last) for part in key_parts if part.marker is None]
    transactions = [*split_by_time(by_time)]
    opened: dict[int, Transaction] = defaultdict(Transaction)
    for part, last in still_open:
        epoch = part.producer_epoch
        later = next((i for i in range(last + 1, len(decisions)) if is_of(decisions[i], part)), None)
        if epoch in by_epoch:
            by_epoch[epoch].parts.append(part)
        elif later is not None:
            add_to(by_decision[later], part, decisions[later])
        elif (earlier := last_without(transactions, part, newest_ms)) is not None:
            earlier.parts.append(part)
        else:
            opened[epoch].parts.append(part)
    return [*by_epoch.values(), *by_decision.values(), *transactions, *opened.values()]


def mark_newer(transactions: Sequence[Transaction], known: Known | None) -> None:
    """Mark the transactions of one producer that are newer than the last record of `__transaction_state`."""
    if known is None:
        return
    decided = {
        part.key
        for each in transactions
        if each.decision is not None and each.decision.timestamp == known.prepared_ms
        for part in each.parts
    }
    for each in transactions:
        is_later = each.decision is None and (each.last_marker_ms or 0) > known.until_ms
        may_be_prepared = any(part.key in known.prepared - decided for part in each.parts)
        each.is_newer = is_later and not may_be_prepared


def add_to(transaction: Transaction, part: Part, decision: Decision | None) -> None:
    """Add a part to a transaction, and its decision if that is of this partition."""
    transaction.parts.append(part)
    if decision is not None and part.key in decision.partitions:
        transaction.decision = decision


def is_of(decision: Decision, part: Part) -> bool:
    """Return whether a decision may be of a part without a marker."""
    return part.key in decision.partitions and decision.producer_epoch in (part.producer_epoch, part.producer_epoch + 1)


def match_decisions(key: TopicPartition, parts: Sequence[Part], decisions: Sequence[Decision]) -> dict[int, int]:
    """Match the parts of one partition with decisions, both in order: first offset -> number of the decision.

    Between brokers, clocks differ: a marker may seem to be older than its decision, by less than GAP_MS and less than
    half the time since the one before.
    """
    ours = [number for number, each in enumerate(decisions) if key in each.partitions]
    decision_of: dict[int, int] = {}
    at, previous = 0, float("-inf")
    for part in parts:
        marker = part.marker
        assert marker is not None
        while at + 1 < len(ours) and is_nearer(decisions[ours[at + 1]], decisions[ours[at]], marker.timestamp):
            at += 1
        if at == len(ours):
            break
        decision = decisions[ours[at]]
        is_early = marker.timestamp < decision.timestamp - min((decision.timestamp - previous) / 2, GAP_MS)
        previous = marker.timestamp
        is_same = decision.is_commit == marker.is_commit and decision.producer_epoch == marker.producer_epoch
        if is_early or not is_same:
            continue
        decision_of[part.first_offset] = ours[at]
        at += 1
    return decision_of


def is_nearer(later: Decision, earlier: Decision, timestamp: int) -> bool:
    """Return whether a marker is of the later one of two decisions: it follows that one more closely."""
    return earlier.timestamp < later.timestamp <= timestamp


def split_by_time(parts: Sequence[Part]) -> list[Transaction]:
    """Divide parts into transactions by the times of their markers."""
    ordered = sorted(parts, key=lambda part: (part.marker.timestamp if part.marker else 0, part.key))
    transactions: list[Transaction] = []
    waiting = [ordered] if ordered else []
    while waiting:
        run = waiting.pop()
        times = [part.marker.timestamp if part.marker else 0 for part in run]
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        widest = max(range(len(gaps)), key=gaps.__getitem__, default=None)
        if widest is None or (gaps[widest] <= GAP_MS and is_one_transaction(run)):
            transactions.append(Transaction(parts=list(run)))
        else:
            waiting += [run[widest + 1 :], run[: widest + 1]]
    return transactions


def is_one_transaction(parts: Sequence[Part]) -> bool:
    """Return whether parts may be of one transaction: of different partitions, with the same outcome and epoch."""
    outcomes = {(part.marker.is_commit, part.marker.producer_epoch) for part in parts if part.marker is not None}
    return len({part.key for part in parts}) == len(parts) and len(outcomes) == 1


def last_without(transactions: Sequence[Transaction], part: Part, newest_ms: int) -> Transaction | None:
    """Return the last transaction, if the marker of an open part may be missing: the source ended meanwhile."""
    same = [each for each in transactions if each.producer_epoch == part.producer_epoch]
    last = max(same, key=lambda each: each.last_marker_ms or 0, default=None)
    if last is None or (last.last_marker_ms or 0) < newest_ms - GAP_MS:
        return None
    return None if any(each.key == part.key for each in last.parts) else last
