"""How long until a record is acknowledged, and until it is consumed, at 1,000 records per second?

A producer (librdkafka, acks=1, no linger) and a consumer run in this process, for each broker in turns; all brokers
run all the time. Before, each broker receives a million records in large batches and 75,000 in small requests, so that
Java has compiled its code. `cold` figures are of the first second of a broker that has just started. All figures are
medians over the rounds: on a machine with other load, percentiles above 99 and the maximum mostly show that load.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable

from benchmarks.broker.serving import BROKERS, PEERS, Served, kfake_broker
from benchmarks.broker.throughput import produce
from benchmarks.messages.timing import line

RATE, SECONDS, ROUNDS = 1000, 10, 5
UNCOUNTED_S = 1
"""At the start of a round: connections are opened, topics are created."""
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}
WARM_UP_RECORDS, WARM_UP_RATE, WARM_UP_SECONDS = 1_000_000, 5000, 15
VALUE_BYTES = 100


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return milliseconds by percentile."""
    ordered = sorted(seconds)
    return {name: ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000 for name, part in PERCENTILES.items()}


def measure(
    served: Served, topic: str, rate: int = RATE, seconds: int = SECONDS, uncounted_s: int = UNCOUNTED_S
) -> dict[str, float]:
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
        figures |= {f"{name}_{key}": value for key, value in percentiles(times[rate * uncounted_s :]).items()}
    return figures


def cold(serve: Callable[[], contextlib.AbstractContextManager[Served]]) -> dict[str, float]:
    """Measure the first second of a broker that has just started."""
    with serve() as served:
        figures = measure(served, "cold", seconds=1, uncounted_s=0)
        return {f"cold_{name}": value for name, value in figures.items() if name.startswith("acknowledge")}


def main() -> None:
    """Print the figures."""
    brokers = {"kfake": kfake_broker, **BROKERS}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in brokers}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(serve()) for name, serve in brokers.items()}
        for served in running.values():
            produce(served, "warm", WARM_UP_RECORDS)
            measure(served, "warm-latency", WARM_UP_RATE, WARM_UP_SECONDS)
        for number in range(ROUNDS):
            for name, served in running.items():
                rounds[name].append(measure(served, f"latency-{number}"))
    for number in range(ROUNDS):
        for name in ("kfake", "kwire"):  # Kafka's first second is that of its compiler
            rounds[name][number] |= cold(brokers[name])
    for peer, name in PEERS.items():
        for figure in rounds[peer][0]:
            ours, theirs = (statistics.median(each[figure] for each in rounds[who]) for who in ("kwire", peer))
            print(line(f"broker.latency.{figure}", ours, "ms", theirs, name))


if __name__ == "__main__":
    main()
