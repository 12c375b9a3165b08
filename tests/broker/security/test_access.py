"""Every API rejects users without permissions: one request for each operation of each API."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from kwire import messages as m
from kwire.broker import Broker
from kwire.broker.apis import SERVED
from kwire.broker.authorization import Operation, ResourceType
from kwire.errors import EncodeError
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.records import Record, write_batch
from tests.broker.security.raw_client import RawClient
from tests.waiting import HANG_S

USERS = {"root": "root-password", "nobody": "nobody-password"}
TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TRANSACTION = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
RECORDS = write_batch([Record(offset=0, timestamp=0, timestamp_type=0, key=None, value=b"x", headers=[])])
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4


def txn_topics(cls: Any) -> list[Any]:
    return [cls(name="t", partitions=[0])]


def state_request(cls: Any, data: str) -> Any:
    """Return a request for the state of a share partition."""
    return cls(group_id="g", topics=[getattr(cls, data)(partitions=[cls.PartitionData()])])


CASES: dict[str, list[tuple[Message, ErrorCode | None]]] = {
    "api_versions": [(m.ApiVersionsRequest(client_software_name="a", client_software_version="1"), None)],
    "sasl_handshake": [(m.SaslHandshakeRequest(mechanism="PLAIN"), None)],
    "sasl_authenticate": [(m.SaslAuthenticateRequest(), None)],
    "describe_cluster": [(m.DescribeClusterRequest(), None)],  # needs no permission
    "list_groups": [(m.ListGroupsRequest(), None)],  # lists what may be described: see below
    "list_transactions": [(m.ListTransactionsRequest(), None)],
    "get_telemetry_subscriptions": [(m.GetTelemetrySubscriptionsRequest(), None)],  # a client's own metrics
    "push_telemetry": [(m.PushTelemetryRequest(), None)],
    "streams_group_heartbeat": [(m.StreamsGroupHeartbeatRequest(), None)],  # refused for all
    "streams_group_describe": [(m.StreamsGroupDescribeRequest(group_ids=["g"]), None)],
    "streams_group_topology_description_update": [(m.StreamsGroupTopologyDescriptionUpdateRequest(), None)],
    "add_raft_voter": [(m.AddRaftVoterRequest(), CLUSTER)],
    "remove_raft_voter": [(m.RemoveRaftVoterRequest(), CLUSTER)],
    "unregister_controller": [(m.UnregisterControllerRequest(controller_id=2), CLUSTER)],
    "update_features": [
        (
            m.UpdateFeaturesRequest(
                feature_updates=[
                    m.UpdateFeaturesRequest.FeatureUpdateKey(feature="transaction.version", max_version_level=1)
                ]
            ),
            CLUSTER,
        )
    ],
    "unregister_broker": [(m.UnregisterBrokerRequest(broker_id=9), CLUSTER)],
    "elect_leaders": [
        (
            m.ElectLeadersRequest(topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])]),
            CLUSTER,
        )
    ],
    "alter_partition_reassignments": [
        (
            m.AlterPartitionReassignmentsRequest(
                topics=[
                    m.AlterPartitionReassignmentsRequest.ReassignableTopic(
                        name="t", partitions=[m.AlterPartitionReassignmentsRequest.ReassignablePartition(replicas=[1])]
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "create_delegation_token": [
        (
            m.CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name="root"),
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        )
    ],
    # rights come from the token; see test_delegation_tokens
    "renew_delegation_token": [(m.RenewDelegationTokenRequest(hmac=b"x"), None)],
    "expire_delegation_token": [(m.ExpireDelegationTokenRequest(hmac=b"x"), None)],
    "describe_delegation_token": [(m.DescribeDelegationTokenRequest(owners=None), None)],
    "list_partition_reassignments": [(m.ListPartitionReassignmentsRequest(topics=None), CLUSTER)],
    "describe_quorum": [(m.DescribeQuorumRequest(), CLUSTER)],
    "list_config_resources": [(m.ListConfigResourcesRequest(), CLUSTER)],
    "alter_replica_log_dirs": [
        (
            m.AlterReplicaLogDirsRequest(
                dirs=[
                    m.AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                        path="/x",
                        topics=[m.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="t", partitions=[0])],
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "produce": [
        (
            m.ProduceRequest(
                acks=1,
                timeout_ms=100,
                topic_data=[
                    m.ProduceRequest.TopicProduceData(
                        name="t",
                        partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=RECORDS)],
                    )
                ],
            ),
            TOPIC,
        ),
        (
            m.ProduceRequest(
                acks=1,
                timeout_ms=100,
                transactional_id="x",
                topic_data=[
                    m.ProduceRequest.TopicProduceData(
                        name="t",
                        partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=RECORDS)],
                    )
                ],
            ),
            TRANSACTION,
        ),
    ],
    "fetch": [
        (
            m.FetchRequest(
                topics=[m.FetchRequest.FetchTopic(topic="t", partitions=[m.FetchRequest.FetchPartition(partition=0)])]
            ),
            TOPIC,
        )
    ],
    "list_offsets": [
        (
            m.ListOffsetsRequest(
                replica_id=-1,
                topics=[
                    m.ListOffsetsRequest.ListOffsetsTopic(
                        name="t", partitions=[m.ListOffsetsRequest.ListOffsetsPartition(timestamp=-1)]
                    )
                ],
            ),
            TOPIC,
        )
    ],
    "metadata": [(m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="t")]), TOPIC)],
    "describe_topic_partitions": [
        (
            m.DescribeTopicPartitionsRequest(topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name="t")]),
            TOPIC,
        )
    ],
    "offset_for_leader_epoch": [
        (
            m.OffsetForLeaderEpochRequest(
                replica_id=-1,
                topics=[
                    m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                        topic="t", partitions=[m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition()]
                    )
                ],
            ),
            TOPIC,
        )
    ],
    "offset_commit": [
        (
            m.OffsetCommitRequest(
                group_id="g",
                topics=[
                    m.OffsetCommitRequest.OffsetCommitRequestTopic(
                        name="t", partitions=[m.OffsetCommitRequest.OffsetCommitRequestPartition()]
                    )
                ],
            ),
            GROUP,
        )
    ],
    "offset_fetch": [
        (
            m.OffsetFetchRequest(
                groups=[
                    m.OffsetFetchRequest.OffsetFetchRequestGroup(
                        group_id="g",
                        topics=[m.OffsetFetchRequest.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                    )
                ]
            ),
            GROUP,
        )
    ],
    "find_coordinator": [
        (m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), GROUP),
        (m.FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]), TRANSACTION),
    ],
    "join_group": [(m.JoinGroupRequest(group_id="g", session_timeout_ms=10_000, protocol_type="consumer"), GROUP)],
    "heartbeat": [(m.HeartbeatRequest(group_id="g"), GROUP)],
    "share_group_heartbeat": [
        (m.ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"]), GROUP)
    ],
    "share_group_describe": [(m.ShareGroupDescribeRequest(group_ids=["g"]), GROUP)],
    "share_fetch": [(m.ShareFetchRequest(group_id="g", member_id="m", max_wait_ms=0), GROUP)],
    "share_acknowledge": [(m.ShareAcknowledgeRequest(group_id="g", member_id="m"), GROUP)],
    **{
        snake: [(state_request(getattr(m, f"{name}Request"), data), CLUSTER)]
        for snake, name, data in (
            ("initialize_share_group_state", "InitializeShareGroupState", "InitializeStateData"),
            ("read_share_group_state", "ReadShareGroupState", "ReadStateData"),
            ("write_share_group_state", "WriteShareGroupState", "WriteStateData"),
            ("delete_share_group_state", "DeleteShareGroupState", "DeleteStateData"),
            ("read_share_group_state_summary", "ReadShareGroupStateSummary", "ReadStateSummaryData"),
        )
    },
    "describe_share_group_offsets": [
        (
            m.DescribeShareGroupOffsetsRequest(
                groups=[m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(group_id="g")]
            ),
            GROUP,
        )
    ],
    "alter_share_group_offsets": [(m.AlterShareGroupOffsetsRequest(group_id="g"), GROUP)],
    "delete_share_group_offsets": [(m.DeleteShareGroupOffsetsRequest(group_id="g"), GROUP)],
    "leave_group": [
        (m.LeaveGroupRequest(group_id="g", members=[m.LeaveGroupRequest.MemberIdentity(member_id="m")]), GROUP)
    ],
    "sync_group": [(m.SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), GROUP)],
    "describe_groups": [(m.DescribeGroupsRequest(groups=["g"]), GROUP)],
    "delete_groups": [(m.DeleteGroupsRequest(groups_names=["g"]), GROUP)],
    "offset_delete": [
        (
            m.OffsetDeleteRequest(
                group_id="g",
                topics=[
                    m.OffsetDeleteRequest.OffsetDeleteRequestTopic(
                        name="t", partitions=[m.OffsetDeleteRequest.OffsetDeleteRequestPartition()]
                    )
                ],
            ),
            GROUP,
        )
    ],
    "consumer_group_heartbeat": [
        (
            m.ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            ),
            GROUP,
        )
    ],
    "consumer_group_describe": [(m.ConsumerGroupDescribeRequest(group_ids=["g"]), GROUP)],
    "create_topics": [
        (
            m.CreateTopicsRequest(
                topics=[m.CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
            ),
            TOPIC,
        )
    ],
    "delete_topics": [
        (m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="t")]), TOPIC),
    ],
    "delete_records": [
        (
            m.DeleteRecordsRequest(
                topics=[
                    m.DeleteRecordsRequest.DeleteRecordsTopic(
                        name="t", partitions=[m.DeleteRecordsRequest.DeleteRecordsPartition(offset=-1)]
                    )
                ]
            ),
            TOPIC,
        )
    ],
    "create_partitions": [
        (
            m.CreatePartitionsRequest(topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=5)]),
            TOPIC,
        )
    ],
    "init_producer_id": [
        (m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000), TRANSACTION),
        (m.InitProducerIdRequest(transactional_id=None), CLUSTER),
    ],
    "add_partitions_to_txn": [
        (
            m.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="x",
                v3_and_below_topics=txn_topics(m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic),
            ),
            TRANSACTION,
        ),
        (
            m.AddPartitionsToTxnRequest(
                transactions=[
                    m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                        transactional_id="x",
                        topics=txn_topics(m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic),
                    )
                ]
            ),
            CLUSTER,
        ),
    ],
    "add_offsets_to_txn": [(m.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), TRANSACTION)],
    "end_txn": [(m.EndTxnRequest(transactional_id="x"), TRANSACTION)],
    "txn_offset_commit": [
        (
            m.TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                topics=[
                    m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                        name="t", partitions=[m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition()]
                    )
                ],
            ),
            TRANSACTION,
        )
    ],
    "write_txn_markers": [
        (
            m.WriteTxnMarkersRequest(
                markers=[
                    m.WriteTxnMarkersRequest.WritableTxnMarker(
                        topics=[m.WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "describe_transactions": [(m.DescribeTransactionsRequest(transactional_ids=["x"]), TRANSACTION)],
    "describe_producers": [
        (
            m.DescribeProducersRequest(
                topics=[m.DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])]
            ),
            TOPIC,
        )
    ],
    "describe_configs": [
        (
            m.DescribeConfigsRequest(
                resources=[
                    m.DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=kind, resource_name=name, configuration_keys=None
                    )
                ]
            ),
            code,
        )
        for kind, name, code in ((TOPIC_RESOURCE, "t", TOPIC), (BROKER_RESOURCE, "1", CLUSTER))
    ],
    "alter_configs": [
        (
            m.AlterConfigsRequest(
                resources=[m.AlterConfigsRequest.AlterConfigsResource(resource_type=kind, resource_name=name)]
            ),
            code,
        )
        for kind, name, code in ((TOPIC_RESOURCE, "t", TOPIC), (BROKER_RESOURCE, "1", CLUSTER))
    ],
    "incremental_alter_configs": [
        (
            m.IncrementalAlterConfigsRequest(
                resources=[
                    m.IncrementalAlterConfigsRequest.AlterConfigsResource(
                        resource_type=kind,
                        resource_name=name,
                        configs=[m.IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1")],
                    )
                ]
            ),
            code,
        )
        for kind, name, code in ((TOPIC_RESOURCE, "t", TOPIC), (BROKER_RESOURCE, "1", CLUSTER))
    ],
    "describe_log_dirs": [(m.DescribeLogDirsRequest(topics=None), CLUSTER)],
    "describe_acls": [
        (
            m.DescribeAclsRequest(
                resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1, resource_name_filter=None
            ),
            CLUSTER,
        )
    ],
    "create_acls": [
        (
            m.CreateAclsRequest(
                creations=[
                    m.CreateAclsRequest.AclCreation(
                        resource_type=2,
                        resource_name="t",
                        principal="User:nobody",
                        host="*",
                        operation=2,
                        permission_type=3,
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "delete_acls": [
        (
            m.DeleteAclsRequest(
                filters=[
                    m.DeleteAclsRequest.DeleteAclsFilter(
                        resource_type_filter=2, resource_name_filter="t", operation=1, permission_type=1
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "describe_client_quotas": [(m.DescribeClientQuotasRequest(), CLUSTER)],
    "alter_client_quotas": [
        (
            m.AlterClientQuotasRequest(
                entries=[
                    m.AlterClientQuotasRequest.EntryData(
                        entity=[m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="nobody")],
                        ops=[m.AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1.0)],
                    )
                ]
            ),
            CLUSTER,
        )
    ],
    "describe_user_scram_credentials": [(m.DescribeUserScramCredentialsRequest(users=None), CLUSTER)],
    "alter_user_scram_credentials": [
        (
            m.AlterUserScramCredentialsRequest(
                upsertions=[
                    m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                        name="root", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"x" * 32
                    )
                ]
            ),
            CLUSTER,
        )
    ],
}

REFUSED = sorted(name for name, cases in CASES.items() if cases[0][1] is not None)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with an authorizer, a topic t, a group g and a transactional id x."""
    with Broker(
        listeners="SASL_PLAINTEXT://127.0.0.1:0",
        users=USERS,
        acls=True,
        super_users="User:root",
        offsets_topic_num_partitions=1,
        transaction_state_log_num_partitions=1,
    ) as running:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": running.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "root",
                "sasl.password": USERS["root"],
                "transactional.id": "x",
                "log_level": 0,
            }
        )
        producer.init_transactions(HANG_S)
        producer.begin_transaction()
        producer.produce("t", b"x")
        producer.commit_transaction(HANG_S)
        yield running


