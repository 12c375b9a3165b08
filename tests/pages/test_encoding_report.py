"""The encoding report, under its present and its former name."""

from __future__ import annotations

import importlib

import pytest

from kwire.pages.encoding_report import render_encodings


def test_the_former_module_works_and_warns() -> None:
    former = importlib.import_module("kwire.cli.report.encodings")
    with pytest.warns(DeprecationWarning, match=r"kwire\.pages\.encoding_report"):
        assert former.render_encodings is render_encodings
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        _ = former.other


def test_a_report_without_rows_has_a_note() -> None:
    assert "every field has its best encoding" in render_encodings([], title="empty", count=0, size_bytes=0)
