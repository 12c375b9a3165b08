"""Tables of both formats, in a directory of the test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lake.tables import FORMATS, Tables

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")


@pytest.fixture(params=FORMATS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """A place for tables: an SQLite catalog and its warehouse, or a directory."""
    return Tables(request.param, tmp_path)


@pytest.fixture
def iceberg(tmp_path: Path) -> Tables:
    return Tables("iceberg", tmp_path)


@pytest.fixture
def delta(tmp_path: Path) -> Tables:
    return Tables("delta", tmp_path)
