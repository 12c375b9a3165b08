"""Requests of every API of Kafka 4.4.0, and what a broker responds to them.

`tests/data/api-outcomes-4.4.0.json.gz` holds the outcomes of Kafka 4.4.0: a response without what differs from run to
run, or CLOSED. `tests/interop/test_apis_like_kafka.py` compares them with a running Kafka, and writes them.
"""

from __future__ import annotations

import gzip
import json
import typing
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from kwire.identifiers import render_uuid
from kwire.messages import registry
from kwire.messages.base import ZERO_UUID, Message
from kwire.records import BatchBuilder
from tests.broker.wire import RawClient
from tests.waiting import until

__all__ = ["CASES", "CLOSED", "KAFKA", "OLD_FEATURES", "Case", "outcomes", "read_recorded", "write_recorded"]

RECORDED = Path(__file__).parents[1] / "data" / "api-outcomes-4.4.0.json.gz"
KAFKA, OLD_FEATURES = "4.4.0", "3.9"
"""The recorded release; the release whose features a new broker of ours has."""
CLOSED = "closed"
"""The broker closed the connection without a response."""
RECORD_MS = 1_760_000_000_000
VARYING = frozenset(
    {"host", "port", "throttleTimeMs", "clientHost", "logDir", "totalBytes", "usableBytes", "finalizedFeaturesEpoch"}
)
"""Fields whose values depend on the machine or the run."""


class Case(NamedTuple):
    """A request. fields: "T" is the id of the topic t, "C" that of the cluster; see `build`."""

    name: str
    api: str
    version: int
    fields: dict[str, Any]


def case(name: str, api: str, version: int, **fields: Any) -> Case:
    return Case(f"{api} {version}: {name}", api, version, fields)


NOWHERE = "AAAAAAAAAAAAAAAAAAAATQ"
ID, MISSING, RECORDS, MEMBER = "T", "missing", "records", "AAAAAAAAAAAAAAAAAAAAWQ"
SOFTWARE = {"client_software_name": "raw", "client_software_version": "1"}
LISTENER = {"name": "CONTROLLER", "host": "localhost", "port": 9}
VOTER = {"cluster_id": "C", "voter_id": 2, "voter_directory_id": NOWHERE, "listeners": [LISTENER]}
OLD_VOTER = {"cluster_id": "C", "voter_id": 1, "voter_directory_id": NOWHERE}


def partitions(key: str, *indexes: int, **others: Any) -> list[dict[str, Any]]:
    return [{key: index, **others} for index in indexes]


