"""The encoding report."""

from __future__ import annotations

from kwire.pages.encoding_report import render_encodings


def test_a_report_without_rows_has_a_note() -> None:
    assert "every field has its best encoding" in render_encodings([], title="empty", count=0, size_bytes=0)
