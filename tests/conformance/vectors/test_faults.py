"""The data set finds seeded faults in a codec, and none in kwire."""

from __future__ import annotations

import functools
import importlib.util
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.conformance import Verdict
from kwire.conformance.vectors import Case, cases, judge_all
from kwire.errors import KwireError
from tests.conformance.vectors.faulty_codecs import Fault, all_faults

RUNNER = Path(__file__).parents[3] / "examples" / "conformance" / "kwire_runner.py"
SAMPLE = ("messages/FetchRe", "messages/ProduceRe", "messages/MetadataRe", "headers/", "frames/Api", "data/Group")
LONG = 100_000
FAULTS = list(all_faults())


@functools.cache
def runner() -> Any:
    spec = importlib.util.spec_from_file_location("kwire_runner", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask(task: dict[str, Any]) -> dict[str, Any]:
    """Answer as the runner of kwire does, in this process."""
    response: dict[str, Any]
    try:
        response = runner().run(**task)
    except KwireError as error:
        response = {"rejected": str(error)}
    return response


@functools.cache
def short_cases(chapter: str) -> list[Case]:
    return [case for case in cases(only=[chapter]) if len(case.bytes) < LONG]


def chosen(where: tuple[str, ...]) -> Iterator[Case]:
    for chapter in sorted({word.split("/")[0] for word in where}):
        yield from (case for case in short_cases(chapter) if case.id.startswith(where))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_found(fault: Fault) -> None:
    results = judge_all(chosen(fault.where), fault.codec(ask))
    assert any(result.verdict is Verdict.FAIL for result in results)  # the first one is enough


def test_kwire_has_no_findings() -> None:
    """Where the faults are looked for, a third of the cases: all of them are judged in ./dev vectors --check."""
    where = tuple({*SAMPLE, *(each for fault in FAULTS for each in fault.where)})
    results = list(judge_all(itertools.islice(chosen(where), 0, None, 3), ask))
    assert len(results) > 1000
    assert not [(each.check.id, each.reason) for each in results if each.verdict is Verdict.FAIL]
