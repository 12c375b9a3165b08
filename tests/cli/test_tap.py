"""`kwire tap` as a process: its output, control, recording, shutdown."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.tap.test_tap import raw

from kwire.broker import Broker
from kwire.cli.main import run
from kwire.messages import HeartbeatRequest, MetadataRequest


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start the process; returns it with its bootstrap servers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kwire.cli", "tap", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    name, _, servers = process.stdout.readline().strip().partition("=")
    assert name == "BROKERS", process.communicate()[1]
    return process, servers


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_records_until_it_is_stopped(number: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "session.pcapng"
    with Broker() as broker:
        process, servers = start("--to", broker.bootstrap_servers, "--record", str(file))
        with raw(servers) as client:
            assert client.ask(MetadataRequest(topics=[]), 9).brokers
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
    assert run(["capture", str(file), "--format", "jsonl"]) == 0


def test_faults_and_requests_over_http() -> None:
    with Broker() as broker:
        process, servers = start("--to", broker.bootstrap_servers, "--control", "0", "--until", "stdin")
        assert process.stdout is not None
        url = process.stdout.readline().strip().removeprefix("CONTROL=")
        fault = ask(f"{url}/faults", {"effect": "fail", "api": "Heartbeat", "error": "NOT_COORDINATOR"})
        with raw(servers) as client:
            assert client.ask(HeartbeatRequest(group_id="g"), 4).error_code == 16
            assert client.ask(MetadataRequest(topics=[]), 9).brokers
        assert ask(f"{url}/faults/{fault['id']}")["hits"] == 1
        found = ask(f"{url}/requests/wait", {"api": "Heartbeat", "group": "g"})
        assert found["errors"] == ["NOT_COORDINATOR"]
        shown = ask(url)
        assert shown["bootstrap_servers"] == servers
        assert shown["nodes"] == [{"node_id": 1, "address": servers, "target": broker.bootstrap_servers}]
        assert set(ask(f"{url}/openapi.json")["paths"]) == {
            "/", "/faults", "/faults/{id}", "/faults/{id}/wait", "/faults/{id}/release", "/requests", "/requests/wait",
        }  # fmt: skip
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(f"{url}/reset", {})
        with refused.value:  # closes the connection that it has
            assert refused.value.code == 404
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_cluster_that_is_down_at_the_start_is_a_warning() -> None:
    with Broker() as broker:
        address = broker.bootstrap_servers
    process, _ = start("--to", address, "--until", "stdin")
    _, err = process.communicate(timeout=60)
    assert f"{address}: cannot connect: Connection refused; clients are disconnected until" in err
    assert process.returncode == 0


def test_a_replay_prints_what_does_not_match(tmp_path: Path) -> None:
    file = tmp_path / "session.pcapng"
    with Broker() as broker:
        process, servers = start("--to", broker.bootstrap_servers, "--record", str(file), "--until", "stdin")
        with raw(servers) as client:
            client.ask(HeartbeatRequest(group_id="a"), 4)
        process.communicate(timeout=60)
    for group, code, printed in (
        ("a", 0, "1 response sent, 0 mismatches; of 1 recorded request, 0 were not sent\n"),
        (
            "b",
            1,
            "Heartbeat v4 from raw: differs from request 1: group_id was 'a', is 'b'\n"
            "1 response sent, 1 mismatch; of 1 recorded request, 0 were not sent\n",
        ),
    ):
        process, servers = start("--replay", str(file), "--until", "stdin")
        with raw(servers) as client:
            client.ask(HeartbeatRequest(group_id=group), 4)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (code, printed, "")


def test_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "listener.properties"
    config.write_text("ssl.client.auth=none\n")
    existing = tmp_path / "file"
    existing.write_text("")
    for arguments, problem in (
        ([], "--to or --replay is required"),
        (["--replay", str(existing), "--to", "b:9"], "--replay and --to are mutually exclusive"),
        (["--replay", str(existing)], "not a pcap or pcapng file"),
        (["--to", "broker"], "host:port"),
        (["--to", "b:9", "--listen", "x"], "expected PORT or HOST:PORT"),
        (["--to", "b:9", "--listen-config", str(config)], "ask for no TLS"),
        (["--to", "b:9", "--to-config", str(tmp_path / "none")], "No such file"),
        (["--to", "b:9", "--record", str(existing)], "exists already"),
        (["--to", "b:9", "--control", "x"], "--control 'x': expected PORT"),
    ):
        assert run(["tap", *arguments]) == 2, arguments
        assert problem in capsys.readouterr().err