CASES = [
    # version negotiation
    case("no expectation", "ApiVersions", 5, **SOFTWARE),
    case("this broker", "ApiVersions", 5, **SOFTWARE, cluster_id="C", node_id=1),
    case("another cluster", "ApiVersions", 5, **SOFTWARE, cluster_id="other", node_id=1),
    case("another node", "ApiVersions", 5, **SOFTWARE, cluster_id="C", node_id=2),
    case("no node", "ApiVersions", 5, **SOFTWARE, cluster_id="C"),
    case("no cluster", "ApiVersions", 5, **SOFTWARE, node_id=1),
    case("no software and another cluster", "ApiVersions", 5, cluster_id="other", node_id=1),
    case("empty cluster", "ApiVersions", 5, **SOFTWARE, cluster_id="", node_id=1),
    case("no expectation", "ApiVersions", 4, **SOFTWARE),
    case("no expectation", "ApiVersions", 3, **SOFTWARE),
    case("no expectation", "ApiVersions", 0),
    case("SASL on a plain listener", "SaslHandshake", 1, mechanism="PLAIN"),
    case("SASL on a plain listener", "SaslAuthenticate", 2),
    # records
    case(
        "some",
        "Produce",
        13,
        acks=1,
        timeout_ms=1000,
        topic_data=[
            {"topic_id": topic, "partition_data": partitions("index", 0, 9, records=RECORDS)} for topic in (ID, NOWHERE)
        ],
    ),
    case(
        "unknown acks",
        "Produce",
        13,
        acks=7,
        timeout_ms=1000,
        topic_data=[{"topic_id": ID, "partition_data": partitions("index", 0, records=RECORDS)}],
    ),
    case(
        "some",
        "Fetch",
        18,
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[
            {"topic_id": topic, "partitions": partitions("partition", 0, 9, partition_max_bytes=1 << 20)}
            for topic in (ID, NOWHERE)
        ],
    ),
    case("unknown session", "Fetch", 18, session_id=7, session_epoch=7),
    *(
        case(
            f"timestamp {timestamp}",
            "ListOffsets",
            11,
            replica_id=-1,
            topics=[
                {"name": name, "partitions": partitions("partition_index", 0, 9, timestamp=timestamp)}
                for name in ("t", MISSING)
            ],
        )
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, RECORD_MS)
    ),
    case(
        "some",
        "OffsetForLeaderEpoch",
        4,
        replica_id=-2,
        topics=[
            {"topic": name, "partitions": partitions("partition", 0, 9, leader_epoch=0)} for name in ("t", MISSING)
        ],
    ),
    case(
        "some",
        "DeleteRecords",
        2,
        timeout_ms=1000,
        topics=[
            {"name": name, "partitions": partitions("partition_index", 0, 9, offset=99)} for name in ("t", MISSING)
        ],
    ),
    # topics and the cluster
    case(
        "by name",
        "Metadata",
        13,
        topics=[{"name": "t"}, {"name": MISSING}, {"name": "in/valid"}],
        allow_auto_topic_creation=False,
    ),
    case("by id", "Metadata", 13, topics=[{"topic_id": ID, "name": None}, {"topic_id": NOWHERE, "name": None}]),
    case("this", "DescribeCluster", 2),
    case("of controllers", "DescribeCluster", 2, endpoint_type=2),
    case("some", "DescribeTopicPartitions", 0, topics=[{"name": "t"}, {"name": MISSING}], response_partition_limit=9),
    case(
        "refused",
        "CreateTopics",
        7,
        timeout_ms=1000,
        topics=[
            {"name": "t", "num_partitions": 1, "replication_factor": 1},
            {"name": "in/valid", "num_partitions": 1, "replication_factor": 1},
            {"name": "none", "num_partitions": 0, "replication_factor": 1},
            {"name": "two", "num_partitions": 1, "replication_factor": 2},
            {"name": "", "num_partitions": 1, "replication_factor": 1},
            {"name": "c", "num_partitions": 1, "replication_factor": 1, "configs": [{"name": "a", "value": "b"}]},
        ],
    ),
    case(
        "refused", "DeleteTopics", 6, timeout_ms=1000, topics=[{"name": MISSING}, {"name": None, "topic_id": NOWHERE}]
    ),
    case(
        "refused",
        "CreatePartitions",
        3,
        timeout_ms=1000,
        topics=[{"name": "t", "count": 1, "assignments": None}, {"name": MISSING, "count": 3, "assignments": None}],
    ),
    case("refused", "ElectLeaders", 2, topic_partitions=[{"topic": "t", "partitions": [0, 9]}], timeout_ms=1000),
    case(
        "refused",
        "AlterPartitionReassignments",
        1,
        topics=[{"name": "t", "partitions": partitions("partition_index", 0, 9, replicas=[7])}],
    ),
    case("all", "ListPartitionReassignments", 0, topics=None),
    case("another partition", "DescribeQuorum", 2, topics=[{"topic_name": "t", "partitions": [{}]}]),
    case("a directory that is missing", "AlterReplicaLogDirs", 2, dirs=[{"path": "/none", "topics": []}]),
    case("nothing", "DescribeLogDirs", 5, topics=[]),
    case(
        "some", "DescribeProducers", 0, topics=[{"name": name, "partition_indexes": [0, 9]} for name in ("t", MISSING)]
    ),
    # configs, features, quotas, security
    case(
        "refused",
        "DescribeConfigs",
        4,
        resources=[
            {"resource_type": kind, "resource_name": name, "configuration_keys": []}
            for kind, name in ((2, MISSING), (4, "9"))
        ],
    ),
    case(
        "of an unknown type",
        "DescribeConfigs",
        4,
        resources=[
            {"resource_type": kind, "resource_name": "t", "configuration_keys": ["retention.bytes"]} for kind in (2, 99)
        ],
    ),
    case(
        "some",
        "DescribeConfigs",
        4,
        resources=[{"resource_type": 2, "resource_name": "t", "configuration_keys": ["retention.bytes"]}],
    ),
    case("refused", "AlterConfigs", 2, resources=[{"resource_type": 2, "resource_name": MISSING, "configs": []}]),
    case(
        "refused",
        "IncrementalAlterConfigs",
        1,
        resources=[
            {"resource_type": 2, "resource_name": name, "configs": [{"name": "retention.ms", "value": "x"}]}
            for name in ("t", MISSING)
        ],
    ),
    case("of an unknown type", "ListConfigResources", 1, resource_types=[99]),
    case("topics", "ListConfigResources", 1, resource_types=[2]),
    case(
        "an unknown feature",
        "UpdateFeatures",
        2,
        timeout_ms=1000,
        feature_updates=[{"feature": "unknown", "max_version_level": 1, "upgrade_type": 1}],
    ),
    case("all", "DescribeClientQuotas", 1),
    case(
        "an unknown quota",
        "AlterClientQuotas",
        1,
        entries=[
            {
                "entity": [{"entity_type": "user", "entity_name": "a"}],
                "ops": [{"key": "unknown", "value": 1.0, "remove": False}],
            }
        ],
    ),
    case("an unknown user", "DescribeUserScramCredentials", 0, users=[{"name": "nobody"}]),
    case("an unknown user", "AlterUserScramCredentials", 0, deletions=[{"name": "nobody", "mechanism": 1}]),
    case("without an authorizer", "DescribeAcls", 3, resource_type_filter=1, operation=1, permission_type=1),
    case("without an authorizer", "CreateAcls", 3, creations=[]),
    case("without an authorizer", "DeleteAcls", 3, filters=[]),
    case("without a key", "CreateDelegationToken", 3, renewers=[]),
    case("without a key", "RenewDelegationToken", 2),
    case("without a key", "ExpireDelegationToken", 2),
    case("without a key", "DescribeDelegationToken", 3),
    # the quorum
    case("of another cluster", "AddRaftVoter", 1, **{**VOTER, "cluster_id": "other"}),
    case("of no cluster", "AddRaftVoter", 1, **{**VOTER, "cluster_id": None}),
    case("without a directory", "AddRaftVoter", 1, **{**VOTER, "voter_directory_id": ZERO_UUID}),
    case("a negative id", "AddRaftVoter", 1, **{**VOTER, "voter_id": -1}),
    case("without an endpoint", "AddRaftVoter", 1, **{**VOTER, "listeners": []}),
    case("of another listener", "AddRaftVoter", 1, **{**VOTER, "listeners": [{**LISTENER, "name": "OTHER"}]}),
    case("with static voters", "AddRaftVoter", 1, **VOTER),
    case("with static voters", "AddRaftVoter", 0, **VOTER),
    case("of another cluster", "RemoveRaftVoter", 0, **{**OLD_VOTER, "cluster_id": "other"}),
    case("of no cluster", "RemoveRaftVoter", 0, **{**OLD_VOTER, "cluster_id": None}),
    case("without a directory", "RemoveRaftVoter", 0, **{**OLD_VOTER, "voter_directory_id": ZERO_UUID}),
    case("a negative id", "RemoveRaftVoter", 0, **{**OLD_VOTER, "voter_id": -1}),
    case("with static voters", "RemoveRaftVoter", 0, **OLD_VOTER),
    *(case(f"broker {broker}", "UnregisterBroker", 0, broker_id=broker) for broker in (-1, 2)),
    *(case(f"controller {each}", "UnregisterController", 0, controller_id=each) for each in (-1, 0, 1, 2)),
    # groups
    *(case(f"type {kind}", "FindCoordinator", 6, key_type=kind, coordinator_keys=["g"]) for kind in (0, 1, 2, 9)),
    case("no group id", "JoinGroup", 9, session_timeout_ms=10_000, protocol_type="consumer"),
    case("a short session", "JoinGroup", 9, group_id="g", session_timeout_ms=1, protocol_type="consumer"),
    case(
        "no member id",
        "JoinGroup",
        9,
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
        member_id="unknown",
    ),
    case("of an unknown member", "SyncGroup", 5, group_id="g", generation_id=1, member_id="m"),
    case("of an unknown member", "Heartbeat", 4, group_id="g", generation_id=1, member_id="m"),
    case("of an unknown member", "LeaveGroup", 5, group_id="g", members=[{"member_id": "m"}]),
    case("an unknown group", "DescribeGroups", 6, groups=["nothing", ""]),
    case(
        "of a group without members",
        "OffsetCommit",
        10,
        group_id="g",
        topics=[
            {"topic_id": topic, "partitions": partitions("partition_index", 0, committed_offset=1)}
            for topic in (ID, NOWHERE)
        ],
    ),
    case(
        "of an unknown member",
        "OffsetCommit",
        10,
        group_id="g",
        generation_id_or_member_epoch=1,
        member_id="m",
        topics=[{"topic_id": ID, "partitions": partitions("partition_index", 0, committed_offset=1)}],
    ),
    case(
        "some",
        "OffsetFetch",
        10,
        groups=[
            {"group_id": "g", "topics": [{"topic_id": ID, "partition_indexes": [0, 1]}]},
            {"group_id": "g", "topics": None},
            {"group_id": "nothing", "topics": None},
            {"group_id": "nothing", "member_id": "m", "member_epoch": 1, "topics": None},
        ],
    ),
    case("Empty", "ListGroups", 5, states_filter=["Empty"]),
    case("of no such type", "ListGroups", 5, types_filter=["unknown"]),
    case(
        "of an unknown group",
        "OffsetDelete",
        0,
        group_id="nothing",
        topics=[{"name": "t", "partitions": [{"partition_index": 0}]}],
    ),
    case("unknown and empty ones", "DeleteGroups", 3, groups_names=["nothing", ""]),
    case("no group id", "ConsumerGroupHeartbeat", 1, member_id="m", subscribed_topic_names=["t"]),
    case("an unknown member", "ConsumerGroupHeartbeat", 1, group_id="c", member_id="m", member_epoch=3),
    case("an unknown group", "ConsumerGroupDescribe", 1, group_ids=["nothing", "g", ""]),
    case("no group id", "ShareGroupHeartbeat", 1, member_id="m", subscribed_topic_names=["t"]),
    case("an unknown group", "ShareGroupDescribe", 1, group_ids=["nothing", "g", ""]),
    case("an unknown session", "ShareFetch", 2, group_id="s", member_id=MEMBER, share_session_epoch=3),
    case("an unknown session", "ShareAcknowledge", 2, group_id="s", member_id=MEMBER, share_session_epoch=3),
    case("an unknown group", "DescribeShareGroupOffsets", 1, groups=[{"group_id": "nothing", "topics": None}]),
    case("an unknown group", "DeleteShareGroupOffsets", 0, group_id="nothing", topics=[{"topic_name": "t"}]),
    *(case("no group id", "StreamsGroupHeartbeat", version, member_id="m") for version in (0, 1)),
    case(
        "a member",
        "StreamsGroupHeartbeat",
        1,
        group_id="s",
        member_id="m",
        process_id="p",
        topology={"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]},
    ),
    case("no groups", "StreamsGroupDescribe", 0, group_ids=[]),
    *(
        case(
            "groups",
            "StreamsGroupDescribe",
            version,
            group_ids=["nothing", "g", ""],
            include_authorized_operations=True,
        )
        for version in (0, 1)
    ),
    case("a topology", "StreamsGroupTopologyDescriptionUpdate", 0, group_id="s", member_id="m"),
    # transactions
    case("no transactional id", "InitProducerId", 5, transactional_id="", transaction_timeout_ms=1000),
    case("no timeout", "InitProducerId", 5, transactional_id="x", transaction_timeout_ms=0),
    case("a long timeout", "InitProducerId", 5, transactional_id="x", transaction_timeout_ms=2**31 - 1),
    case("an id without epoch", "InitProducerId", 5, transactional_id="x", transaction_timeout_ms=1, producer_id=3),
    case("an unstable version", "InitProducerId", 6, transactional_id="x", transaction_timeout_ms=1000),
    case("an unknown id", "AddOffsetsToTxn", 4, transactional_id="y", producer_id=3, group_id="g"),
    case("an unknown id", "EndTxn", 5, transactional_id="y", producer_id=3, committed=True),
    case(
        "an unknown id",
        "AddPartitionsToTxn",
        5,
        transactions=[
            {
                "transactional_id": "y",
                "producer_id": 3,
                "producer_epoch": 0,
                "topics": [{"name": "t", "partitions": [0]}],
            }
        ],
    ),
    case(
        "an unknown id",
        "TxnOffsetCommit",
        6,
        transactional_id="y",
        group_id="g",
        producer_id=3,
        topics=[{"topic_id": ID, "name": "t", "partitions": partitions("partition_index", 0, committed_offset=1)}],
    ),
    case("nothing", "WriteTxnMarkers", 2),
    case("unknown ids", "DescribeTransactions", 0, transactional_ids=["y", ""]),
    case("all", "ListTransactions", 2),
    case("of a wrong pattern", "ListTransactions", 2, transactional_id_pattern="("),
    # limits of Kafka's readers since 4.4
    *(
        case(
            f"{count} unknown fields", "ListGroups", 5, unknown_tagged_fields=[(99 + tag, b"") for tag in range(count)]
        )
        for count in (10_000, 10_001)
    ),
    case("1,000,001 groups", "DescribeGroups", 6, groups=[""] * 1_000_001),
    # requests of brokers and controllers, which a broker's listener refuses
    case("on a broker's listener", "UpdateRaftVoter", 0, cluster_id="C", voter_id=1),
    *(
        case("on a broker's listener", api, version)
        for api, version in {
            "Vote": 2,
            "BeginQuorumEpoch": 1,
            "EndQuorumEpoch": 1,
            "AlterPartition": 3,
            "Envelope": 0,
            "FetchSnapshot": 1,
            "BrokerRegistration": 4,
            "BrokerHeartbeat": 2,
            "AllocateProducerIds": 0,
            "ControllerRegistration": 0,
            "AssignReplicasToDirs": 0,
        }.items()
    ),
    *(case("removed in Kafka 4", api, 0) for api in ("LeaderAndIsr", "StopReplica", "UpdateMetadata")),
    case("removed in Kafka 4", "ControlledShutdown", 1),
]


