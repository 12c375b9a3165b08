"""Which parts in several partitions are one transaction, and whether it is committed after a cut."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

from kwire.identifiers import TopicPartition
from kwire.log import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.maintenance.restore.changes import read_known
from kwire.maintenance.restore.survey import Marker, Part, ProducerTrace, Survey
from kwire.maintenance.restore.transactions import (
    GAP_MS,
    Decision,
    Known,
    PartWindow,
    Transaction,
    group_parts,
    mark_newer,
    producer_windows,
)
from kwire.messages import TransactionLogKey, TransactionLogValue
from tests.log.internal.dumps import NOW, batch, keyed, log_of

A, B, C = ("a", 0), ("b", 0), ("c", 0)


def part(
    key: TopicPartition, at: int, time: int | None, *, commit: bool = True, epoch: int = 0, bumped: bool = False
) -> Part:
    """A part with records at `at` and `at` + 1, and its marker at `at` + 2."""
    marker = None if time is None else Marker(at + 2, time, commit, epoch + bumped, 1)
    return Part(key, 7, epoch, at, at + 1, marker)


def decision(time: int, *keys: TopicPartition, commit: bool = True, epoch: int = 0, kept: bool = True) -> Decision:
    return Decision(7, epoch, time, commit, frozenset(keys), kept)


def grouped(parts: list[Part], decisions: list[Decision], newest: int = 10**9) -> list[set[tuple[str, int]]]:
    """Return (topic, first offset) of the parts of each transaction."""
    by_key: dict[TopicPartition, list[Part]] = {}
    for each in parts:
        by_key.setdefault(each.key, []).append(each)
    found = group_parts(by_key, decisions, newest)
    return sorted(({(each.key[0], each.first_offset) for each in one.parts} for one in found), key=sorted)


def test_an_epoch_for_each_transaction_tells_them_apart_whatever_the_clocks_say() -> None:
    parts = [part(A, n * 3, 5000 - n, epoch=n, bumped=True) for n in range(3)]
    parts += [part(B, 0, 9, epoch=1, bumped=True), part(C, 0, None, epoch=2)]
    assert grouped(parts, []) == [{("a", 0)}, {("a", 3), ("b", 0)}, {("a", 6), ("c", 0)}]


def test_prepare_records_match_markers_in_their_order() -> None:
    parts = [part(A, 0, 101), part(A, 3, 300), part(B, 0, 210), part(B, 3, 302), part(C, 0, 102)]
    decisions = [decision(100, A, C), decision(200, B), decision(299, A, B)]
    assert grouped(parts, decisions) == [{("a", 0), ("c", 0)}, {("a", 3), ("b", 3)}, {("b", 0)}]


def test_a_marker_that_comes_minutes_later_is_of_its_own_transaction() -> None:
    parts = [part(A, 0, 101), part(B, 0, 600_100), part(A, 3, 600_201)]
    decisions = [decision(100, A, B), decision(600_200, A)]
    assert grouped(parts, decisions) == [{("a", 0), ("b", 0)}, {("a", 3)}]


def test_a_brokers_clock_may_be_behind() -> None:
    parts = [part(A, n * 3, 1000 * n + 1) for n in range(5)] + [part(B, n * 3, 1000 * n - 300) for n in range(5)]
    decisions = [decision(1000 * n, A, B) for n in range(5)]
    assert grouped(parts, decisions) == [{("a", n * 3), ("b", n * 3)} for n in range(5)]


def test_markers_after_the_last_prepare_record_are_divided_by_time() -> None:
    """A copy has the transactions' topic first, and the other topics a little later."""
    parts = [part(A, 0, 101), part(B, 0, 102), part(A, 3, 5001), part(B, 3, 5002), part(A, 6, 9000)]
    assert grouped(parts, [decision(100, A, B)]) == [{("a", 0), ("b", 0)}, {("a", 3), ("b", 3)}, {("a", 6)}]


def test_without_prepare_records_the_largest_gap_divides_transactions() -> None:
    parts = [part(A, 0, 100), part(A, 3, 111), part(B, 0, 110), part(B, 3, 400, commit=False), part(C, 0, 401)]
    assert grouped(parts, []) == [{("a", 0)}, {("a", 3), ("b", 0)}, {("b", 3)}, {("c", 0)}]


