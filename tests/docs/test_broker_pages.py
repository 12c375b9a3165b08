"""docs/transactions.md and docs/security.md: examples run, and configs exist with the documented defaults."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from kwire.broker.configs.settings import Settings

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["transactions.md", "security.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page: str) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        exec(compile(example, page, "exec"), {"__name__": "example"})


@pytest.mark.parametrize("page", PAGES)
def test_documented_configs_exist(page: str) -> None:
    rows = re.findall(r"^\| (`\w+`[^|]*) \|", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) >= 6
    assert named <= {field.name for field in dataclasses.fields(Settings)}
