"""Scans of single segments whose batches disagree with each other: which of them is at fault, and what is kept."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kwire.log.files.damage import Kind
from kwire.maintenance.verify.batches import ValidBatches
from tests.maintenance.verify.test_verify import scan
from tests.records.building import batch, record

Found = list[tuple[int, int] | tuple[int, Kind, tuple[int, int] | None]]


def one(offset: int, last: int | None = None, **fields: int) -> bytes:
    """Return a batch of one record with these offsets."""
    return batch(record(), base_offset=offset, last_offset_delta=(last or offset) - offset, **fields)


def results(folder: Path, *batches: bytes, next_base: int | None = None) -> Found:
    """Return (first, last offset) of runs of valid batches, and (number of the batch, kind, offsets) of damage.

    next_base: of the segment behind.
    """
    folder = folder / "t-0"
    folder.mkdir()
    path = folder / f"{0:020d}.log"
    path.write_bytes(b"".join(batches))
    if next_base is not None:
        (folder / f"{next_base:020d}.log").touch()
    starts = [sum(map(len, batches[:i])) for i in range(len(batches))]
    found: Found = []
    for each in scan(path):
        if isinstance(each, ValidBatches):
            found.append((int(each.base[0]), int(each.last[-1])))
        else:
            found.append((starts.index(each.position), each.kind, each.offsets))
    return found


def test_batches_around_records_that_cannot_be_decoded_are_kept(tmp_path: Path) -> None:
    bad = [batch(b"\xff" * 9, base_offset=offset) for offset in (1, 3)]
    assert results(tmp_path, one(0), bad[0], one(2), bad[1]) == [
        (0, 0),
        (1, Kind.RECORDS, (1, 1)),
        (2, 2),
        (3, Kind.RECORDS, (3, 3)),
    ]


def test_a_batch_with_a_wrong_checksum_has_lost_its_own_offsets_only(tmp_path: Path) -> None:
    """The offsets between it and the next batch may never have been used."""
    assert results(tmp_path, one(0), one(1, crc=1), one(5)) == [(0, 0), (1, Kind.CHECKSUM, (1, 1)), (5, 5)]


def test_a_wrong_length_up_to_the_end_of_the_file_hides_no_batch(tmp_path: Path) -> None:
    long = bytearray(one(1))
    struct.pack_into(">i", long, 8, len(one(1)) + len(one(2)) - 12)
    assert results(tmp_path, one(0), bytes(long), one(2)) == [(0, 0), (1, Kind.CHECKSUM, (1, 1)), (2, 2)]


def test_an_incomplete_batch_has_lost_the_offset_of_its_only_record(tmp_path: Path) -> None:
    assert results(tmp_path, one(0), one(1)[:-3]) == [(0, 0), (1, Kind.CUT, (1, 1))]


@pytest.mark.parametrize(
    ("offsets", "wrong", "lost"),
    [
        ([(0, 0), (1, 3), (2, 2), (5, 5)], 2, (4, 4)),  # the one before continues the offsets
        ([(0, 0), (1, 4), (3, 3), (4, 4)], 1, (1, 2)),  # the one after it does
        ([(0, 0), (5, 5), (0, 0), (6, 6)], 2, None),
        ([(0, 0), (1, 1), (0, 0)], 2, None),  # the last of the file
        ([(0, 0), (1, 3), (2, 2)], 2, None),
        ([(0, 0), (7, 7), (1, 1)], 1, None),  # no offset is left for it
    ],
)
def test_one_of_two_batches_with_overlapping_offsets_is_at_fault(
    offsets: list[tuple[int, int]], wrong: int, lost: tuple[int, int] | None, tmp_path: Path
) -> None:
    found = results(tmp_path, *(one(*each) for each in offsets))
    assert [each for each in found if len(each) == 3] == [(wrong, Kind.OFFSETS, lost)]


def test_records_of_the_first_batch_that_cannot_be_decoded(tmp_path: Path) -> None:
    bad = batch(b"\xff" * 9, base_offset=0)
    assert results(tmp_path, bad, one(1)) == [(0, Kind.RECORDS, (0, 0)), (1, 1)]


def test_a_damaged_batch_claims_no_offset_of_the_next_segment(tmp_path: Path) -> None:
    """Its offset may be damaged too, so what follows is not measured by it."""
    assert results(tmp_path, one(0), one(5, crc=1), next_base=5) == [(0, 0), (1, Kind.CHECKSUM, None)]


def test_a_damaged_batch_of_the_next_segment_is_not_followed(tmp_path: Path) -> None:
    found = results(tmp_path, one(0), one(5, crc=1), one(6), next_base=5)
    assert found == [(0, 0), (1, Kind.CHECKSUM, (1, 4))]


@pytest.mark.parametrize(("offset", "lost"), [(2**31 - 1, (2**31 - 1, 2**31 - 1)), (2**31, None)])
def test_an_incomplete_batch_claims_offsets_that_its_index_can_hold(
    offset: int, lost: tuple[int, int] | None, tmp_path: Path
) -> None:
    assert results(tmp_path, one(0), one(offset)[:-3]) == [(0, 0), (1, Kind.CUT, lost)]


@pytest.mark.parametrize(("offset", "lost"), [(1, None), (2, (1, 1))])
def test_bytes_between_batches_have_lost_the_offsets_between_them(
    offset: int, lost: tuple[int, int] | None, tmp_path: Path
) -> None:
    assert results(tmp_path, one(0), b"\xff" * 100, one(offset)) == [
        (0, 0),
        (1, Kind.HEADER, lost),
        (offset, offset),
    ]


@pytest.mark.parametrize(("next_base", "lost"), [(1, None), (2, (1, 1))])
def test_bytes_behind_all_batches_have_lost_the_offsets_up_to_the_next_segment(
    next_base: int, lost: tuple[int, int] | None, tmp_path: Path
) -> None:
    found = results(tmp_path, one(0), b"\xff" * 100, next_base=next_base)
    assert found == [(0, 0), (1, Kind.HEADER, lost)]
