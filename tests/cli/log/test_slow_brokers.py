"""Brokers behind a network that stalls: errors in time, and reads that go on when it recovers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import itemgetter
from pathlib import Path

import pytest
from tests.client.test_cluster_logs import create
from tests.slow_proxy import SlowProxy
from tests.waiting import HANG_MS, until
from tools.kafka import free_port

import kwire as package
from kwire.broker import Broker
from kwire.client import Client, Producer
from kwire.client.follower import Follower
from kwire.maintenance.pull import PullOptions, pull
from kwire.records import ColumnWriter

pa = pytest.importorskip("pyarrow")

BATCHES, BATCH_BYTES = 20, 50_000
SHORT = {"request.timeout.ms": 300, "socket.connection.setup.timeout.ms": 300, "default.api.timeout.ms": 500}
PATIENT = {"request.timeout.ms": 700, "socket.connection.setup.timeout.ms": 700, "default.api.timeout.ms": HANG_MS}


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[SlowProxy]:
    """A proxy before a broker with a topic of 1 MB, which advertises the proxy's address."""
    with SlowProxy() as made:
        port = free_port()
        made.target = ("127.0.0.1", port)
        advertised = f"PLAINTEXT://{made.address}"
        with Broker(data_dir=tmp_path / "source", port=port, advertised_listeners=advertised):
            with Client(made.address) as client:
                create(client, "t")
                producer = Producer(client)
                for _ in range(BATCHES):
                    values = pa.array([os.urandom(BATCH_BYTES)], pa.binary())
                    (piece,) = ColumnWriter(**producer.fields("t", 0)).write(pa.record_batch({"value": values}))
                    producer.send("t", 0, piece, 1)
            yield made


def never_responds(proxy: SlowProxy) -> None:
    proxy.left = 0


def stops_within_a_response(proxy: SlowProxy) -> None:
    proxy.left = BATCHES * BATCH_BYTES // 2


def sends_a_byte_a_second(proxy: SlowProxy) -> None:
    proxy.byte_s = 1.0


STALLS = (never_responds, stops_within_a_response, sends_a_byte_a_second)
stalls = pytest.mark.parametrize("stall", STALLS, ids=lambda each: each.__name__)


@pytest.mark.sampled
@stalls
@pytest.mark.parametrize(
    "command", [("ls", "{url}"), ("dump", "{url}/t", "--follow"), ("pull", "{url}", "-o", "{copy}")], ids=itemgetter(0)
)
def test_a_command_fails_in_time(
    stall: Callable[[SlowProxy], None], command: tuple[str, ...], proxy: SlowProxy, kwire: Callable, tmp_path: Path
) -> None:
    stall(proxy)
    if command[0] == "ls" and proxy.left:
        proxy.left = 100  # its responses are small
    words = [each.format(url=f"kafka://{proxy.address}", copy=tmp_path / "copy") for each in command]
    result = kwire("log", *words, *(word for name, value in SHORT.items() for word in ("-c", f"{name}={value}")))
    assert result.code == 1
    assert f"kwire: {proxy.address}: timed out" in result.err.splitlines()[-1]


def read(url: str, copy: Path) -> int:
    with package.open(url, **PATIENT) as logs:
        return sum(len(record.value or b"") for record in logs["t", 0].read())


def follow(url: str, copy: Path) -> int:
    with Client(url.removeprefix("kafka://"), **PATIENT) as client, Follower(client) as follower:
        follower.add(("t", 0), 0, end=BATCHES)
        found = {}
        while len(follower):
            found |= {fetched.start_offset: len(fetched.records) for _, fetched in follower.poll()}
        return sum(found.values())


def copied(url: str, copy: Path) -> int:
    with Client(url.removeprefix("kafka://"), **PATIENT) as client:
        result = pull(client, str(copy), PullOptions(groups=False))
    return result.copied_bytes if result.is_complete else 0


@pytest.mark.slow
@pytest.mark.sampled
@stalls
@pytest.mark.parametrize("reader", [read, follow, copied])
def test_a_read_goes_on_when_the_broker_responds_again(
    stall: Callable[[SlowProxy], None],
    reader: Callable[[str, Path], int],
    proxy: SlowProxy,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    stall(proxy)
    with ThreadPoolExecutor() as pool:
        done = pool.submit(reader, f"kafka://{proxy.address}", tmp_path / "copy")
        until(lambda: "timed out" in caplog.text)
        proxy.recover()
        assert done.result() >= BATCHES * BATCH_BYTES
    assert proxy.address in caplog.text
