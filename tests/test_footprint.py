"""The tables of docs/install.md: sizes and imports are as they say, with some room for other releases and platforms."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

import pytest
from tools import footprint

BASE_LIMIT_MB = 30
SLACK = 0.25
SMALL_MB = 2


@pytest.fixture(scope="module")
def sizes() -> dict[str, float]:
    return {extra: size / footprint.MEGABYTE for extra, size in footprint.sizes(footprint.wheel_size()).items()}


@pytest.mark.slow
def test_a_base_install_is_small(sizes: dict[str, float]) -> None:
    assert 5 < sizes[""] < BASE_LIMIT_MB


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="libraries have other sizes elsewhere"
)
def test_sizes_are_about_those_of_the_page(sizes: dict[str, float]) -> None:
    legacy = [each.name for each in importlib.metadata.distributions() if each.read_text("RECORD") is None]
    if legacy:
        pytest.skip(f"{legacy[0]} was installed by setup.py, which Python 3.11 finds no list of files of")
    page = {extra: float(row[0].replace(",", "")) for extra, row in footprint.table("sizes").items()}
    assert page.keys() == {extra or "none" for extra in sizes}
    wrong = {
        extra: (page[extra or "none"], round(size))
        for extra, size in sizes.items()
        if abs(page[extra or "none"] - size) > max(SMALL_MB, SLACK * size)
    }
    assert not wrong, "(page, measured) in MB; python tools/footprint.py writes the page"


@pytest.mark.slow
def test_imports_load_the_libraries_of_the_page() -> None:
    page = footprint.table("imports")
    measured = footprint.imports(timed=False)
    assert page.keys() == measured.keys()
    assert {name: row[3] for name, row in page.items()} == {
        name: ", ".join(each.libraries) or "none" for name, each in measured.items()
    }
    for name, each in measured.items():
        assert abs(int(page[name][2]) - each.modules) <= max(20, SLACK * each.modules), name
