"""Copies by accounts that may not read the coordinators' topics: what admin APIs tell, and what they do not."""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.client import Client
from kwire.client.group_offsets import commit_offsets, fetch_offsets
from kwire.internal_topics.enums import Operation, PatternType, Permission, ResourceType
from kwire.log import LogDirectory
from kwire.log.topics import replay_groups, replay_transactions
from kwire.maintenance.pull import MANIFEST, Manifest, PullOptions, PullResult, pull
from kwire.maintenance.pull.manifest import AclEntry, QuotaEntry, UserEntry, manifest_damages
from kwire.maintenance.verify import verify_directory
from kwire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    CreateAclsRequest,
    CreateAclsResponse,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kwire.protocol.error_codes import ErrorCode
from tests.broker.still import StillBroker
from tests.rewriting_proxy import RewritingProxy
from tests.waiting import HANG_S

GRANTS = [
    (ResourceType.TOPIC, "orders", Operation.READ),
    (ResourceType.GROUP, "*", Operation.DESCRIBE),
    (ResourceType.TRANSACTIONAL_ID, "*", Operation.DESCRIBE),
]
OFFSETS = ("__consumer_offsets", Operation.DESCRIBE)
Login = Callable[[str], Client]


def grant(client: Client, grants: list[tuple[ResourceType, str, Operation]]) -> None:
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
        for kind, name, operation in grants
    ]
    results = client.request(CreateAclsRequest(creations=creations), CreateAclsResponse).results
    assert not any(each.error_code for each in results)


def account(user: str) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        "default.api.timeout.ms": 5000,
    }


@pytest.fixture
def login(kafka_logs: dict[str, Path], tmp_path: Path) -> Iterator[Login]:
    """login("alice") connects to a broker with ACLs on a copy of real Kafka's directory; root may do all."""
    shutil.copytree(kafka_logs["modern"] / "data", tmp_path / "source")
    users = {user: f"{user}-secret" for user in ("root", "alice")}
    listener = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": users, "acls": True, "super_users": "User:root"}
    clients: list[Client] = []
    with StillBroker(data_dir=tmp_path / "source", **listener) as broker:

        def connect(user: str) -> Client:
            clients.append(Client(broker.bootstrap_servers, **account(user)))
            return clients[-1]

        grant(connect("root"), GRANTS)
        yield connect
        for client in clients:
            client.close()


def offsets(directory: Path | str, topic: str = "orders") -> dict[tuple[str, int], tuple[int, int, str]]:
    """Return committed offsets by group and partition."""
    return {
        (name, each.partition): (each.offset, each.leader_epoch, each.metadata)
        for name, group in replay_groups(LogDirectory(directory)).groups.items()
        for each in group.offsets.values()
        if each.topic == topic
    }


def valid(copy: Path, result: PullResult) -> bool:
    directory = LogDirectory(copy)
    damages = [each for each in verify_directory(directory).damages if not each.is_harmless]
    return result.is_complete and not damages and not manifest_damages(str(copy), set(directory))


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("grants", [[], [(ResourceType.TOPIC, *OFFSETS)]], ids=["hidden", "described"])
def test_groups_and_transactions_come_from_admin_apis_where_their_topics_may_not_be_read(
    login: Login, tmp_path: Path, grants: list[tuple[ResourceType, str, Operation]]
) -> None:
    grant(login("root"), grants) if grants else None
    copy = tmp_path / "copy"
    result = pull(login("alice"), str(copy))
    assert valid(copy, result)
    expected = offsets(tmp_path / "source")
    assert len(expected) > 2
    assert offsets(copy) == expected
    ours, theirs = (replay_transactions(LogDirectory(path)).transactions for path in (copy, tmp_path / "source"))
    assert theirs
    same = ("producer_id", "producer_epoch", "status", "timeout_ms")
    assert {name: [getattr(each, key) for key in same] for name, each in ours.items()} == {
        name: [getattr(each, key) for key in same] for name, each in theirs.items()
    }
    topics = result.manifest.topics
    assert topics["__consumer_offsets"].made_from[:2] == ["ListGroups", "DescribeGroups"]
    assert topics["__transaction_state"].made_from == ["ListTransactions", "DescribeTransactions"]
    assert topics["orders"].made_from == []
    assert "topic __consumer_offsets: TOPIC_AUTHORIZATION_FAILED" in result.manifest.hidden


