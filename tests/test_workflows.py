"""The workflows of the forge: pinned actions, no permission that is not asked for, and nothing but verbs of ./dev.

`./dev workflows` lints them with zizmor and actionlint.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tools import nightly

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")

each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def test_releasing_names_every_workflow() -> None:
    text = (ROOT / "RELEASING.md").read_text("utf-8")
    assert [path.stem for path in WORKFLOWS if f"| `{path.stem}` |" not in text] == []
    assert len(WORKFLOWS) == 3


@each_workflow
def test_actions_are_pinned_by_commit_with_their_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []


def test_all_workflows_use_the_same_commit_of_an_action() -> None:
    used = {each for path in WORKFLOWS for each in re.findall(r"uses: (.*)", path.read_text("utf-8"))}
    assert len({each.partition("@")[0] for each in used}) == len(used)


@each_workflow
def test_steps_run_verbs_of_dev_and_nothing_else(path: Path) -> None:
    verbs = set(re.findall(r"^([a-z]+)\) #", (ROOT / "dev").read_text("utf-8"), re.MULTILINE))
    lines = re.findall(r"run: (.*)", path.read_text("utf-8"))
    assert [line for line in lines if not (line.startswith("./dev ") and line.split()[1] in verbs)] == []
    assert all("${{" not in line for line in lines)  # text that others choose does not become code


@each_workflow
def test_no_permission_is_given_to_all_jobs(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "\npermissions: {}\n" in text
    jobs = text.partition("\njobs:\n")[2]
    assert len(re.findall(r"^    permissions:$", jobs, re.MULTILINE)) == len(re.findall(r"^  \w+:", jobs, re.MULTILINE))
    writes = re.findall(r"([\w-]+): write", text)
    assert writes == (["attestations", "id-token"] if path.stem == "release" else [])
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_each_supported_python_is_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    supported = [each.rpartition(" :: ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8")
    (listed,) = re.findall(r"^        python: \[(.*)\]", text, re.MULTILINE)
    assert [each.strip('"') for each in listed.split(", ")] == supported


def test_the_nightly_jobs_run_each_part_once() -> None:
    text = (ROOT / ".github" / "workflows" / "nightly.yml").read_text("utf-8")
    (listed,) = re.findall(r"part: \[(.*)\]", text)
    ran = [part.name for word in listed.split(", ") for part in nightly.parts(30, None) if word in part.name]
    assert sorted(ran) == sorted(part.name for part in nightly.parts(30, None))
