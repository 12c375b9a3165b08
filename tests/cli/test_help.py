"""The help of every command: a summary, described options, and examples that run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.conformance.test_report import report

from kwire.broker import Broker
from kwire.cli.main import build
from kwire.messages import MetadataRequest, MetadataResponse


def commands(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """(words, command) of every command below this one."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from commands(each, f"{words} {name}")
    else:
        yield words, command


COMMANDS = dict(commands(typer.main.get_command(build()), "kwire"))
EXAMPLES = [line for command in COMMANDS.values() for line in command.epilog.splitlines()]
LOWER_CASE = ("pcap", "node.id", "cluster.id", "salvage", "read_committed")  # Kafka's and our own names
# They run until a signal, or read jars and repositories: test_serve.py, schema/test_schema.py, schema/test_diff.py.
NOT_RUN = (
    "kwire conformance client",
    "kwire conformance codec",
    "kwire serve",
    "kwire tap",
    "kwire schema diff",
    "kwire schema import",
)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_a_summary_and_describes_its_options(words: str) -> None:
    command = COMMANDS[words]
    summary = command.help.partition("\n")[0]
    assert summary.endswith(".")
    assert len(summary) <= 110
    assert not summary.split()[0].endswith("s"), "the summary is imperative"
    for parameter in command.params:
        assert parameter.help, parameter.name
        assert parameter.help[0].isupper() or parameter.help.startswith(LOWER_CASE), parameter.help


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_has_examples(words: str) -> None:
    examples = COMMANDS[words].epilog.splitlines()
    assert examples
    assert all(example.startswith(f"{words} ") for example in examples)


def test_help_lists_groups_with_one_example_each(kwire: Callable) -> None:
    lines = kwire("--help").out.splitlines()
    for section in ("Logs", "Internal topics", "Protocol", "Broker"):
        start = lines.index(f"{section}:")
        example = lines[start:].index("") + start + 1
        assert lines[example].strip() in EXAMPLES


# Names of the examples and what the log directory of the tests has instead.
NAMES = {
    "/var/lib/kafka/data": "data",
    "restore copy": "restore data",
    "orders-app": "g-classic",
    "'orders-*'": "'*'",
    "--at-time 2025-10-09T08:55Z": "--at-time 2100-01-01",
    " --follow": "",  # it would never end
}
DEFINITION = """{
  "type": "request", "apiKey": 900, "name": "OrderRequest", "validVersions": "0-1", "flexibleVersions": "1+",
  "fields": [{"name": "Id", "type": "int64", "versions": "0+"}]
}"""


@pytest.fixture
def folder(tmp_path: Path, kafka_logs: dict[str, Path]) -> Path:
    """A working directory with the files that the examples name."""
    shutil.copytree(kafka_logs["modern"] / "data", tmp_path / "data")
    (tmp_path / "client.properties").write_text("client.id=docs\n")
    (tmp_path / "body.bin").write_bytes(MetadataResponse().encode(version=9))
    (tmp_path / "request.json").write_text(json.dumps(MetadataRequest().to_json(version=9)))
    (tmp_path / "definitions").mkdir()
    (tmp_path / "definitions" / "OrderRequest.json").write_text(DEFINITION)
    for name in ("kafka-4.4.json", "mine.json"):
        (tmp_path / name).write_text(report().to_json())
    os.link(next(kafka_logs["wire"].rglob("k391.clean.pcap")), tmp_path / "kafka.pcap")
    return tmp_path


@pytest.mark.sampled(40)
@pytest.mark.parametrize("example", [line for line in EXAMPLES if not line.startswith(NOT_RUN)])
def test_help_examples_run(example: str, folder: Path, kwire: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if "orders.parquet" in example and "restore" in example:
        assert kwire("log", "export", "data", "--topic", "orders", "-o", "orders.parquet").code == 0
    for theirs, ours in NAMES.items():
        example = example.replace(theirs, ours)
    with ExitStack() as stack:
        if "kafka://" in example:
            broker = stack.enter_context(Broker(data_dir=folder / "data"))
            example = re.sub(r"kafka://broker:\d+", f"kafka://{broker.bootstrap_servers}", example)
        _, *arguments = shlex.split(example)
        result = kwire(*arguments)
    assert result.code in (0, 1), result.err


def test_help_examples_that_start_a_process_or_read_a_jar_parse() -> None:
    for example in (line for line in EXAMPLES if line.startswith(NOT_RUN)):
        words = max((words for words in COMMANDS if example.startswith(f"{words} ")), key=len)
        arguments = shlex.split(example.removeprefix(words))
        COMMANDS[words].make_context(words, arguments, resilient_parsing=False)


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("capture", "kwire capture [OPTIONS] FILE..."),
        ("log ls", "kwire log ls [OPTIONS] PATH"),
        ("log dump", "kwire log dump [OPTIONS] PATH..."),
        ("log adopt", "kwire log adopt [OPTIONS] DIR..."),
        ("schema docs", "kwire schema docs [OPTIONS] [PATH...]"),
        ("decode", "kwire decode [OPTIONS] NAME [FILE|-]"),
    ],
)
def test_the_usage_line_shows_what_is_required_and_what_may_be_repeated(
    command: str, usage: str, kwire: Callable
) -> None:
    assert kwire(*command.split(), "--help").out.splitlines()[0] == f"Usage: {usage}"