def test_an_open_part_belongs_to_the_prepared_transaction_without_its_marker() -> None:
    parts = [part(A, 0, 101), part(B, 0, None), part(A, 3, 201)]
    decisions = [decision(100, A), decision(200, A, B)]
    assert grouped(parts, decisions) == [{("a", 0)}, {("a", 3), ("b", 0)}]


def test_an_open_part_joins_the_last_markers_of_a_source_that_ended_among_them() -> None:
    parts = [part(A, 0, 101), part(A, 3, 5000), part(B, 0, None)]
    assert grouped(parts, [], newest=5100) == [{("a", 0)}, {("a", 3), ("b", 0)}]
    assert grouped(parts, [], newest=60_000) == [{("a", 0)}, {("a", 3)}, {("b", 0)}]


def test_a_transaction_is_committed_only_if_it_is_whole_and_was_decided_below_the_cut() -> None:
    whole = Transaction(parts=[part(A, 0, 100), part(B, 0, 101)])
    assert whole.is_committed({A: 3, B: 3})
    assert whole.is_committed({A: 3, B: 2})  # its marker in b is above the cut
    assert not whole.is_committed({A: 3, B: 1})  # a record is
    assert not whole.is_committed({A: 2, B: 2})  # both markers are: it was open at the cut
    prepared = Transaction(parts=[part(A, 0, None), part(B, 0, None)], decision=decision(100, A, B))
    assert prepared.is_committed({A: 3, B: 3})
    assert not Transaction(parts=prepared.parts, decision=decision(1, A, B, kept=False)).is_committed({A: 3, B: 3})
    assert not Transaction(parts=[part(A, 0, 100), part(B, 0, None)]).is_committed({A: 3, B: 3})
    assert not Transaction(parts=[part(A, 0, 100, commit=False)]).is_committed({A: 3})


def test_an_undecided_transaction_is_aborted_with_the_next_epoch() -> None:
    assert Transaction(parts=[part(A, 0, None, epoch=4)]).marker_epoch == 5
    assert Transaction(parts=[part(A, 0, None, epoch=32767)]).marker_epoch == 32767
    assert Transaction(parts=[part(A, 0, 9, epoch=4), part(B, 0, None, epoch=4)]).marker_epoch == 4


def test_only_parts_near_the_cuts_are_kept_in_memory() -> None:
    traces = [{7: ProducerTrace(False, 10**9, 10**9 + 100)}, {7: ProducerTrace(False, 10**9 + 50, None)}]
    (window,) = producer_windows(traces, {}).values()
    for n in range(10_000):
        window.add(part(A, n * 3, n * 1_000_000), 3_003)
    times = [each.marker.timestamp for each in window.parts()[A] if each.marker]
    assert len(times) < 10
    assert {10**9, 1_001_000_000} <= set(times)


def test_drawn_transactions_are_recognized_in_spite_of_clocks_that_differ() -> None:
    for seed in range(200):
        choose = random.Random(seed)
        skew = {key: choose.randrange(-5, 6) for key in (A, B, C)}
        ends = dict.fromkeys(skew, 0)
        now, parts, decisions, expected = 0, [], [], []
        for _ in range(choose.randrange(1, 30)):
            now += choose.randrange(30, 3000)
            keys = choose.sample([A, B, C], choose.randrange(1, 4))
            commit = choose.random() < 0.8
            decisions.append(decision(now, *keys, commit=commit))
            expected.append({(key[0], ends[key]) for key in keys})
            for key in keys:
                now += choose.randrange(0, 5)
                parts.append(part(key, ends[key], now + skew[key], commit=commit))
                ends[key] += 3
        assert grouped(parts, decisions) == sorted(expected, key=sorted), seed
        flat = list(itertools.chain.from_iterable(grouped(parts, [])))
        assert len(flat) == len(set(flat)) == len(parts)


