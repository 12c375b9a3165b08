"""The examples of docs/tables.md and of the pages that continue them run from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.examples import blocks

pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONTINUED = (
    "table-append.md",
    "table-changes.md",
    "table-dead-letters.md",
    "table-record-types.md",
    "table-streams.md",
    "table-verify.md",
)


def run(page: str, names: dict[str, Any], folder: Path) -> None:
    for source in blocks(page, "python"):
        exec(compile(source.replace("/tmp/", f"{folder}/"), page, "exec"), names)


@pytest.fixture(scope="module")
def first_page(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    """The names after the examples of the first page, and the folder of their tables."""
    names: dict[str, Any] = {}
    folder = tmp_path_factory.mktemp("pages")
    (folder / "lake").mkdir()
    try:
        run("tables.md", names, folder)
        assert names["spark"] is spark
        yield names, folder
    finally:
        if "broker" in names:
            names["broker"].stop()


@pytest.mark.slow
@pytest.mark.parametrize("page", CONTINUED)
def test_the_examples_of_the_pages_run(page: str, first_page: tuple[dict[str, Any], Path]) -> None:
    names, folder = first_page
    assert blocks(page, "python")
    run(page, dict(names), folder)
