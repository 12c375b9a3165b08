"""How long until a record is acknowledged, and until it is consumed, at 1,000 records per second?

A producer (librdkafka, acks=1, no linger) and a consumer run in this process, for each broker in turns; both brokers
run all the time. Before, each broker receives a million records in large batches and 75,000 in small requests, so that
Java has compiled its code. The figures are medians over the rounds.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time

from benchmarks.broker.serving import BROKERS, Served
from benchmarks.broker.throughput import produce
from benchmarks.messages.timing import line

RATE, SECONDS, ROUNDS = 1000, 10, 5
UNCOUNTED_S = 1
"""At the start of a round: connections are opened, topics are created."""
WARM_UP_RECORDS, WARM_UP_RATE, WARM_UP_SECONDS = 1_000_000, 5000, 15
VALUE_BYTES = 100


def measure(served: Served, topic: str, rate: int = RATE, seconds: int = SECONDS) -> dict[str, float]:
    """Run a round on a new topic; return milliseconds by name."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    base = {"bootstrap.servers": served.address, "log_level": 0}
    producer = Producer({**base, "acks": 1, "linger.ms": 0})
    producer.produce(topic, b"first")
    producer.flush()
    consumer = Consumer({**base, "group.id": "latency", "enable.auto.commit": False, "fetch.min.bytes": 1})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    acknowledged: list[float] = []
    received: list[float] = []
    all_came = threading.Event()

    def read() -> None:
        while len(received) < rate * seconds:
            message = consumer.poll(0.05)
            if message is not None and not message.error() and len(message.value()) == VALUE_BYTES:
                received.append(time.perf_counter() - float(message.value()[:20]))
        all_came.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    begin, sent = time.perf_counter(), 0
    while sent < rate * seconds:
        while sent < (time.perf_counter() - begin) * rate:
            at = time.perf_counter()
            producer.produce(
                topic,
                (b"%020.9f" % at).ljust(VALUE_BYTES, b"x"),
                on_delivery=lambda _error, _message, at=at: acknowledged.append(time.perf_counter() - at),
            )
            sent += 1
        producer.poll(0.0005)
    producer.flush()
    if not all_came.wait(60):
        raise RuntimeError(f"{len(received)} of {rate * seconds} records came")
    consumer.close()
    figures = {}
    for name, times in (("acknowledge", acknowledged), ("end_to_end", received)):
        cuts = statistics.quantiles(times[rate * UNCOUNTED_S :], n=100)
        figures[f"{name}_p50"], figures[f"{name}_p99"] = cuts[49] * 1000, cuts[98] * 1000
    return figures


def main() -> None:
    """Print the figures."""
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in BROKERS}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(serve()) for name, serve in BROKERS.items()}
        for served in running.values():
            produce(served, "warm", WARM_UP_RECORDS)
            measure(served, "warm-latency", WARM_UP_RATE, WARM_UP_SECONDS)
        for number in range(ROUNDS):
            for name, served in running.items():
                rounds[name].append(measure(served, f"latency-{number}"))
    for figure in rounds["kwire"][0]:
        ours, theirs = (statistics.median(each[figure] for each in rounds[name]) for name in ("kwire", "kafka"))
        print(line(f"broker.latency.{figure}", ours, "ms", theirs, "Kafka-3.9.1"))


if __name__ == "__main__":
    main()
