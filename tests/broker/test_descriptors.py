"""A broker without free file descriptors: new clients wait, with a log message, and the others are served."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from kwire.storage.file_system import FileSystem
from tests.broker.security.raw_client import RawClient as Client
from tests.broker.test_connection import asks, fetches, produces

DESCRIPTORS = 100
CLIENTS = 150
PROGRAM = """
import logging, resource, sys
logging.basicConfig(stream=sys.stderr)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
from kwire.broker import Broker
with Broker() as broker:
    print(broker.port, flush=True)
    sys.stdin.read()
"""


class Served:
    """A broker in another process, as its clients see it."""

    def __init__(self, port: int) -> None:
        self.port = port


def test_clients_above_the_limit_wait_while_others_are_served(tmp_path: Path) -> None:
    errors = tmp_path / "stderr"
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(DESCRIPTORS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    started = time.monotonic()
    broker = Served(int(process.stdout.readline()))
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(Client(broker))
        assert first.ask(asks(), 9).brokers
        crowd = [stack.enter_context(Client(broker)) for _ in range(CLIENTS)]
        crowd[0].ask(asks(), 9)
        for n in range(3):  # files of new logs can still be opened
            topic = f"topic-{n}"
            assert first.ask(asks(topic), 9).topics[0].error_code == 0
            assert first.ask(produces(topic, b"x"), 8).responses[0].partition_responses[0].error_code == 0
            assert first.ask(fetches(topic), 11).responses[0].partitions[0].high_watermark == 1
        for client in crowd[:-1]:
            client.sock.close()
        assert crowd[-1].ask(asks(), 9).brokers  # it waited for its turn
    process.stdin.close()
    assert process.wait() == 0
    process.stdout.close()
    lines = errors.read_text().splitlines()
    assert lines
    assert len(lines) <= time.monotonic() - started + 2, lines
    assert all("connections are not accepted for now" in line for line in lines)


def test_a_log_file_reuses_the_descriptor_of_another_at_the_limit(tmp_path: Path) -> None:
    files = FileSystem(max_open_files=1000)
    paths = [tmp_path / str(n) for n in range(3)]
    opened = [files.open(str(path), create=True) for path in paths[:2]]
    for each in opened:
        each.append(b"one")
    third = files.open(str(paths[2]), create=True)
    taken: list[int] = []
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        third.append(b"three")
        for each in opened:
            each.append(b"two")
    finally:
        for fd in taken:
            os.close(fd)
    assert [path.read_bytes() for path in paths] == [b"onetwo", b"onetwo", b"three"]
