"""The data set finds seeded faults in a codec, and none in kwire."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.conformance import Result, Verdict
from kwire.conformance.vectors import Case, cases, judge_all
from kwire.errors import KwireError
from tests.conformance.vectors.faulty_codecs import Ask, Fault, all_faults

RUNNER = Path(__file__).parents[3] / "examples" / "conformance" / "kwire_runner.py"
SAMPLE = ("messages/FetchRe", "messages/ProduceRe", "messages/MetadataRe", "headers/", "frames/Api", "data/Group")
LONG = 100_000
FAULTS = list(all_faults())
Codec = Callable[[Ask], Ask]


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


def chosen(where: tuple[str, ...]) -> Iterator[Case]:
    chapters = {word.split("/")[0] for word in where}
    for case in cases(only=chapters):
        if case.id.startswith(where) and len(case.bytes) < LONG:
            yield case


def failures(where: tuple[str, ...], codec: Codec) -> list[Result]:
    found = list(judge_all(chosen(where), codec(ask)))
    assert found
    return [result for result in found if result.verdict is Verdict.FAIL]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_found(fault: Fault) -> None:
    results = judge_all(chosen(fault.where), fault.codec(ask))
    assert any(result.verdict is Verdict.FAIL for result in results)  # the first one is enough


@pytest.mark.parametrize("where", sorted({*SAMPLE, *(each for fault in FAULTS for each in fault.where)}))
def test_kwire_has_no_findings(where: str) -> None:
    found = failures((where,), lambda ask: ask)
    assert not [(result.check.id, result.reason) for result in found]