def build(each: Case, names: dict[str, Any]) -> Message:
    """Return the request of a case. names: what the words in its fields stand for."""

    def struct(cls: type, fields: dict[str, Any]) -> Any:
        kinds = {field.name: field.type for field in msgspec.structs.fields(cls)}
        return cls(**{name: value(kinds[name], given) for name, given in fields.items()})

    def value(kind: Any, given: Any) -> Any:
        if isinstance(given, dict):
            return struct(struct_in(kind), given)
        if isinstance(given, list):
            return [value(kind, each) for each in given]
        return names.get(given, given) if isinstance(given, str) else given

    request: Message = struct(registry.get(f"{each.api}Request"), each.fields)
    return request


def struct_in(kind: Any) -> type:
    """Return the class of messages in an annotation such as list[X] | None."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next(found for each in typing.get_args(kind) if (found := struct_in(each)) is not type(None))


def batch() -> bytes:
    """Return a batch of one record."""
    builder = BatchBuilder()
    builder.append(b"k", b"v", timestamp=RECORD_MS)
    return builder.build()


def send(broker: Any, request: Message, version: int) -> Message | None:
    """Send a request on a connection of its own; returns the response, None if there is none."""
    with RawClient(broker) as client:
        client.send(request, version)
        try:
            return client.receive()
        except (AssertionError, ConnectionResetError):
            return None


def prepare(broker: Any, levels: dict[str, int]) -> dict[str, Any]:
    """Set features, create the topic t and the topics of coordinators; returns what words of cases stand for."""
    updates = [
        {"feature": name, "max_version_level": level, "upgrade_type": 1 if level else 2}
        for name, level in levels.items()
    ]
    with RawClient(broker) as client:

        def ask(api: str, version: int, **fields: Any) -> Any:
            return client.ask(build(Case("", api, version, fields), {}), version)

        until(lambda: ask("ApiVersions", 3, **SOFTWARE).finalized_features_epoch >= 0)
        assert not updates or ask("UpdateFeatures", 1, timeout_ms=9000, feature_updates=updates).error_code == 0
        topic = {"name": "t", "num_partitions": 2, "replication_factor": 1}
        until(lambda: ask("CreateTopics", 7, timeout_ms=9000, topics=[topic]).topics[0].error_code in (0, 36))
        until(lambda: ask("Metadata", 12, topics=[{"name": "t"}]).topics[0].partitions[1:] != [])
        for kind in (0, 1):
            find = {"key_type": kind, "coordinator_keys": ["g"]}
            until(lambda find=find: ask("FindCoordinator", 6, **find).coordinators[0].error_code == 0)
        until(lambda: ask("ListGroups", 5).error_code == ask("ListTransactions", 2).error_code == 0)
        metadata = ask("Metadata", 12, topics=[{"name": "t"}])
        return {
            ID: metadata.topics[0].topic_id,
            "C": metadata.cluster_id,
            NOWHERE: UUID(int=77),
            RECORDS: batch(),
        }


def outcomes(broker: Any, levels: dict[str, int] | None = None) -> dict[str, Any]:
    """Send all requests to a new broker; returns responses or CLOSED by name. levels: of features, set before."""
    names = prepare(broker, levels or {})
    shown = {render_uuid(names[ID]): ID, names["C"]: "C"}
    seen = {}
    for each in CASES:
        response = send(broker, build(each, names), each.version)
        seen[each.name] = CLOSED if response is None else plain(response, each.version, shown)
    assert len(seen) == len(CASES)
    return seen


def plain(response: Message, version: int, shown: dict[str, str]) -> Any:
    """Return a response in JSON without what differs between brokers and runs, its lists sorted."""
    text = json.dumps(response.to_json(version=version))
    for value, name in shown.items():
        text = text.replace(value, name)

    def normal(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: normal(each) for key, each in sorted(value.items()) if key not in VARYING}
        if isinstance(value, list):
            return sorted(map(normal, value), key=lambda each: json.dumps(each, sort_keys=True))
        return value

    return normal(json.loads(text))


def read_recorded() -> dict[str, dict[str, Any]]:
    """Return the outcomes of Kafka 4.4.0 by the release whose features the cluster has, then by name."""
    found: dict[str, Any] = json.loads(gzip.decompress(RECORDED.read_bytes()))
    return found


def write_recorded(outcomes: dict[str, dict[str, Any]]) -> None:
    """Replace the recorded outcomes."""
    text = json.dumps(outcomes, indent=0, sort_keys=True, ensure_ascii=False)
    RECORDED.write_bytes(gzip.compress(text.encode(), mtime=0))
