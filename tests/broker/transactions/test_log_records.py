"""Records of `__transaction_state`: real Kafka's round-trip byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.broker.transactions.log_records import write_key, write_value
from kwire.internal_topics.transactions_state import Transaction, TransactionState
from kwire.messages import TransactionLogValue
from kwire.protocol import read_prefixed, write_prefixed
from kwire.records import Record, read_batches
from tests.broker.transactions.harness import read_transaction


def kafkas_records(data: Path) -> list[Record]:
    """Return all records of the topic in a real log directory."""
    paths = sorted(data.glob("__transaction_state-*/*.log"))
    return [record for path in paths for batch in read_batches(path.read_bytes()) for record in batch.records()]


def in_order(value: bytes) -> bytes:
    """Return the value with its partitions sorted, since Kafka writes them in hash map order."""
    read, version = read_prefixed(TransactionLogValue, value)
    for topic in read.transaction_partitions or ():
        topic.partition_ids.sort()
    if read.transaction_partitions is not None:
        read.transaction_partitions.sort(key=lambda topic: topic.topic)
    return write_prefixed(read, version)


@pytest.mark.parametrize("archive", ["modern", "modern44"])
def test_real_records_round_trip(kafka_logs: dict[str, Path], archive: str) -> None:
    records = kafkas_records(kafka_logs[archive] / "data")
    states = set()
    for record in records:
        assert record.key is not None
        if record.value is None:
            continue
        transaction = read_transaction(record.key, record.value)
        assert write_key(transaction.transactional_id) == record.key
        version = int.from_bytes(record.value[:2], "big")
        assert in_order(write_value(transaction, version)) == in_order(record.value)
        states.add(transaction.status)
    assert {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.COMPLETE_COMMIT} <= states


TRANSACTION = Transaction(
    transactional_id="t",
    producer_id=4000,
    producer_epoch=3,
    previous_producer_id=3000,
    next_producer_id=5000,
    timeout_ms=60_000,
    partition=0,
    record_offset=0,
    status=TransactionState.PREPARE_ABORT,
    partitions={"a": (0, 2), "b": (1,)},
    start_timestamp=17,
    last_update_timestamp=19,
    client_transaction_version=2,
)
KEY = write_key("t")


def test_a_transaction_round_trips_through_its_record() -> None:
    assert read_transaction(KEY, write_value(TRANSACTION, 2)) == TRANSACTION
    assert write_value(TRANSACTION, 1) == write_value(TRANSACTION, 2)


def test_version_0_omits_fields_of_newer_versions() -> None:
    value = write_value(TRANSACTION, 0)
    assert value[:2] == b"\x00\x00"
    read = read_transaction(KEY, value)
    assert (read.previous_producer_id, read.next_producer_id, read.client_transaction_version) == (-1, -1, 0)
    assert read.partitions == TRANSACTION.partitions
