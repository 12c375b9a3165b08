"""`kwire txn` on real `__transaction_state`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


def test_transactional_ids_print_one_line_each(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    result = kwire("txn", kafka_logs["modern"] / "data")
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines()[1:]]
    assert [(line[0], line[1]) for line in lines] == [
        ("compacted-txn-ctx-1", "CompleteCommit"),
        ("compacted-txn-ctx-3", "CompleteAbort"),
        ("txn-tx-0", "Ongoing"),
        ("txn-tx-1", "CompleteCommit"),
        ("txn-tx-2", "CompleteAbort"),
        ("txn-tx-late", "CompleteCommit"),
    ]
    assert lines[2][-1] == "txn:0,1"


@pytest.mark.parametrize(("archive", "name"), [("modern", "txn-tx-0"), ("modern44", "txn44-tx-0")])
def test_only_open_transactions_can_be_listed(
    archive: str, name: str, kafka_logs: dict[str, Path], kwire: Callable
) -> None:
    result = kwire("txn", kafka_logs[archive] / "data", "--open", "--format", "json")
    (row,) = json.loads(result.out)
    assert (row["transactional_id"], row["state"], row["is_open"]) == (name, "Ongoing", True)


def test_history_and_earlier_states_are_shown(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    rows = json.loads(kwire("txn", data, "txn-tx-late", "--history", "--format", "json").out)
    assert [row["value"]["transactionStatus"] for row in rows] == [0, 1, 2, 4]
    (row,) = json.loads(kwire("txn", data, "txn-tx-1", "--at-offset", "4", "--format", "json").out)
    assert row["state"] == "PrepareCommit"
    assert len(json.loads(kwire("txn", data, "--history", "--format", "json").out)) == 177 + 82 + 147


def test_wrong_usage_has_exit_code_2(kafka_logs: dict[str, Path], kwire: Callable) -> None:
    data = kafka_logs["modern"] / "data"
    for arguments in (("--open", "--history"), ("--at-offset", "3"), ("nobody",)):
        assert kwire("txn", data, *arguments).code == 2
    assert kwire("txn", kafka_logs["legacy"] / "data").code == 2
