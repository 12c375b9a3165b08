"""Version ranges (docs/spec/messages.md, 1.5)."""

from __future__ import annotations

import pytest

from kwire.schema import Versions
from kwire.schema.versions import ALL, NONE

RANGES = [
    ("none", (0, -1), "none"),
    ("3", (3, 3), "3"),
    ("0-2", (0, 2), "0-2"),
    ("2-2", (2, 2), "2"),
    ("4+", (4, 32767), "4+"),
    ("0-32767", (0, 32767), "0+"),
    (" 1+ ", (1, 32767), "1+"),
    ("007", (7, 7), "7"),
    ("0", (0, 0), "0"),
    ("0-0", (0, 0), "0"),
    ("00", (0, 0), "0"),
    ("000000", (0, 0), "0"),  # Java's Integer.parseInt takes any number of zeros
    ("000000-00000032767", (0, 32767), "0+"),
    ("0" * 10_000 + "3+", (3, 32767), "3+"),
    ("32767", (32767, 32767), "32767"),
]


@pytest.mark.requirement("SDEF-11")
@pytest.mark.requirement("SDEF-17", "SDEF-34", "S482-04", "S482-32")
@pytest.mark.parametrize(("text", "ends", "written"), RANGES)
def test_a_range_round_trips_in_canonical_form(text: str, ends: tuple[int, int], written: str) -> None:
    versions = Versions.parse(text)
    assert (versions.lowest, versions.highest) == ends
    assert str(versions) == written
    assert Versions.parse(written) == versions


BAD = [
    "",
    "-1",
    "3-",
    "0 - 2",
    "0-2-3",
    "32768",
    "00032768",
    "0-32768",
    "100000",
    "x",
    "+3",
    "+3+",
    "5-3",
    "1.5",
    "0x1",
    "٣",
    "9" * 10_000,
    "++",
    "None",
]


@pytest.mark.requirement("E-07", "T-03")
@pytest.mark.parametrize("text", BAD)
def test_invalid_ranges_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="version range"):
        Versions.parse(text)


def test_ranges_behave_as_sets_of_versions() -> None:
    assert list(Versions(2, 4)) == [2, 3, 4]
    assert (len(Versions(2, 4)), len(NONE), bool(NONE)) == (3, 0, False)
    assert 4 in Versions(2, 4)
    assert 5 not in Versions(2, 4)
    assert ALL.covers(NONE)
    assert NONE.covers(NONE)
    assert not Versions(2, 4).covers(Versions(2, 5))
    assert Versions(0, 4).intersect(Versions(3, 9)) == Versions(3, 4)
    assert Versions(0, 1).intersect(Versions(3, 9)) == NONE


def test_subtraction_is_one_range_or_undefined() -> None:
    assert Versions(1, 5).subtract(Versions(3, 9)) == Versions(1, 2)
    assert Versions(1, 5).subtract(Versions(0, 2)) == Versions(3, 5)
    assert Versions(1, 5).subtract(Versions(0, 9)) == NONE
    assert Versions(1, 5).subtract(Versions(7, 9)) == Versions(1, 5)
    assert Versions(1, 5).subtract(Versions(2, 4)) is None