@pytest.mark.slow
def test_a_broker_on_the_copy_knows_the_committed_offsets(login: Login, tmp_path: Path) -> None:
    pull(login("alice"), str(tmp_path / "copy"))
    theirs = fetch_offsets(login("root"), "g-classic")
    with StillBroker(data_dir=tmp_path / "copy") as broker, Client(broker.bootstrap_servers) as client:
        found = fetch_offsets(client, "g-classic")
    assert found
    assert found == {key: each for key, each in theirs.items() if key[0] == "orders"}


@pytest.mark.slow
def test_a_later_run_writes_what_has_changed(login: Login, tmp_path: Path) -> None:
    copy, alice, root = tmp_path / "copy", login("alice"), login("root")
    pull(alice, str(copy))
    assert pull(alice, str(copy)).copied_bytes == 0
    commit_offsets(root, "late", {("orders", 0): 7}, "note")
    result = pull(alice, str(copy))
    assert 0 < result.copied_bytes < 200
    assert offsets(copy)["late", 0] == (7, -1, "note")
    assert valid(copy, result)


def test_a_following_copy_has_groups_that_appear_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator's topic is created by the first group, and may not be read either."""
    monkeypatch.setattr("kwire.maintenance.pull.run.METADATA_S", 0.1)
    copy = tmp_path / "copy"
    users = {user: f"{user}-secret" for user in ("root", "alice")}
    listener = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "users": users, "acls": True, "super_users": "User:root"}
    with Broker(data_dir=tmp_path / "source", offsets_topic_num_partitions=3, **listener) as broker:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "default.api.timeout.ms": 5000}
        settings = [{**login, "sasl.username": user, "sasl.password": users[user]} for user in ("root", "alice")]
        with (
            Client(broker.bootstrap_servers, **settings[0]) as root,
            Client(broker.bootstrap_servers, **settings[1]) as alice,
        ):
            grant(root, [*GRANTS, (ResourceType.TOPIC, *OFFSETS)])
            new = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)
            root.request(CreateTopicsRequest(topics=[new]))
            steps, deadline = 0, time.monotonic() + HANG_S

            def stop() -> bool:
                nonlocal steps
                steps += 1
                if steps == 2:
                    commit_offsets(root, "late", {("orders", 0): 0})
                assert time.monotonic() < deadline
                return (copy / "__consumer_offsets-0").exists() and bool(offsets(copy))

            result = pull(alice, str(copy), PullOptions(follow=True), stop=stop)
    assert result.failures == {}
    assert offsets(copy) == {("late", 0): (0, -1, "")}
    assert len(result.manifest.topics["__consumer_offsets"].partitions) == 3


