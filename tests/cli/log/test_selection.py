"""What --offsets and --since may skip of a log without decoding it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli.log.selection import Selection
from kwire.records import Batch, Record, TimestampType, read_batches, write_batch

FIRST, COUNT, TIME_MS = 5, 4, 1000


def one_batch(magic: int, times: list[int]) -> Batch:
    records = [
        Record(
            offset=FIRST + i, timestamp=time, timestamp_type=TimestampType.CREATE_TIME, key=None, value=b"v", headers=[]
        )
        for i, time in enumerate(times)
    ]
    (batch,) = read_batches(write_batch(records, magic, "gzip", FIRST))
    return batch


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_no_batch_with_a_selected_offset_is_skipped(magic: int) -> None:
    """The header of a wrapper of magic 0 and 1 has only its last offset: its first ones may be selected."""
    batch = one_batch(magic, [TIME_MS] * COUNT)
    skipped = set()
    for first, end in itertools.combinations(range(FIRST + COUNT + 3), 2):
        selection = Selection(first_offset=first, end_offset=end)
        taken = [record.offset for record in batch.records() if selection.takes_record(record)]
        assert taken == [offset for offset in range(FIRST, FIRST + COUNT) if first <= offset < end]
        if not selection.may_take_from(batch):
            assert not taken
            skipped.add((first, end))
    assert (FIRST + COUNT, FIRST + COUNT + 1) in skipped  # after its last offset, in every magic
    assert ((0, FIRST) in skipped) == (magic == 2)  # before its first one, which only magic 2 has


@pytest.mark.parametrize("magic", [1, 2])
def test_no_batch_with_a_selected_time_is_skipped(magic: int) -> None:
    """Also where times go back inside the batch."""
    times = [TIME_MS + 30, TIME_MS, TIME_MS + 10, TIME_MS + 20]
    batch = one_batch(magic, times)
    for since in range(TIME_MS - 1, TIME_MS + 33):
        selection = Selection(since_ms=since)
        assert selection.may_take_from(batch) == (since <= TIME_MS + 30)
        assert [record.timestamp for record in batch.records() if selection.takes_record(record)] == [
            time for time in times if time >= since
        ]


def test_messages_without_a_timestamp_are_not_skipped_by_time() -> None:
    """Magic 0 has none: when they were written is not known."""
    batch = one_batch(0, [-1] * COUNT)
    assert batch.max_timestamp == -1
    assert Selection(since_ms=TIME_MS).may_take_from(batch)
    assert not Selection(since_ms=TIME_MS).may_take_from(one_batch(1, [TIME_MS - 1]))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--topic", "ids", "--topic", "order"],
            "no topic matches 'order' (did you mean 'orders'?); available topics: ",
        ),
        (["--topic", "ids", "--topic", "x*"], "no topic matches 'x*'; available topics: "),
        (
            ["--topic", "ids", "--partition", "0", "--partition", "7"],
            "no selected topic has partition 7; the highest is 1",
        ),
        (
            ["--topic", "ids", "--topic", "orders", "--partition", "7"],
            "no selected topic has partition 7; the highest is 2",
        ),
    ],
)
@pytest.mark.parametrize("command", [["ls"], ["verify"], ["dump"]])
def test_a_pattern_or_a_partition_that_selects_nothing_is_an_error(
    command: list[str], words: list[str], message: str, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    """Beside another one that selected something it was ignored."""
    result = kwire("log", *command, kafka_logs["modern"] / "data", *words)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
