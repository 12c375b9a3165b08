"""The tools of Kafka 3.9.1, on a copy of the golden logs, report the groups and transactions that kwire reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import HANG_S
from tools import kafka

from kwire.cli.main import run

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

CONTROLLER = 21093  # the voter's port in the metadata log
SETTINGS: dict[str, str | int] = {
    "controller.quorum.voters": f"1@127.0.0.1:{CONTROLLER}",
    "group.coordinator.rebalance.protocols": "classic,consumer",
    # nothing may change while it is looked at: offsets expire, transactions time out
    "offsets.retention.minutes": 2147483647,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 3600000,
    "group.max.session.timeout.ms": 1800000,
}


@pytest.fixture(scope="module")
def broker(kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[kafka.KafkaBroker]:
    directory = tmp_path_factory.mktemp("broker")
    shutil.copytree(kafka_logs["modern"] / "data", directory / "data")
    node = kafka.KafkaBroker(directory)
    node.settings |= SETTINGS | {"listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{CONTROLLER}"}
    with node:
        yield node


@pytest.fixture
def ours(kafka_logs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict]]:
    """Return kwire's rows of the original logs."""

    def rows(command: str, *arguments: str) -> list[dict]:
        assert run([command, str(kafka_logs["modern"] / "data"), *arguments, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return rows


def table(text: str) -> list[list[str]]:
    """Return the lines of a tool's tables without headings."""
    lines = (line.split() for line in text.splitlines() if line.strip() and "has no active members" not in line)
    return [line for line in lines if line[0] not in ("GROUP", "TransactionalId")]


GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_kafka_consumer_groups_describes_the_same_members_offsets_and_lag(
    broker: kafka.KafkaBroker, ours: Callable[..., list[dict]]
) -> None:
    """Members first: they expire after a session timeout, 45 s after the coordinator has started."""

    def reported(*options: str) -> list[list[str]]:
        server = ("--bootstrap-server", broker.bootstrap_servers)
        return table(kafka.java(GROUPS, *server, "--describe", "--all-groups", *options))

    members = reported("--members", "--verbose")
    offsets = reported("--offsets")
    state = reported("--state")

    def shown(value: object) -> str:
        return "-" if value is None else str(value)

    assert sorted(members) == sorted(
        [
            row["group"],
            row["member_id"],
            row["instance_id"],
            row["client_host"],
            row["client_id"],
            str(sum(len(each["partitions"]) for each in row["assigned"])),
            ",".join(f"({','.join(map(str, each['partitions']))})" for each in row["assigned"]),  # 3.9.1 names no topic
        ]
        for row in ours("group", "--members")
    )
    columns = (
        "group",
        "topic",
        "partition",
        "offset",
        "log_end_offset",
        "lag",
        "member_id",
        "client_host",
        "client_id",
    )
    assert sorted(offsets) == sorted([shown(row[name]) for name in columns] for row in ours("group", "*", "--offsets"))
    # GROUP COORDINATOR (ID) [ASSIGNMENT-STRATEGY] STATE #MEMBERS
    assert sorted((line[0], line[-2], line[-1]) for line in state) == sorted(
        (row["group"], row["state"], str(row["members"])) for row in ours("group")
    )


def test_kafka_transactions_lists_the_same_transactions(
    broker: kafka.KafkaBroker, ours: Callable[..., list[dict]]
) -> None:
    listed = table(
        kafka.java(
            "org.apache.kafka.tools.TransactionsCommand",
            *("--bootstrap-server", broker.bootstrap_servers, "list"),
            timeout=HANG_S,
        )
    )
    assert sorted((line[0], line[2], line[3]) for line in listed) == sorted(
        (row["transactional_id"], str(row["producer_id"]), row["state"]) for row in ours("txn")
    )
    (open_one,) = ours("txn", "--open")
    described = kafka.java(
        "org.apache.kafka.tools.TransactionsCommand",
        *("--bootstrap-server", broker.bootstrap_servers, "describe", "--transactional-id", "txn-tx-0"),
        timeout=HANG_S,
    )
    # CoordinatorId TransactionalId ProducerId ProducerEpoch TransactionState TimeoutMs StartTime DurationMs Partitions
    words = described.splitlines()[1].split()
    assert words[1:6] == [
        "txn-tx-0",
        str(open_one["producer_id"]),
        str(open_one["producer_epoch"]),
        open_one["state"],
        str(open_one["timeout_ms"]),
    ]
    assert set(words[-1].split(",")) == {
        f"{each['topic']}-{number}" for each in open_one["partitions"] for number in each["partitions"]
    }