@pytest.fixture(scope="module")
def nobody(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker) as client:
        assert client.log_in("nobody", USERS["nobody"]).error_code == 0
        yield client


def error_codes(found: Any) -> set[ErrorCode]:
    """Return all error codes of a response, at any depth."""
    if isinstance(found, dict):
        own = {ErrorCode(value) for key, value in found.items() if key.endswith("rrorCode")}
        return own.union(*(error_codes(value) for value in found.values()))
    return set().union(*(error_codes(value) for value in found)) if isinstance(found, list) else set()


VERSIONS = {api.module: range(api.lowest, api.highest + 1) for api in SERVED.values()}


def test_every_api_has_an_access_check() -> None:
    assert CASES.keys() == VERSIONS.keys()


@pytest.mark.parametrize("api", REFUSED)
def test_a_user_without_permissions_is_rejected(broker: Broker, nobody: RawClient, api: str) -> None:
    before = state(broker)
    asked = 0
    for request, code in CASES[api]:
        for version in VERSIONS[api]:
            try:
                request.encode(version=version)
            except EncodeError:  # this version cannot ask for that
                continue
            answered = nobody.ask(with_topic_id(broker, request, version), version)
            asked += 1
            if api == "describe_log_dirs" and version < 3:  # these versions have no error field
                assert answered.results == []
                continue
            codes = error_codes(answered.to_json(version=version))
            assert code in codes, (version, codes)
            assert codes <= {code, ErrorCode.NONE}, (version, codes)
    assert asked
    assert state(broker) == before