@pytest.mark.slow
def test_a_copy_in_an_object_store_has_groups_from_admin_apis_as_well(
    login: Login, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    url, alice, root = f"memory://{uuid.uuid4().hex}/copy", login("alice"), login("root")
    commit_offsets(root, "early", {("orders", 0): 5})
    pull(alice, url)
    expected = offsets(tmp_path / "source")
    assert offsets(url) == expected
    commit_offsets(root, "early", {("orders", 0): 7}, "note")
    result = pull(alice, url)
    assert result.is_complete
    assert 0 < result.copied_bytes < 200
    assert offsets(url) == expected | {("early", 0): (7, -1, "note")}
    assert {each.kind for each in pull(root, url).events} == {"readable"}
    assert offsets(url) == offsets(tmp_path / "source")


@pytest.mark.slow
def test_offsets_that_are_gone_have_tombstones(login: Login, tmp_path: Path) -> None:
    copy, root = tmp_path / "copy", login("root")
    commit_offsets(root, "late", {("orders", 0): 7})
    pull(login("alice"), str(copy))
    assert ("late", 0) in offsets(copy)
    deleted = root.request(DeleteGroupsRequest(groups_names=["late"]), DeleteGroupsResponse)
    assert [each.error_code for each in deleted.results] == [0]
    result = pull(login("alice"), str(copy))
    assert ("late", 0) not in offsets(copy)
    assert valid(copy, result)


def unavailable(response: Any) -> None:
    """Answer as a broker that is not the coordinator any more."""
    for each in response.transaction_states if hasattr(response, "transaction_states") else response.groups:
        each.error_code = ErrorCode.NOT_COORDINATOR


@pytest.mark.slow
def test_offsets_of_a_coordinator_that_does_not_respond_stay_in_the_copy(login: Login, tmp_path: Path) -> None:
    """Lists lack the groups and ids of a dead broker; only its successor can tell that one of them is gone."""
    copy, root = tmp_path / "copy", login("root")
    commit_offsets(root, "late", {("orders", 0): 7})
    (address,) = root.settings.bootstrap_servers
    settings = account("alice") | {"default.api.timeout.ms": 1000}
    with RewritingProxy(address) as proxy, Client(proxy.address, **settings) as client:
        pull(client, str(copy))
        expected, ids = offsets(copy), set(replay_transactions(LogDirectory(copy)).transactions)
        assert ("late", 0) in expected
        assert ids
        proxy.rewrite["ListGroupsResponse"] = lambda response: response.groups.clear()
        proxy.rewrite["ListTransactionsResponse"] = lambda response: response.transaction_states.clear()
        proxy.rewrite["OffsetFetchResponse"] = proxy.rewrite["DescribeTransactionsResponse"] = unavailable
        pull(client, str(copy))
        assert offsets(copy) == expected
        assert set(replay_transactions(LogDirectory(copy)).transactions) == ids
        proxy.rewrite.clear()
        root.request(DeleteGroupsRequest(groups_names=["late"]), DeleteGroupsResponse)
        result = pull(client, str(copy))
    assert offsets(copy) == {key: each for key, each in expected.items() if key[0] != "late"}
    assert set(replay_transactions(LogDirectory(copy)).transactions) == ids
    assert valid(copy, result)


@pytest.mark.slow
def test_configs_of_a_broker_that_does_not_respond_stay_in_the_manifest(login: Login, tmp_path: Path) -> None:
    copy, root = tmp_path / "copy", login("root")
    set_up(root, broker="1")
    (address,) = root.settings.bootstrap_servers

    def lose(response: Any) -> None:
        if any((each.resource_type, each.resource_name) == (4, "1") for each in response.results):
            raise ConnectionResetError

    with RewritingProxy(address) as proxy, Client(proxy.address, **account("root")) as client:
        pull(client, str(copy))
        proxy.rewrite["DescribeConfigsResponse"] = lose
        manifest = pull(client, str(copy)).manifest
        assert manifest.complete
        assert any(each.startswith("configs of broker 1: ") for each in manifest.hidden)
        assert manifest.cluster is not None
        assert (manifest.cluster.broker_configs or {})["1"] == {"log.cleaner.threads": "2"}
        proxy.rewrite.clear()
        assert pull(client, str(copy)).manifest.hidden == []


@pytest.mark.slow
def test_the_topic_itself_replaces_the_log_made_from_admin_apis(login: Login, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    pull(login("alice"), str(copy))
    result = pull(login("root"), str(copy))
    assert valid(copy, result)
    assert {each.kind for each in result.events} == {"readable"}
    ours, theirs = LogDirectory(copy), LogDirectory(tmp_path / "source")
    for name in ("__consumer_offsets", "__transaction_state"):
        assert result.manifest.topics[name].made_from == []
        assert {key for key in ours if key[0] == name} == {key for key in theirs if key[0] == name}
        for key in (key for key in ours if key[0] == name):
            assert [bytes(each.buffer) for _, each in ours[key].batches()] == [
                bytes(each.buffer) for _, each in theirs[key].batches()
            ]
    assert list(copy.glob("__consumer_offsets-*-stray"))
    # and a copy of the topic is kept when it may no longer be read
    again = pull(login("alice"), str(copy))
    assert again.events == []
    assert any("has nothing later" in what for what in again.manifest.hidden)
    assert LogDirectory(copy)["__consumer_offsets", 0].topic_id == theirs["__consumer_offsets", 0].topic_id


def set_up(root: Client, broker: str = "") -> None:
    upsertion = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name="bob", mechanism=2, iterations=8192, salt=b"salt", salted_password=b"x" * 64
    )
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    assert not any(each.error_code for each in root.request(request, AlterUserScramCredentialsResponse).results)
    entity = [AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="bob")]
    ops = [AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1024.0)]
    entry = AlterClientQuotasRequest.EntryData(entity=entity, ops=ops)
    altered = root.request(AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse)
    assert not any(each.error_code for each in altered.entries)
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="log.cleaner.threads", config_operation=0, value="2")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=4, resource_name=broker, configs=[config]
    )
    node_id = int(broker) if broker else None
    request = IncrementalAlterConfigsRequest(resources=[resource])
    changed = root.request(request, IncrementalAlterConfigsResponse, node_id=node_id)
    assert not any(each.error_code for each in changed.responses)


