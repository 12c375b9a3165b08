"""The examples of docs/plan.md and docs/protocol.md run, and print what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kwire.protocol import TRANSITIONS, Event, State

DOCS = Path(__file__).parents[2] / "docs"
EVENTS = (
    Event.RECEIVE,
    Event.ASK,
    Event.AGREE,
    Event.REFUSE,
    Event.SEND,
    Event.SEND_EXPLICIT,
    Event.BREAK,
    Event.CLOSE,
)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", ["plan.md", "protocol.md"])
def test_the_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
        printed = capsys.readouterr().out
        for remark in re.findall(r"print\(error\) +# (.*)", block):
            assert remark in printed
    assert names


def test_the_listing_and_the_annotation_are_what_the_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    listing, annotation = blocks("plan.md", "text")
    for block, shown in zip(blocks("plan.md", "python")[:2], (listing, annotation), strict=True):
        capsys.readouterr()
        exec(compile(block, "plan.md", "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == len(shown.splitlines())
        for ours, page in zip(printed, shown.splitlines(), strict=True):
            assert page.replace(" ", "").startswith(ours.replace(" ", ""))


def test_the_table_of_states_is_the_one_in_the_code() -> None:
    found = {}
    for line in (DOCS / "protocol.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] in State.__members__:
            for event, cell in zip(EVENTS, cells[1:], strict=True):
                if cell:
                    found[State[cells[0]], event] = State[cell]
    assert found == TRANSITIONS