def with_topic_id(broker: Broker, request: Any, version: int) -> Any:
    """Return the request with t's id if it names topics by id."""
    if isinstance(request, m.ProduceRequest | m.FetchRequest) and version >= 13:
        request = copy.deepcopy(request)
        topics = request.topic_data if isinstance(request, m.ProduceRequest) else request.topics
        topics[0].topic_id = broker.call(lambda node: node.topics.get("t").topic_id)
    return request


def state(broker: Broker) -> Any:
    """Return the state that the requests above would change."""
    return broker.call(
        lambda node: (
            {topic.name: (len(topic.partitions), dict(topic.configs)) for topic in node.topics},
            list(node.transactions),
            list(node.security.acls),
            node.security.quotas.find([], strict=False),
            node.security.credentials.iterations(),
            [partition.opened.log_end_offset for topic in node.topics for partition in topic.partitions.values()],
        )
    )


def test_lists_contain_only_resources_the_user_may_describe(broker: Broker, nobody: RawClient) -> None:
    assert nobody.ask(m.ListTransactionsRequest(), 2).transaction_states == []
    assert nobody.ask(m.ListGroupsRequest(), 5).groups == []
    assert nobody.ask(m.MetadataRequest(topics=None), 12).topics == []
    with RawClient(broker) as root:
        root.log_in("root", USERS["root"])
        [listed] = root.ask(m.ListTransactionsRequest(), 2).transaction_states
        assert listed.transactional_id == "x"
        assert "t" in [topic.name for topic in root.ask(m.MetadataRequest(topics=None), 12).topics]


