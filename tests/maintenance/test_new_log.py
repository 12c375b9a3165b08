"""Runs of batches that are appended at once to a new log."""

from __future__ import annotations

import pytest

from kwire.maintenance.new_log import pieces
from kwire.records import ControlRecordType, write_transaction_marker
from tests.log.writing import NOW, batch


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_a_run_ends_above_its_minimum_size(count: int) -> None:
    one = batch(b"x" * 100)
    data = memoryview(one * count)
    for more, batches in ((-1, 2), (0, 3), (1, 3)):
        found = list(pieces(data, 2 * len(one) + more))
        step = batches * len(one)
        assert found == [(at, min(at + step, len(data))) for at in range(0, len(data), step)]


def test_a_run_ends_after_a_marker() -> None:
    marker = write_transaction_marker(
        ControlRecordType.COMMIT, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW
    )
    one = batch(b"x")
    data = memoryview(one + marker + marker + one + one)
    first, second = len(one) + len(marker), len(one) + 2 * len(marker)
    assert list(pieces(data)) == [(0, first), (first, second), (second, len(data))]
