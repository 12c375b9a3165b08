"""The same queries have the same answers over every kind of source. The rest is in tests/spark/test_one_answer.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.object_store import PROXIES, VARIABLES

pytest.importorskip("duckdb")

from tests.sql.differences import SOURCES
from tests.sql.one_answer import ask_duckdb, draw
from tests.sql.written_queries import QUERIES as WRITTEN

QUERIES = int(os.environ.get("KWIRE_QUERIES", "10"))
SOME_WRITTEN = WRITTEN if "KWIRE_QUERIES" in os.environ else WRITTEN[::6]
IN_S3 = ("store", "tiered store")


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore")  # of boto
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.slow if kind in IN_S3 else ()) for kind in SOURCES[1:]]
)
def test_queries_have_one_answer(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*VARIABLES, *PROXIES):
        monkeypatch.delenv(name, raising=False)
    folders = [tmp_path / name for name in ("draw", "directory", "other")]
    for each in folders:
        each.mkdir()
    conditions = draw(QUERIES, 1, folders[0])
    expected = ask_duckdb("directory", conditions, folders[1], SOME_WRITTEN)
    assert ask_duckdb(kind, conditions, folders[2], SOME_WRITTEN) == expected
    assert any(answer[0] for answer in expected)
