"""franz-go, a client that shares no code with librdkafka or Java: producer, group, transactions, administrator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.waiting import HANG_S
from tools.kafka import Unavailable

from kwire.broker import Broker

pytestmark = [pytest.mark.slow]

PROGRAM = Path(__file__).parent / "go"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the program; the first run downloads its modules."""
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if go is None:
        raise Unavailable("go is not installed; on Debian or Ubuntu: apt-get install golang-go")
    target = tmp_path_factory.mktemp("go") / "franz"
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    command = [go, "build", "-o", str(target), "."]
    built = subprocess.run(
        command, cwd=PROGRAM, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    if built.returncode != 0 and "dial tcp" in built.stderr:
        raise Unavailable(f"go could not fetch the modules of franz-go: {built.stderr[-300:]}")
    assert built.returncode == 0, built.stderr
    return target


@pytest.mark.parametrize("settings", [{}, {"transaction_version": 2}], ids=["as it comes", "transactions of KIP-890"])
def test_franz_go_produces_joins_a_group_and_commits_transactions(program: Path, settings: dict[str, int]) -> None:
    with Broker(keep_requests=10_000, **settings) as broker:
        done = subprocess.run(
            [str(program), broker.bootstrap_servers], capture_output=True, text=True, timeout=HANG_S, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {
            "first": "v0000",
            "last": "v0999",
            "count": 1000,
            "committed": ["0", "2"],
            "offsets": 1000,
        }
        assert broker.requests.of("EndTxn")
