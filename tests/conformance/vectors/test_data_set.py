"""The data set: what it has, what a release has of it, and the files that are written."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kwire.cli.main import run
from kwire.conformance.vectors import CHAPTERS, Case, cases, manifest, write_cases
from kwire.conformance.vectors.data_set import lines
from kwire.errors import OptionError
from kwire.messages import registry

MAX_BYTES = 3_000_000


@pytest.fixture(scope="module")
def all_cases() -> list[Case]:
    return list(cases())


@pytest.fixture(scope="module")
def counts(all_cases: list[Case]) -> dict[str, Counter[str]]:
    """Verdicts by chapter."""
    found: dict[str, Counter[str]] = {chapter: Counter() for chapter in CHAPTERS}
    for case in all_cases:
        found[case.chapter][case.verdict] += 1
    return found


@pytest.mark.slow
def test_the_manifest_is_true(counts: dict[str, Counter[str]]) -> None:
    about = manifest()
    assert about["cases"] == sum(sum(each.values()) for each in counts.values())
    for chapter, each in counts.items():
        stated = about["chapters"][chapter]
        assert {name: stated[name] for name in each} == each
        assert stated["sha256"] == hashlib.sha256(b"".join(lines(chapter))).hexdigest()


def test_there_are_enough_cases(counts: dict[str, Counter[str]]) -> None:
    assert counts["messages"]["accept"] + counts["data"]["accept"] >= 20_000
    assert counts["batches"]["accept"] >= 1_000
    assert sum(each["reject"] for each in counts.values()) >= 500


def test_every_message_in_every_version_is_there(all_cases: list[Case]) -> None:
    found = {(case.type, case.version) for case in all_cases if case.chapter in ("messages", "headers")}
    for name in registry.names(kafka="4.4.0"):
        versions = registry.get(name, kafka="4.4.0").SPEC.valid
        missing = [v for v in range(versions.lowest, versions.highest + 1) if (name, v) not in found]
        assert not missing, name


def test_ids_are_unique_and_say_what_the_case_is(all_cases: list[Case]) -> None:
    seen: set[str] = set()
    for case in all_cases:
        assert case.id not in seen
        seen.add(case.id)
        chapter, name, version, _ = case.id.split("/")
        assert (chapter, name, version.partition("@")[0]) == (case.chapter, case.type, str(case.version))
        assert case.reason
        assert (case.kafka is not None) == (case.verdict == "either")


def test_it_is_small_enough_for_the_package() -> None:
    folder = Path(__file__).parents[3] / "src" / "kwire" / "conformance" / "vectors" / "data"
    assert sum(path.stat().st_size for path in folder.iterdir()) < MAX_BYTES


@pytest.mark.parametrize(
    ("since", "until", "release", "expected"),
    [
        ("2.4.1", None, "2.4", True),
        ("2.4.1", None, "2.4.1", True),
        ("2.4.1", None, "2.3", False),
        ("2.4.1", None, "4.4", True),
        ("2.4.1", "3.9.2", "3.9", True),
        ("2.4.1", "3.9.2", "4.0", False),
        ("4.0.2", "4.0.2", "4.0", True),
        ("4.0.2", "4.0.2", "3.9.1", False),
    ],
)
def test_releases(since: str, until: str | None, release: str, expected: bool) -> None:
    fields: dict[str, Any] = {"id": "", "chapter": "", "type": "", "version": 0, "bytes": "", "value": None}
    fields |= {"verdict": "accept", "encoding": "free", "reason": "", "source": "", "made": ""}
    assert Case(since=since, until=until, **fields).is_in(release) is expected


def test_files_are_written(tmp_path: Path) -> None:
    assert run(["conformance", "vectors", "-o", str(tmp_path), "--only", "primitives", "--only", "headers"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "LICENSE", "README.md", "headers.jsonl", "manifest.json", "primitives.jsonl",
    ]  # fmt: skip
    first = json.loads((tmp_path / "primitives.jsonl").read_text().splitlines()[0])
    assert list(first)[:4] == ["id", "chapter", "type", "version"]
    bytes.fromhex(first["bytes"])


def test_a_release_has_its_part(tmp_path: Path) -> None:
    all_of_them = write_cases(tmp_path, only=["batches"])["batches.jsonl"]
    assert 0 < write_cases(tmp_path, only=["batches"], release="2.0")["batches.jsonl"] < all_of_them


@pytest.mark.parametrize("arguments", [["--only", "mesages"], ["--release", "5.0"], ["--release", "x"]])
def test_wrong_usage(arguments: list[str], tmp_path: Path) -> None:
    assert run(["conformance", "vectors", "-o", str(tmp_path), *arguments]) == 2
    with pytest.raises(OptionError):
        list(cases(only=["mesages"]))
