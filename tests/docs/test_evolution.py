"""docs/evolution.md: its example, rules, hook and workflow are correct."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kwire.cli.main import run
from kwire.schema.evolution import RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evolution.md").read_text("utf-8")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """A repository with a committed definition of MetadataResponse, and a function that replaces text in it."""
    nobody = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "definitions" / "MetadataResponse.json"
    path.parent.mkdir()
    text = (ROOT / "definitions" / "kafka-4.4.0" / "clients" / "MetadataResponse.json").read_text()
    path.write_text(text)
    for arguments in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=Test", "-c", "user.email=t@localhost", "commit", "-q", "-m", "x"],
    ):
        subprocess.run(["git", *arguments], check=True, env=os.environ | nobody)

    def change(replacements: dict[str, str]) -> None:
        changed = text
        for old, new in replacements.items():
            assert changed.count(old) == 1, old
            changed = changed.replace(old, new)
        path.write_text(changed)

    return change


CHANGE = {
    '"nullableVersions": "12+"': '"nullableVersions": "10+"',
    '    {"name": "TopicAuthorizedOperations"': '    {"name": "Region", "type": "string", "versions": "9+", "tag": 0,'
    ' "taggedVersions": "9+"},\n      {"name": "TopicAuthorizedOperations"',
}


def test_the_example_prints_what_the_page_shows(
    repository: Callable[[dict[str, str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    repository(CHANGE)
    command, shown = re.findall(r"^```(?:sh|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[:2]
    assert run(shlex.split(command)[1:]) == 1
    assert capsys.readouterr().out == shown


def test_every_rule_is_in_the_table_with_its_verdict() -> None:
    table = PAGE[PAGE.index("## The rules") : PAGE.index("## Tags are forever")]
    listed = set(re.findall(r"V-\d+", "".join(line.split("|")[1] for line in table.splitlines() if line[:1] == "|")))
    assert listed == {rule for rule in RULES if rule.startswith("V-")}


def test_the_hook_accepts_the_commit_and_rejects_a_violation(
    repository: Callable[[dict[str, str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text()
    [entry] = re.findall(r"^  entry: kwire (.*)$", hooks, re.MULTILINE)
    [hook] = re.findall(r"- id: (\S+)\n        args: \[(.*)\]", PAGE)
    assert f"- id: {hook[0]}\n" in hooks
    arguments = [*entry.split(), *hook[1].split(", ")]
    assert run(arguments) == 0
    repository(CHANGE)
    assert run(arguments) == 1
    assert "[V-15]" in capsys.readouterr().out


def test_the_workflow_runs_commands_that_exist(
    repository: Callable[[dict[str, str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [line.replace('"$OLD"', "HEAD:definitions") for line in re.findall(r"- run: kwire (.*)", PAGE)]
    assert [command.split()[1] for command in commands] == ["check", "diff"]
    repository(CHANGE)
    # The response alone has no request (E-53), which is check's affair; diff annotates.
    run(commands[0].split())
    capsys.readouterr()
    assert run(commands[1].split()) == 1
    assert capsys.readouterr().out.startswith("::error file=definitions/MetadataResponse.json,line=")