@pytest.mark.parametrize("api", [name for name in REFUSED if name not in ("delete_topics", "join_group")])
def test_a_user_with_all_permissions_is_allowed(broker: Broker, api: str) -> None:
    """The refusals above are the authorizer's, not something wrong with the requests. Two would disturb the others."""
    with RawClient(broker) as root:
        root.log_in("root", USERS["root"])
        for request, code in CASES[api]:
            versions = [v for v in reversed(VERSIONS[api]) if supports(request, v)]
            codes = error_codes(root.ask(request, versions[0]).to_json(version=versions[0]))
            assert code not in codes


def supports(request: Message, version: int) -> bool:
    try:
        request.encode(version=version)
    except EncodeError:
        return False
    return True


def allow(root: RawClient, kind: int, name: str, operation: int) -> None:
    """Let the user nobody do something."""
    entry = m.CreateAclsRequest.AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:nobody",
        host="*",
        operation=operation,
        permission_type=3,
    )
    assert root.ask(m.CreateAclsRequest(creations=[entry]), 3).results[0].error_code == 0


def test_two_phase_commit_needs_a_permission_of_its_own() -> None:
    settings: dict[str, Any] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "acls": True,
        "super_users": "User:root",
        "users": USERS,
        "unstable_api_versions_enable": True,
        "transaction_two_phase_commit_enable": True,
    }
    with Broker(**settings) as broker, RawClient(broker) as root, RawClient(broker) as client:
        root.log_in("root", USERS["root"])
        client.log_in("nobody", USERS["nobody"])
        request = m.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000, enable2_pc=True)
        for allowed, code in ((Operation.WRITE, TRANSACTION), (Operation.TWO_PHASE_COMMIT, ErrorCode.NONE)):
            assert client.ask(request, 6).error_code == TRANSACTION
            allow(root, ResourceType.TRANSACTIONAL_ID, "x", allowed)
            assert client.ask(request, 6).error_code == code


