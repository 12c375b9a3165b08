"""`kwire group`, `txn` and `cluster` with kafka:// URLs: internal topics where they may be read, else admin APIs."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.still import StillBroker

from kwire.broker import Broker
from kwire.client import Client
from kwire.internal_topics.enums import Operation, PatternType, Permission, ResourceType
from kwire.log import LogDirectory
from kwire.messages import CreateAclsRequest, CreateAclsResponse

Kwire = Callable[..., Any]
GRANTS = [
    (ResourceType.TOPIC, "orders", Operation.READ),
    (ResourceType.TOPIC, "__consumer_offsets", Operation.DESCRIBE),
    (ResourceType.GROUP, "*", Operation.DESCRIBE),
    (ResourceType.TRANSACTIONAL_ID, "txn-tx-0", Operation.DESCRIBE),
]


def rows(output: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(output)
    return found


def properties(path: Path, user: str) -> Path:
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        f'  username="{user}" password="{user}-secret";\n'
    )
    return path


@pytest.fixture(scope="module")
def served(
    kafka_logs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path, dict[str, Path]]]:
    """The URL of a broker with ACLs on a copy of a log directory, the directory, and config files by user."""
    folder = tmp_path_factory.mktemp("served")
    data = folder / "data"
    shutil.copytree(kafka_logs["modern"] / "data", data)
    files = {user: properties(folder / f"{user}.properties", user) for user in ("root", "alice", "nobody")}
    users = {user: f"{user}-secret" for user in files}
    listener = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": users, "acls": True, "super_users": "User:root"}
    with StillBroker(data_dir=data, **listener) as broker:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "root",
            "sasl.password": "root-secret",
        }
        with Client(broker.bootstrap_servers, **login) as client:
            creations = [
                CreateAclsRequest.AclCreation(
                    resource_type=kind,
                    resource_name=name,
                    resource_pattern_type=PatternType.LITERAL,
                    principal="User:alice",
                    host="*",
                    operation=operation,
                    permission_type=Permission.ALLOW,
                )
                for kind, name, operation in GRANTS
            ]
            results = client.request(CreateAclsRequest(creations=creations), CreateAclsResponse).results
            assert [each.error_code for each in results] == [0] * len(GRANTS)
        yield f"kafka://{broker.bootstrap_servers}", data, files


@pytest.fixture
def as_user(served: tuple[str, Path, dict[str, Path]], kwire: Kwire) -> Kwire:
    """as_user("alice", "group", ...) runs a command on the cluster."""
    url, _, files = served

    def call(user: str, command: str, *arguments: str) -> Any:
        return kwire(command, url, *arguments, "--config-file", files[user])

    return call


def test_groups_come_from_the_topic_where_it_may_be_read(
    served: tuple[str, Path, dict[str, Path]], as_user: Kwire, kwire: Kwire
) -> None:
    for arguments in ((), ("g-static",), ("--members",), ("g-admin", "--at-time", "2100-01-01"), ("--history",)):
        mine = as_user("root", "group", *arguments, "--format", "json")
        theirs = kwire("group", served[1], *arguments, "--format", "json")
        assert (mine.code, rows(mine.out)) == (0, rows(theirs.out)), arguments
    assert as_user("root", "group").err == "kwire: from __consumer_offsets\n"


def test_groups_come_from_admin_apis_otherwise(
    served: tuple[str, Path, dict[str, Path]], as_user: Kwire, kwire: Kwire
) -> None:
    result = as_user("alice", "group", "--format", "json")
    assert result.code == 0
    assert result.err.splitlines()[0] == (
        "kwire: from ListGroups, DescribeGroups, ConsumerGroupDescribe, OffsetFetch: "
        "the account may not read __consumer_offsets"
    )
    stored = {row["group"]: row for row in rows(kwire("group", served[1], "--format", "json").out)}
    found = {row["group"]: row for row in rows(result.out)}
    assert found.keys() == stored.keys()
    same = ("kind", "state", "members", "partitions", "lag")
    for name in ("g-classic", "g-admin"):  # these read orders, the topic that the account may see
        assert [found[name][key] for key in same] == [stored[name][key] for key in same]
        assert found[name]["last_timestamp"] is None
    offsets = rows(as_user("alice", "group", "g-classic", "--format", "json").out)
    expected = rows(kwire("group", served[1], "g-classic", "--format", "json").out)
    unknown = ("commit_timestamp", "record_offset", "expire_timestamp")
    assert [{**row, **dict.fromkeys(unknown)} for row in expected] == offsets


@pytest.mark.parametrize(
    ("command", "topic", "apis"),
    [("group", "__consumer_offsets", "ListGroups"), ("txn", "__transaction_state", "ListTransactions")],
)
def test_a_new_cluster_has_no_topic_yet(kwire: Kwire, command: str, topic: str, apis: str) -> None:
    # It said that the account may not read it.
    with Broker() as broker:
        result = kwire(command, f"kafka://{broker.bootstrap_servers}")
        assert (result.code, result.err) == (0, f"kwire: from {apis}: the cluster has no {topic} yet\n")
        past = kwire(command, f"kafka://{broker.bootstrap_servers}", "--at-time", "2100-01-01")
        assert past.code == 2
        assert past.err.endswith(f"requires READ on the topic '{topic}': the cluster has no {topic} yet\n")
        with Client(broker.bootstrap_servers) as client:
            assert client.metadata().topics == {}  # asking did not create it


def test_a_past_state_needs_the_topic(as_user: Kwire) -> None:
    result = as_user("alice", "group", "g-admin", "--at-time", "2100-01-01")
    assert result.code == 2
    assert "a past state requires READ on the topic '__consumer_offsets'" in result.err


def test_transactions_come_from_the_topic_or_from_admin_apis(
    served: tuple[str, Path, dict[str, Path]], as_user: Kwire, kwire: Kwire
) -> None:
    mine = as_user("root", "txn", "txn-tx-[12]", "--format", "json")
    assert rows(mine.out) == rows(kwire("txn", served[1], "txn-tx-[12]", "--format", "json").out)
    assert mine.err == "kwire: from __transaction_state\n"
    result = as_user("alice", "txn", "--format", "json")
    assert result.err.startswith("kwire: from ListTransactions, DescribeTransactions: the account may not read")
    (row,) = rows(result.out)
    assert (row["transactional_id"], row["producer_id"], row["record_offset"]) == ("txn-tx-0", 1026, None)
    assert rows(as_user("nobody", "txn", "--format", "json").out) == []


PARTS = ("topics", "partitions", "configs", "quotas", "users", "acls", "features", "brokers", "voters")


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_cluster_equal_those_of_its_metadata_log(
    served: tuple[str, Path, dict[str, Path]], as_user: Kwire, kwire: Kwire, part: str
) -> None:
    from kwire.client.admin.cluster import UNKNOWN
    from kwire.internal_topics.cluster_rows import ClusterPart

    result = as_user("root", "cluster", part, "--format", "json")
    assert result.code == 0
    assert result.err.startswith("kwire: from ")
    unknown = {*UNKNOWN.get(ClusterPart(part), ()), "endpoints", "directory_id"}
    found = [{key: value for key, value in row.items() if key not in unknown} for row in rows(result.out)]
    stored = rows(kwire("cluster", served[1], part, "--format", "json").out)
    expected = [{key: value for key, value in row.items() if key not in unknown} for row in stored]
    if part == "features":  # the broker has one more than its log, and no level of kraft.version
        found, expected = ([row for row in each if row["feature"] == "metadata.version"] for each in (found, expected))
    if part == "users":  # those of the broker's settings have no records
        found = [row for row in found if row["user"] not in ("root", "alice", "nobody")]
    assert found == expected
    assert found


def test_what_an_account_may_not_see_is_named_and_not_counted(as_user: Kwire) -> None:
    result = as_user("alice", "cluster", "--format", "json")
    facts = {row["fact"]: row["value"] for row in rows(result.out)}
    assert (facts["topics"], facts["brokers"]) == (2, 1)
    assert facts["users"] is facts["acls"] is facts["quotas"] is facts["voters"] is None
    for part in ("users", "acls", "quotas", "controllers"):
        assert f"kwire: not visible: {part}: CLUSTER_AUTHORIZATION_FAILED" in result.err
    assert as_user("alice", "cluster", "acls").out == ""


def test_commands_for_directories_are_refused(served: tuple[str, Path, dict[str, Path]], kwire: Kwire) -> None:
    url, data, files = served
    login = ("--config-file", files["root"])
    for arguments, message in (
        (("cluster", url, "snapshots", *login), "clients cannot read the metadata log"),
        (("cluster", url, "--at-offset", "5", *login), "clients cannot read the metadata log"),
        (("cluster", f"{url}/orders", *login), "expected kafka://"),
        (("group", f"{url}/orders", *login), "or a partition of '__consumer_offsets'"),
        (("txn", data, "--hanging"), "--hanging requires a path that begins with kafka://"),
        (("txn", url, "--abort", *login), "--abort requires --hanging"),
        (("txn", url, "x", "--hanging", *login), "--hanging takes no ID"),
    ):
        result = kwire(*arguments)
        assert (result.code, message in result.err) == (2, True), result.err


def test_a_wrong_password_is_an_error_without_the_password(
    served: tuple[str, Path, dict[str, Path]], kwire: Kwire, tmp_path: Path
) -> None:
    file = properties(tmp_path / "x", "alice")
    file.write_text(file.read_text().replace("alice-secret", "wonder"))
    result = kwire("group", served[0], "--config-file", file)
    assert result.code == 1
    assert "Authentication failed" in result.err or "authentication" in result.err.lower()
    assert "wonder" not in result.err


@pytest.fixture
def hung(kafka_logs: dict[str, Path], tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A broker whose transaction log was lost: producer 1026 has open transactions that nobody will end."""
    data = tmp_path / "data"
    shutil.copytree(kafka_logs["modern"] / "data", data)
    for each in data.glob("__transaction_state-*"):
        shutil.rmtree(each)
    with StillBroker(data_dir=data) as broker:
        yield f"kafka://{broker.bootstrap_servers}", data