def test_users_acls_quotas_and_configs_are_in_the_manifest(login: Login, tmp_path: Path) -> None:
    root, copy = login("root"), tmp_path / "copy"
    set_up(root)
    pull(root, str(copy), PullOptions(topics=["orders"]))
    data = (copy / MANIFEST).read_bytes()
    manifest = Manifest.parse(data, MANIFEST)
    cluster = manifest.cluster
    assert cluster is not None
    assert UserEntry(user="bob", mechanism="SCRAM-SHA-512", iterations=8192) in (cluster.users or ())
    acl = AclEntry(
        principal="User:alice",
        permission="ALLOW",
        operation="READ",
        resource_type="TOPIC",
        pattern_type="LITERAL",
        resource_name="orders",
        host="*",
    )
    assert acl in (cluster.acls or ())
    assert QuotaEntry(entity={"user": "bob"}, quotas={"producer_byte_rate": 1024.0}) in (cluster.quotas or ())
    assert (cluster.broker_configs or {})[""] == {"log.cleaner.threads": "2"}
    assert (cluster.features or {})["metadata.version"] > 0
    assert manifest.hidden == []
    assert b"salt" not in data
    assert b"secret" not in data


@pytest.mark.slow
def test_what_the_account_may_not_see_is_listed(login: Login, tmp_path: Path) -> None:
    manifest = pull(login("alice"), str(tmp_path / "copy")).manifest
    cluster = manifest.cluster
    assert cluster is not None
    assert cluster.users is cluster.acls is cluster.quotas is cluster.broker_configs is None
    for part in ("users", "acls", "quotas"):
        assert f"{part}: CLUSTER_AUTHORIZATION_FAILED" in manifest.hidden
    assert "configs of topic orders: TOPIC_AUTHORIZATION_FAILED" in manifest.hidden
    assert any(each.startswith("configs of broker ") for each in manifest.hidden)


def test_a_copy_of_one_topic_does_not_describe_the_cluster(login: Login, tmp_path: Path) -> None:
    options: dict[str, Any] = {"topics": ["orders"], "groups": False, "cluster": False}
    manifest = pull(login("alice"), str(tmp_path / "copy"), PullOptions(**options)).manifest
    assert json.loads((tmp_path / "copy" / MANIFEST).read_text())["cluster"] is None
    assert [each for each in manifest.hidden if "orders" not in each] == []
