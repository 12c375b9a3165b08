"""How far is `kwire log pull --follow` behind a producer of 50 MB/s, and how much memory does it take?

Broker, producer and pull are processes of their own. The lag of a moment is the time since the bytes that the copy has
were acknowledged, of the partition that is furthest behind.
"""

from __future__ import annotations

import bisect
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from kwire.client import Client, Producer
from kwire.messages import CreateTopicsRequest
from kwire.records import Record, TimestampType, write_batch

SECONDS = 40
RATE = 50e6
PARTITIONS = 4
VALUE = b"%d" % 10**999
ROWS = 256
SERVER = """
import sys, time
from kwire.broker import Broker
with Broker(data_dir=sys.argv[1]) as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""


class Written:
    """Bytes that were acknowledged in a partition, and when."""

    def __init__(self) -> None:
        self.sizes, self.times = [0], [time.monotonic()]

    def add(self, n: int) -> None:
        self.times.append(time.monotonic())
        self.sizes.append(self.sizes[-1] + n)

    def lag_s(self, copied: int) -> float:
        """Return the age of the first bytes that are not among the copied ones."""
        at = bisect.bisect_right(self.sizes, copied)
        return 0.0 if at >= len(self.times) else time.monotonic() - self.times[at]


def produce(address: str, written: list[Written], stop: threading.Event) -> None:
    record = Record(offset=0, timestamp=0, timestamp_type=TimestampType.CREATE_TIME, key=None, value=VALUE, headers=[])
    batch = write_batch([record] * ROWS)
    with Client(address) as client:
        producer = Producer(client)
        started, sent, n = time.monotonic(), 0, 0
        while not stop.is_set():
            time.sleep(max(0.0, started + sent / RATE - time.monotonic()))
            producer.send("bench", n, batch, ROWS)
            written[n].add(len(batch))
            sent += len(batch)
            n = (n + 1) % PARTITIONS


def peak_memory(pid: int) -> float:
    """Return the largest resident size of a process so far in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def copied(copy: Path, partition: int) -> int:
    return sum(path.stat().st_size for path in copy.glob(f"bench-{partition}/*.log"))


def main() -> None:
    """Print the figures."""
    folder = Path(tempfile.mkdtemp())
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder / "source")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    pull, stop = None, threading.Event()
    written = [Written() for _ in range(PARTITIONS)]
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with Client(address) as client:
            new = CreateTopicsRequest.CreatableTopic(name="bench", num_partitions=PARTITIONS, replication_factor=1)
            client.request(CreateTopicsRequest(topics=[new]))
        command = ["-m", "kwire.cli", "log", "pull", f"kafka://{address}", "-o", str(folder / "copy"), "--follow"]
        pull = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (folder / "copy" / "bench-0").exists():
            time.sleep(0.1)
        writer = threading.Thread(target=produce, args=(address, written, stop))
        writer.start()
        lags: list[float] = []
        while len(lags) < SECONDS * 20:
            time.sleep(0.05)
            lags.append(max(each.lag_s(copied(folder / "copy", n)) for n, each in enumerate(written)))
        rate = sum(each.sizes[-1] for each in written) / (time.monotonic() - written[0].times[0])
        memory = peak_memory(pull.pid)
        stop.set()
        writer.join()
        lags.sort()
        print(f"written\t{rate / 1e6:.0f}\tMB/s")
        print(f"lag, median\t{lags[len(lags) // 2] * 1000:.0f}\tms")
        print(f"lag, 99th percentile\t{lags[len(lags) * 99 // 100] * 1000:.0f}\tms")
        print(f"lag, largest\t{lags[-1] * 1000:.0f}\tms")
        print(f"memory of the pull\t{memory:.0f}\tMB")
    finally:
        stop.set()
        if pull is not None:
            pull.send_signal(signal.SIGINT)
            pull.wait()
        server.communicate("")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
