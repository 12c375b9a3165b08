"""What do three nodes in one process cost, compared with one: their start, and a produced record?

CPU time of the broker's thread, the best of alternating rounds. A request is one record of 100 bytes to one of three
partitions; with three nodes each goes to the leader.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

from benchmarks.messages.timing import line
from kwire.broker import Broker, Cluster
from kwire.messages import ProduceRequest
from kwire.protocol import NEED_DATA, Connection, Role, State
from kwire.records import BatchBuilder

ROUNDS, REQUESTS, STARTS = 5, 3000, 7
TOPIC, VALUE = "cluster", b"v" * 100


def start_ms(make: Callable[[], Broker]) -> tuple[float, float]:
    """Return the best wall clock and CPU time of a start, in ms."""
    walls, cpus = [], []
    for _ in range(STARTS):
        wall, cpu = time.perf_counter(), time.process_time()
        broker = make()
        broker.start()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        broker.is_warm.wait()
        broker.stop()
    return min(walls) * 1000, min(cpus) * 1000


class Connected:
    """A connection that produces one record a request and waits for the response."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.sock = socket.create_connection((host, int(port)))
        self._protocol = Connection(Role.CLIENT, client_id="benchmark")
        self._protocol.state = State.READY
        builder = BatchBuilder()
        builder.append(None, VALUE, timestamp=1)
        self._batch = builder.build()

    def produce(self, partition: int) -> None:
        """Produce a record."""
        cls = ProduceRequest
        data = cls.PartitionProduceData(index=partition, records=self._batch)
        topic = cls.TopicProduceData(name=TOPIC, partition_data=[data])
        self.sock.sendall(self._protocol.send(cls(acks=-1, timeout_ms=1000, topic_data=[topic]), version=9))
        while (response := self._protocol.next_response()) is NEED_DATA:
            self._protocol.receive_data(self.sock.recv(1 << 16))
        body: Any = response.body
        assert body.responses[0].partition_responses[0].error_code == 0


def produce_us(broker: Broker) -> float:
    """Return the CPU time of the broker's thread for a request, in microseconds."""
    broker.create_topic(TOPIC, 3)
    addresses = broker.bootstrap_servers.split(",")
    nodes = [Connected(addresses[index % len(addresses)]) for index in range(3)]
    for number in range(300):
        nodes[number % 3].produce(number % 3)
    before = broker.call(lambda node: time.thread_time())
    for number in range(REQUESTS):
        nodes[number % 3].produce(number % 3)
    spent = broker.call(lambda node: time.thread_time()) - before
    for each in nodes:
        each.sock.close()
    broker.reset()
    return spent / REQUESTS * 1e6


def main() -> None:
    """Print the figures."""
    start_ms(Broker)  # loads the modules
    start_ms(Cluster)
    one, three = start_ms(Broker), start_ms(lambda: Cluster(nodes=3))
    print(line("broker.cluster.start", three[0], "ms", one[0], "one_node"))
    print(line("broker.cluster.start_cpu", three[1], "ms", one[1], "one_node"))
    with Broker(keep_requests=0) as single, Cluster(nodes=3, keep_requests=0) as cluster:
        rounds = [(produce_us(single), produce_us(cluster)) for _ in range(ROUNDS)]
    alone, together = (min(each) for each in zip(*rounds, strict=True))
    print(line("broker.cluster.record", together, "us", alone, "one_node"))
    with Cluster(nodes=3) as cluster:
        times = []
        for _ in range(20):
            cluster.create_topic(TOPIC, 3)
            begin = time.perf_counter()
            cluster.reset()
            times.append(time.perf_counter() - begin)
    print(line("broker.cluster.reset", min(times) * 1000, "ms"))


if __name__ == "__main__":
    main()
