"""Checks of single index files against the batches of their segment."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kwire.maintenance.verify.batches import ValidBatches
from kwire.maintenance.verify.indexes import OffsetIndexCheck, TimeIndexCheck
from kwire.storage.store import LocalStore
from tests.maintenance.verify.test_verify import scan
from tests.records.building import batch, record


def batches_in(folder: Path, *batches: bytes) -> list[ValidBatches]:
    """Return the batches of a segment as a scan has them."""
    folder = folder / "t-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    return [each for each in scan(path) if isinstance(each, ValidBatches)]


def offset_faults(folder: Path, batches: list[ValidBatches], *entries: tuple[int, int]) -> list[str]:
    """Return the faults of an offset index with these entries."""
    (folder / "index").write_bytes(b"".join(struct.pack(">ii", *each) for each in entries))
    with LocalStore(str(folder)).open("index") as file:
        check = OffsetIndexCheck(file, 0)
    for each in batches:
        check.add(each)
    return [each.cause for each in check.finish(int(batches[-1].position[-1] + batches[-1].size[-1]) if batches else 0)]


def test_an_entry_may_point_into_no_batch_not_even_the_last(tmp_path: Path) -> None:
    one, two = batch(record(), base_offset=1), batch(record(), base_offset=2)
    found = batches_in(tmp_path, one, two)
    assert offset_faults(tmp_path, found, (2, len(one))) == []
    inside = ["1 entry is wrong of 1, the first: it points into the middle of a batch"]
    assert offset_faults(tmp_path, found, (1, 1)) == inside
    assert offset_faults(tmp_path, found, (2, len(one) + 1)) == inside
    beyond = ["1 entry is wrong of 1, the first: it points past the end of the log"]
    assert offset_faults(tmp_path, found, (2, len(one + two))) == beyond


def test_an_empty_entry_points_nowhere(tmp_path: Path) -> None:
    """Indexes are allocated with zeros."""
    wrong = ["1 entry is wrong of 2, the first: it points past the end of the log"]
    assert offset_faults(tmp_path, [], (0, 0), (5, 70)) == wrong


@pytest.mark.parametrize(("largest", "faults"), [(-1, 0), (0, 1)])
def test_a_closed_time_index_has_the_largest_timestamp_even_if_it_is_0(
    largest: int, faults: int, tmp_path: Path
) -> None:
    """Kafka adds an entry for any timestamp above -1 when it closes a segment."""
    found = batches_in(tmp_path, batch(record(), base_timestamp=largest, max_timestamp=largest))
    (tmp_path / "timeindex").touch()
    with LocalStore(str(tmp_path)).open("timeindex") as file:
        check = TimeIndexCheck(file, 0)
    for each in found:
        check.add(each)
    assert len(check.finish(is_closed=True)) == faults