def newer(known: Known, parts: list[Part], decisions: list[Decision]) -> set[tuple[str, int]]:
    """Return (topic, first offset) of the parts that may have others."""
    by_key: dict[TopicPartition, list[Part]] = {}
    for each in parts:
        by_key.setdefault(each.key, []).append(each)
    found = group_parts(by_key, decisions, 10**9)
    mark_newer(found, known)
    cuts = dict.fromkeys((A, B, C), 1000)
    assert not any(each.is_committed(cuts) for each in found if each.is_newer)
    return {(part.key[0], part.first_offset) for each in found if each.is_newer for part in each.parts}


def test_a_transaction_after_the_end_of_the_transaction_log_may_have_more_partitions() -> None:
    """A copy has the marker in `a`, but not the offsets that the transaction committed: it ended at ONGOING."""
    parts, decisions = [part(A, 0, 101), part(B, 0, 101), part(A, 3, 205)], [decision(100, A, B)]
    assert newer(Known(199, 200, frozenset()), parts, decisions) == {("a", 3)}
    assert newer(Known(205, 205, frozenset()), parts, decisions) == set()


def test_the_markers_after_the_last_prepare_record_are_of_its_transaction() -> None:
    parts, prepared = [part(A, 0, 101), part(B, 0, 101), part(C, 0, 102), part(A, 3, 104)], decision(100, A, B)
    assert newer(Known(100, 100, prepared.partitions), parts, [prepared]) == {("a", 3), ("c", 0)}
    late = [part(A, 0, 101), part(B, 0, 101)]
    assert newer(Known(100, 100, prepared.partitions), late, [prepared]) == set()


def test_producers_with_a_transaction_after_the_end_of_the_transaction_log_are_looked_at() -> None:
    traces = [{7: ProducerTrace(False, 205, None), 8: ProducerTrace(False, 205, None), 9: ProducerTrace(False, 1)}]
    assert set(producer_windows(traces, {7: Known(199, 200, frozenset()), 8: Known(205, 205, frozenset())})) == {7}


def test_markers_a_gap_apart_may_be_of_one_transaction() -> None:
    assert grouped([part(A, 0, 5000), part(B, 0, 5000 + GAP_MS)], []) == [{("a", 0), ("b", 0)}]
    assert grouped([part(A, 0, 5000), part(B, 0, 5001 + GAP_MS)], []) == [{("a", 0)}, {("b", 0)}]


def test_the_missing_marker_at_the_end_is_of_the_last_transaction() -> None:
    """Unless the source has markers that are newer by more than a gap."""
    parts = [part(A, 0, 5000), part(B, 0, None)]
    assert grouped(parts, [], 5000 + GAP_MS) == [{("a", 0), ("b", 0)}]
    assert grouped(parts, [], 5001 + GAP_MS) == [{("a", 0)}, {("b", 0)}]


def test_a_transaction_is_committed_if_all_of_its_records_are_below_the_cut() -> None:
    whole = Transaction(parts=[part(A, 0, 5000)], decision=decision(4999, A))
    assert [whole.is_committed({A: cut}) for cut in (1, 2, 3)] == [False, True, True]
    assert [whole.is_kept({A: cut}) for cut in (0, 1)] == [False, True]


def test_a_window_has_the_parts_between_two_times_and_those_around_the_cut() -> None:
    window = PartWindow(low_ms=100, high_ms=200)
    for at, time in ((0, 99), (3, 100), (6, 101), (9, 199), (12, 200), (15, 201)):
        window.add(part(A, at, time), cut_offset=8 + 1)
    assert [each.first_offset for each in window.parts()[A]] == [3, 6, 9, 12]


def test_a_marker_at_the_start_of_an_ongoing_transaction_is_newer_than_the_transaction_log(tmp_path: Path) -> None:
    value = TransactionLogValue(producer_id=7, transaction_status=1, transaction_start_timestamp_ms=NOW - 100)
    written = batch([keyed(TransactionLogKey(transactional_id="tx"), value)], 0)
    log = LogDirectory(log_of(tmp_path, "__transaction_state-0", written))["__transaction_state", 0]
    assert isinstance(log, PartitionLog)
    survey = Survey(log=log, log_start_offset=0, source_end=1, cut_offset=1)
    assert read_known({("__transaction_state", 0): survey})[7].until_ms == NOW - 101