@pytest.mark.parametrize("version", [0, 11, 14, 15, 17])
def test_followers_need_cluster_permissions_and_consumers_topic_permissions(version: int) -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "acls": True, "super_users": "User:root", "users": USERS}
    fetch = m.FetchRequest
    with Broker(**settings) as broker, RawClient(broker) as root, RawClient(broker) as client:
        root.log_in("root", USERS["root"])
        client.log_in("nobody", USERS["nobody"])
        topic = m.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        topic_id = root.ask(m.CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics[0].topic_id
        asked = fetch.FetchTopic(topic="t", topic_id=topic_id, partitions=[fetch.FetchPartition(partition=0)])

        def outcome(replica_id: int) -> int:
            state = fetch.ReplicaState(replica_id=replica_id)
            in_state = version >= 15
            request = fetch(
                replica_id=-1 if in_state else replica_id,
                replica_state=state if in_state else fetch.ReplicaState(),
                topics=[asked],
            )
            return int(client.ask(request, version).responses[0].partitions[0].error_code)

        assert outcome(-1) == outcome(7) == TOPIC
        allow(root, TOPIC_RESOURCE, "t", 3)  # READ
        assert (outcome(-1), outcome(7)) == (0, TOPIC)
        allow(root, 4, "kafka-cluster", 9)  # CLUSTER_ACTION
        assert outcome(7) == 0
