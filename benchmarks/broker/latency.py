"""How long until a record is acknowledged, and until a consumer has it, at 1,000 records a second?

One producer (librdkafka, acks=1, no linger) and one consumer in this process; the first seconds are not counted.
"""

from __future__ import annotations

import statistics
import threading
import time

from benchmarks.broker.serving import BROKERS, Served
from benchmarks.messages.timing import line

RATE, SECONDS, WARM_UP_SECONDS = 1000, 12, 4
VALUE_BYTES = 100


def measure(served: Served) -> dict[str, float]:
    """Milliseconds by name."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

    base = {"bootstrap.servers": served.address, "log_level": 0}
    producer = Producer({**base, "acks": 1, "linger.ms": 0})
    producer.produce("latency", b"first")
    producer.flush()
    consumer = Consumer({**base, "group.id": "latency", "enable.auto.commit": False, "fetch.min.bytes": 1})
    consumer.assign([TopicPartition("latency", 0, OFFSET_BEGINNING)])
    acknowledged: list[float] = []
    received: list[float] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            message = consumer.poll(0.05)
            if message is not None and not message.error() and len(message.value()) == VALUE_BYTES:
                received.append(time.perf_counter() - float(message.value()[:20]))

    reader = threading.Thread(target=read)
    reader.start()
    begin, sent = time.perf_counter(), 0
    while sent < RATE * SECONDS:
        while sent < (time.perf_counter() - begin) * RATE:
            at = time.perf_counter()
            producer.produce(
                "latency",
                (b"%020.9f" % at).ljust(VALUE_BYTES, b"x"),
                on_delivery=lambda _error, _message, at=at: acknowledged.append(time.perf_counter() - at),
            )
            sent += 1
        producer.poll(0.0005)
    producer.flush()
    time.sleep(0.5)
    stop.set()
    reader.join()
    consumer.close()
    figures = {}
    for name, times in (("acknowledge", acknowledged), ("end_to_end", received)):
        cuts = statistics.quantiles(times[RATE * WARM_UP_SECONDS :], n=100)
        figures[f"{name}_p50"], figures[f"{name}_p99"] = cuts[49] * 1000, cuts[98] * 1000
    return figures


def main() -> None:
    """Print the figures."""
    found = {}
    for name, serve in BROKERS.items():
        with serve() as served:
            found[name] = measure(served)
    for name, value in found["kwire"].items():
        print(line(f"broker.latency.{name}", value, "ms", found["kafka"][name], "Kafka-3.9.1"))


if __name__ == "__main__":
    main()