def test_hanging_transactions_are_found_and_ended_after_asking(
    hung: tuple[str, Path], kwire: Kwire, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, data = hung
    result = kwire("txn", url, "--hanging", "--format", "json")
    assert result.code == 1
    found = rows(result.out)
    assert [(row["topic"], row["partition"], row["producer_id"], row["start_offset"]) for row in found] == [
        ("txn", 0, 1026, 688),
        ("txn", 1, 1026, 704),
    ]
    assert found[1]["command"] == f"kwire txn {url}/txn-1 --hanging --abort"

    refused = kwire("txn", url, "--hanging", "--abort")
    assert (refused.code, "use --yes" in refused.err) == (2, True)
    monkeypatch.setattr("kwire.cli.terminal.is_terminal", lambda stream=None: stream is not None)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    refused = kwire("txn", url, "--hanging", "--abort")
    assert (refused.code, "nothing was aborted" in refused.err) == (2, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    ended = kwire("txn", f"{url}/txn-0", "--hanging", "--abort")
    assert ended.code == 0
    assert "Abort 1 transaction?" in ended.err
    assert "txn-0: transaction of producer 1026 at offset 688 aborted" in ended.err
    monkeypatch.undo()

    assert [row["partition"] for row in rows(kwire("txn", url, "--hanging", "--format", "json").out)] == [1]
    assert kwire("txn", url, "--hanging", "--abort", "--yes").code == 0
    clean = kwire("txn", url, "--hanging")
    assert (clean.code, clean.out) == (0, "")
    for log in (LogDirectory(data)["txn", 0], LogDirectory(data)["txn", 1]):
        assert log.last_stable_offset == log.log_end_offset
        assert not any(
            688 <= record.offset < 693 for record in LogDirectory(data)["txn", 0].read(0, None, "read_committed")
        )
