"""`kwire serve` as a process: what it prints, how it stops, what it keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kwire.cli.main import run
from kwire.client import Client
from kwire.log import LogDirectory
from kwire.messages import registry


def serve(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The process and its bootstrap servers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KWIRE_KERNELS": "off"},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("BROKERS="), process.communicate()[1]
    return process, line.strip().removeprefix("BROKERS=")


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run(["serve", "--port", "0", "--data-dir", str(tmp_path / "file" / "data")]) == 1
    assert capsys.readouterr().err == f"kwire: {tmp_path}/file/data: cannot be created: Not a directory\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop_and_keeps_the_directory(tmp_path: Path, number: signal.Signals) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("# as Kafka has it\nprocess.roles=broker\nlog.dirs=/var/lib/kafka\nnum.partitions=2\n")
    process, servers = serve(
        "--data-dir", str(tmp_path / "data"), "--config-file", str(properties), "-c", "delete.topic.enable=false"
    )
    cls = registry.get("CreateTopicsRequest")
    with Client(servers) as client:
        topic = cls.CreatableTopic(name="kept", num_partitions=-1, replication_factor=-1)  # type: ignore[attr-defined]
        assert client.request(cls(topics=[topic])).topics[0].error_code == 0  # type: ignore[call-arg]
    process.send_signal(number)
    assert process.wait(timeout=30) == 0
    directory = LogDirectory(tmp_path / "data")
    assert directory.is_clean_shutdown
    assert [key for key in directory if key[0] == "kept"] == [("kept", 0), ("kept", 1)]
    assert "passed over, because they mean nothing here: process.roles, log.dirs" in process.communicate()[1]


def test_without_a_directory_it_says_that_nothing_is_kept() -> None:
    process, _ = serve()
    process.terminate()
    _, told = process.communicate(timeout=30)
    assert "temporary directory" in told


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-c", "num.partition=3"], 2, "num_partition"),
        (["-c", "nonsense"], 2, "expected KEY=VALUE"),
        (["--config-file", "/nowhere/server.properties"], 1, "cannot be read"),
        (["--host", "300.1.2.3"], 2, "cannot listen on"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["serve", "--port", "0", *arguments]) == code
    assert message in capsys.readouterr().err
