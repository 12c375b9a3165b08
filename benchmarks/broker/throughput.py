"""How many records of 100 bytes per second, and how much CPU time of the broker?

Produced by librdkafka (acks=1, batches of 64 KB, linger 5 ms), consumed by Kafka's kafka-consumer-perf-test. Client and
broker share the machine, and the client mostly limits the rate: compare CPU seconds. The first million records warm the
broker up and are not counted.
"""

from __future__ import annotations

import time

from tools.kafka import java

from benchmarks.broker.serving import BROKERS, Served
from benchmarks.messages.timing import line

RECORDS = 1_000_000
ROUNDS = 3
VALUE = bytes(range(65, 115)) * 2
FETCH_RATE_FIELD = 9  # column of the tool's output: records per second without the group's rebalance


def produce(served: Served, topic: str, count: int) -> float:
    """Produce and wait for all acknowledgements; return seconds."""
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": served.address,
            "acks": 1,
            "batch.size": 65536,
            "linger.ms": 5,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "log_level": 0,
        }
    )
    start = time.perf_counter()
    for i in range(count):
        while True:
            try:
                producer.produce(topic, VALUE)
                break
            except BufferError:
                producer.poll(0.05)
        if not i % 1000:
            producer.poll(0)
    producer.flush()
    return time.perf_counter() - start


def consume(served: Served, topic: str, count: int) -> float:
    """Run Kafka's consumer; return records per second."""
    printed = java(
        "org.apache.kafka.tools.ConsumerPerformance",
        *("--bootstrap-server", served.address, "--topic", topic, "--messages", str(count)),
        *("--timeout", "60000", "--hide-header"),
        heap="512m",
    )
    return float(printed.strip().splitlines()[-1].split(",")[FETCH_RATE_FIELD])


def measure(served: Served) -> dict[str, float]:
    """Return the best figures of several rounds, by name."""
    produce(served, "warm", RECORDS)
    rates, costs, reads, read_costs = [], [], [], []
    for _ in range(ROUNDS):
        before = served.cpu_s()
        rates.append(RECORDS / produce(served, "records", RECORDS) / 1e6)
        costs.append((served.cpu_s() - before) * 1e6 / RECORDS)
    for _ in range(ROUNDS):
        before = served.cpu_s()
        reads.append(consume(served, "records", RECORDS * ROUNDS) / 1e6)
        read_costs.append((served.cpu_s() - before) * 1e6 / (RECORDS * ROUNDS))
    return {
        "produce": max(rates),
        "produce_server_cpu": min(costs),
        "consume": max(reads),
        "consume_server_cpu": min(read_costs),
        "memory": served.memory_mb(),
    }


UNITS = {
    "produce": "Mrecords/s",
    "produce_server_cpu": "s/Mrecords",
    "consume": "Mrecords/s",
    "consume_server_cpu": "s/Mrecords",
    "memory": "MB",
}


def main() -> None:
    """Print the figures."""
    found = {}
    for name, serve in BROKERS.items():
        with serve() as served:
            found[name] = measure(served)
    for name, unit in UNITS.items():
        print(line(f"broker.{name}", found["kwire"][name], unit, found["kafka"][name], "Kafka-3.9.1"))


if __name__ == "__main__":
    main()
