"""Tables in terminals of any width."""

from __future__ import annotations

import pytest

from kwire.cli import terminal
from kwire.cli.log.ls import COUNTS
from kwire.cli.rows import TOPIC, Column, Format, write_rows

COLUMNS = (TOPIC, Column(key="partition", heading="PARTITION", right=True), *COUNTS)
LONG = "a" + "b" * 247 + "c"


def row(topic: str) -> dict[str, object]:
    return {
        "topic": topic,
        "partition": 12,
        "segments": 6,
        "log_start_offset": 0,
        "log_end_offset": 7015,
        "high_watermark": 7015,
        "last_stable_offset": 7015,
        "size_bytes": 751_000,
        "last_timestamp": 1_760_000_000_378,
    }


def table(
    topics: list[str], width: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], str]:
    monkeypatch.setattr(terminal, "width", lambda: width)
    write_rows(map(row, topics), COLUMNS, Format.TABLE)
    out, err = capsys.readouterr()
    return out.splitlines(), err


def test_80_columns_show_size_and_time_without_the_optional_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, told = table(["orders", "payments.europe"], 80, capsys, monkeypatch)
    assert lines[0].split() == ["TOPIC", "PARTITION", "START", "END", "SIZE", "LAST", "TIME"]
    assert lines[1].split() == ["orders", "12", "0", "7015", "733", "KiB", "2025-10-09", "08:53:20.378Z"]
    left_out = "SEGMENTS, HIGH WATERMARK, LAST STABLE"
    assert told == f"kwire: 80 columns are too few for {left_out}; --format json has all values\n"


@pytest.mark.parametrize("width", range(70, 140))
def test_a_long_name_is_shortened_before_numbers_are_lost(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, _ = table([LONG, "orders"], width, capsys, monkeypatch)
    if width >= 77:  # 16 of a name, and the columns that are not optional
        assert all(len(line) <= width for line in lines)
        assert lines[1].endswith("2025-10-09 08:53:20.378Z")
    name = lines[1].split()[0]
    assert name.startswith("abbb")
    assert name.endswith("bbbc")
    assert "…" in name


def test_columns_are_left_out_only_as_needed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = table(["orders"], None, capsys, monkeypatch)
    size = len(whole[1])
    for width, missing in ((size, 0), (size - 1, 1)):
        lines, told = table(["orders"], width, capsys, monkeypatch)
        assert ("LAST STABLE" in lines[0]) == (not missing)
        assert "HIGH WATERMARK" in lines[0]
        assert bool(told) == bool(missing)


def test_nothing_is_cut_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines, told = table([LONG], None, capsys, monkeypatch)
    assert lines[1].split()[0] == LONG
    assert told == ""
