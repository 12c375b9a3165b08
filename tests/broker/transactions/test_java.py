"""Transactions of Kafka's own clients in both transaction versions, and directories passed to real Kafka and back."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest
from tools import kafka

from kwire.broker import Broker
from kwire.broker.transactions import TransactionState
from tests.broker.transactions.test_clients import SMALL, producer, read, send
from tests.waiting import HANG_S

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

PEER = Path(__file__).parent / "java" / "TransactionPeer.java"
ROUNDS = 5


@pytest.mark.parametrize(
    ("client", "transaction_version", "epoch"),
    [
        ("3.9.1", 2, 0),
        ("4.4.0", 0, 0),
        ("4.4.0", 1, 0),
        ("4.4.0", 2, ROUNDS),  # an epoch for each transaction that was more than empty
    ],
)
def test_kafkas_client_commits_and_aborts(client: str, transaction_version: int, epoch: int) -> None:
    classes = kafka.compile_java(PEER, version=client)
    with Broker(**SMALL, transaction_version=transaction_version) as broker:
        out = kafka.java(
            "TransactionPeer", broker.bootstrap_servers, str(ROUNDS), version=client, classes=classes
        ).splitlines()
    expected = [
        "read [round 0, round 2, round 4]",
        "offset 4",
        "described Ongoing [java-0]",
        f"epoch {epoch}",
        "listed java Ongoing",
        "fenced",
        "read [round 0, round 2, round 4, last]",
    ]
    assert out == expected


@pytest.mark.parametrize("transaction_version", [0, 2])
def test_a_real_kafka_continues_our_transactions_and_we_continue_its(tmp_path: Path, transaction_version: int) -> None:
    data = tmp_path / "data"
    with Broker(data, **SMALL, transaction_version=transaction_version) as broker:
        made = producer(broker, "hand")
        made.begin_transaction()
        send(made, "hand", b"ours")
        made.commit_transaction(HANG_S)
        made.begin_transaction()
        send(made, "hand", b"lost")
        ours = broker.call(lambda node: node.transactions.describe("hand"))
        del made
    with kafka.KafkaBroker(tmp_path) as real:
        made = producer(real, "hand")
        made.begin_transaction()
        send(made, "hand", b"Kafka's")
        made.commit_transaction(HANG_S)
        assert read(real, "hand", 2) == [b"ours", b"Kafka's"]
        left = producer(real, "left")
        left.begin_transaction()
        send(left, "hand", b"lost, too")
        anybody = confluent_kafka.Producer({"bootstrap.servers": real.bootstrap_servers, "enable.idempotence": True})
        send(anybody, "hand2", b"x")
        del made, left, anybody
    with Broker(data, **SMALL, transaction_version=transaction_version) as broker:
        theirs = broker.call(lambda node: node.transactions.describe("hand"))
        assert theirs.status == TransactionState.COMPLETE_COMMIT
        assert theirs.producer_id == ours.producer_id
        assert theirs.producer_epoch > ours.producer_epoch
        assert broker.call(lambda node: node.transactions.describe("left")).status == TransactionState.ONGOING
        fresh = broker.call(lambda node: node.transactions.init_producer_id(None, -1))
        assert fresh.producer_id > theirs.producer_id
        made = producer(broker, "left")
        made.begin_transaction()
        send(made, "hand", b"ours again")
        made.commit_transaction(HANG_S)
        assert read(broker, "hand", 3) == [b"ours", b"Kafka's", b"ours again"]
