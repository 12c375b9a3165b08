"""How fast is `kwire log pull`, in CPU time of the process that copies?

The source is a kwire broker in another process, with its files in the page cache. The peer, librdkafka through
confluent-kafka, consumes the same records with checksums and writes nothing.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.data import log_directory

ROUNDS = 3
SERVER = """
import sys, time
from kwire.broker import Broker
with Broker(data_dir=sys.argv[1]) as broker:
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.read()
"""
CONSUMER = """
import sys
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "none", "enable.auto.commit": False,
                     "check.crcs": True, "fetch.queue.backoff.ms": 10})
consumer.assign([TopicPartition("bench", n, 0) for n in range(2)])
left = int(sys.argv[2])
while left > 0:
    left -= len(consumer.consume(10_000, 1.0))
consumer.close()
"""
PULL = """
import sys
from kwire.client import Client
from kwire.maintenance.pull import PullOptions, pull
with Client(sys.argv[1]) as client:
    assert pull(client, sys.argv[2], PullOptions(topics=["bench"], groups=False)).is_complete
"""


def cpu_of(*command: str) -> float:
    """Run a Python program and return its CPU time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", *command], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the figures."""
    records = 2_000_000
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(log_directory(records), folder / "source")
    (folder / "source" / "done").unlink()
    size = sum(path.stat().st_size for path in folder.glob("source/*/*.log"))
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder / "source")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        pulled = consumed = float("inf")
        for i in range(ROUNDS):
            pulled = min(pulled, cpu_of(PULL, address, str(folder / f"copy-{i}")))
            shutil.rmtree(folder / f"copy-{i}")
            consumed = min(consumed, cpu_of(CONSUMER, address, str(records // 768 * 768)))
        print(f"pull\t{size / pulled / 1e6:.0f}\tMB/s of CPU\t{pulled / consumed:.3f}\tconfluent-kafka consuming")
    finally:
        server.communicate("")
        shutil.rmtree(folder)
