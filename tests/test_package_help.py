"""`help(kwire)` is a map of the package: its imports work."""

from __future__ import annotations

import re

import pytest

import kwire

IMPORTS = re.findall(r"^    ((?:from|import) kwire.*?)(?:  |$)", kwire.__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("line", IMPORTS)
def test_every_import_of_the_map_works(line: str) -> None:
    if "spark" in line:
        pytest.importorskip("pyspark")
    exec(line, {})


def test_the_map_names_an_import_for_each_task() -> None:
    assert len(IMPORTS) > 15
