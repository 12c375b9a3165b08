"""Loading what the first requests need, after the start."""

from __future__ import annotations

import subprocess
import sys

from confluent_kafka import Consumer, Producer

from kwire.broker import Broker
from tests.waiting import HANG_S

PROGRAM = """
import sys
from kwire.broker import Broker

with Broker() as broker:
    assert broker.is_warm.wait(60)
    known = set(sys.modules)
    print(broker.bootstrap_servers, flush=True)
    sys.stdin.readline()
    print(*sorted(name for name in set(sys.modules) - known if name.startswith("kwire.")))
"""


def test_the_first_requests_of_producers_and_consumers_import_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        servers = {"bootstrap.servers": process.stdout.readline().strip()}
        producer = Producer({**servers, "enable.idempotence": True})
        producer.produce("orders", b"one")
        assert producer.flush(HANG_S) == 0
        consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(HANG_S)
        assert message is not None
        assert message.value() == b"one"
        consumer.close()
        imported, _ = process.communicate("\n", timeout=HANG_S)
    assert imported.split() == []


def test_a_broker_that_stops_at_once_skips_the_rest() -> None:
    broker = Broker()
    for _ in range(3):
        with broker:
            pass
        assert broker.is_warm.is_set()
