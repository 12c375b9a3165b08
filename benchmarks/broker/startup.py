"""How long does a broker take from start to the first acknowledged record, and how much memory does it use then?

kwire's broker from the start of `kwire serve`; Kafka from the start of its JVM, on a formatted directory. Medians of
alternating rounds.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tools.kafka import KafkaBroker

from benchmarks.broker.serving import Served, start_kwire, stop
from benchmarks.messages.timing import line

ROUNDS = 3


def first_record(address: str, topic: str = "first") -> None:
    """Produce one record and wait for its acknowledgement."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "acks": 1, "linger.ms": 0, "log_level": 0})
    producer.produce(topic, b"x")
    assert producer.flush(30) == 0


def ours() -> tuple[float, float, float]:
    """Measure one start: (seconds, CPU seconds, MB)."""
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        process, served = start_kwire(directory)
        first_record(served.address)
        figures = time.perf_counter() - start, served.cpu_s(), served.memory_mb()
        stop(process)
    return figures


def kafkas() -> tuple[float, float, float]:
    """Measure one start: (seconds, CPU seconds, MB)."""
    with tempfile.TemporaryDirectory() as directory:
        with KafkaBroker(Path(directory)):
            pass
        again = KafkaBroker(Path(directory))
        start = time.perf_counter()
        with again:
            assert again.process is not None
            served = Served(again.bootstrap_servers, again.process.pid)
            first_record(served.address)
            return time.perf_counter() - start, served.cpu_s(), served.memory_mb()


def main() -> None:
    """Print the figures."""
    from confluent_kafka import libversion

    libversion()  # so that the client's start is not measured
    pairs = [(kafkas(), ours()) for _ in range(ROUNDS)]
    for i, (name, unit) in enumerate((("to_first_record", "s"), ("cpu", "s"), ("memory", "MB"))):
        theirs, value = (statistics.median(pair[who][i] for pair in pairs) for who in (0, 1))
        print(line(f"broker.startup.{name}", value, unit, theirs, "Kafka-3.9.1"))


if __name__ == "__main__":
    main()
