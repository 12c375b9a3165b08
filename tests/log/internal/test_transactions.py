"""Transactional ids replayed from `__transaction_state`, compared with Kafka's dumps and stable offsets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.log.internal.dumps import batch, dumped, keyed, log_of

from kwire.internal_topics.group_rows import transaction_row
from kwire.internal_topics.transactions_state import TransactionState
from kwire.log import LogDirectory
from kwire.log.topics import replay_transactions
from kwire.messages import registry


def test_the_last_record_of_each_transactional_id_is_its_state(kafka_logs: dict[str, Path]) -> None:
    """Kafka 4.3's dump of the same files, line by line."""
    last: dict[str, dict[str, Any]] = {}
    for partition in range(3):
        for line in dumped(kafka_logs["modern44"], f"__transaction_state-{partition}"):
            assert line.key is not None
            assert line.payload is not None
            last[line.key["data"]["transactionalId"]] = line.payload["data"] | {"at": line.offset, "in": partition}
    state = replay_transactions(LogDirectory(kafka_logs["modern44"] / "data"))
    assert set(state.transactions) == set(last)
    for name, reported in last.items():
        row = transaction_row(state.transactions[name])
        assert row["state"] == TransactionState(reported["transactionStatus"]).label
        assert (row["producer_id"], row["producer_epoch"]) == (reported["producerId"], reported["producerEpoch"])
        assert row["timeout_ms"] == reported["transactionTimeoutMs"]
        assert row["start_timestamp"] == reported["transactionStartTimestampMs"]
        assert row["last_update_timestamp"] == reported["transactionLastUpdateTimestampMs"]
        assert row["client_transaction_version"] == reported["clientTransactionVersion"] == 2
        assert (row["coordinator_partition"], row["record_offset"]) == (reported["in"], reported["at"])
    assert len(last) == 4


@pytest.mark.requirement("P-06")
@pytest.mark.parametrize(("archive", "topic"), [("modern", "txn"), ("modern44", "txn44")])
def test_open_transactions_bound_the_last_stable_offset(archive: str, topic: str, kafka_logs: dict[str, Path]) -> None:
    """Kafka's consumer could not read to the end of exactly the partitions that an open transaction names."""
    state = replay_transactions(LogDirectory(kafka_logs[archive] / "data"))
    held = {
        (name, number)
        for each in state.transactions.values()
        if each.is_open
        for name, numbers in each.partitions.items()
        for number in numbers
    }
    reported = json.loads((kafka_logs[archive] / "expected" / "consumed" / "offsets.json").read_text())
    stopped = {
        key.split()[0].rpartition("-")[::2]
        for key, entry in reported.items()
        if key.endswith(" read_committed") and entry["end"] < reported[key.replace("committed", "uncommitted")]["end"]
    }
    assert held == {(name, int(number)) for name, number in stopped} == {(topic, 0), (topic, 1)}


def test_an_earlier_state_has_the_transaction_open_at_that_time(kafka_logs: dict[str, Path]) -> None:
    """txn-tx-1 of partition 0: empty, ongoing in two partitions, with a group's offsets, committing, committed."""
    directory = LogDirectory(kafka_logs["modern"] / "data")

    def at(offset: int) -> tuple[str, dict[str, tuple[int, ...]]]:
        found = replay_transactions(directory["__transaction_state", 0], at_offset=offset).transactions["txn-tx-1"]
        return found.state, found.partitions

    assert at(1) == ("Empty", {})
    assert at(2) == ("Ongoing", {"txn": (0, 1)})
    assert at(3) == ("Ongoing", {"txn": (0, 1), "__consumer_offsets": (1,)})
    assert at(4)[0] == "PrepareCommit"
    assert at(5) == ("CompleteCommit", {})


def test_a_tombstone_removes_an_id_and_an_unknown_state_keeps_its_number(tmp_path: Path) -> None:
    key: Any = registry.get("TransactionLogKey")
    value: Any = registry.get("TransactionLogValue")
    records = [
        keyed(key(transactional_id="gone"), value(producer_id=1)),
        keyed(key(transactional_id="new"), value(producer_id=2, transaction_status=42), 1),
        keyed(key(transactional_id="gone"), None),
    ]
    state = replay_transactions(LogDirectory(log_of(tmp_path, "__transaction_state-0", batch(records, 0))))
    assert {name: each.state for name, each in state.transactions.items()} == {"new": "42"}
    assert not state.transactions["new"].is_open
