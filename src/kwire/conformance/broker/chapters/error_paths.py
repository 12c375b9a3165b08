"""Error paths: each version of each API with an argument that does not exist.

The response has the format of this version, and the errors and defaults of the release.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kwire import records
from kwire.conformance.broker.bench import Address, Bench
from kwire.conformance.broker.chapters.data import WAIT_MS
from kwire.conformance.broker.chapters.tables import api_versions, code_of, released
from kwire.conformance.broker.checks import Allowed, BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import request

__all__ = ["ROWS", "Row", "chapter"]

chapter = Chapter("Error paths in every version")
NO_ID = uuid.UUID(int=0x1234567890ABCDEF)
NO_AUTHORIZER = ("no authorizer",)
NO_CREDENTIALS = ("no credentials",)
STREAMS_GROUPS = ("streams groups",)

Values = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: an API, the argument in words, and the fields of the request.

    at: which broker gets it: "any", "controller", "group" (the coordinator of the group that values() names), "txn".
    drop: fields of the response that depend on the cluster.
    """

    api: str
    argument: str
    values: Callable[[Bench, int], Values]
    at: str = "any"
    drop: frozenset[str] = frozenset()
    needs: tuple[str, ...] = ()
    allowed: tuple[Allowed, ...] = ()


def _batch(version: int) -> bytes:
    """Return a batch of one record, of the newest magic that a version of Produce takes."""
    magic = 2 if version >= 3 else 1 if version == 2 else 0
    builder = records.BatchBuilder(magic=magic)
    builder.append(b"key", b"value", timestamp=1_760_000_000_000 if magic else -1)
    return builder.build()


def _named(bench: Bench) -> Values:
    return {"name": bench.name("missing")}


def _resource(bench: Bench) -> Values:
    return {"resource_type": 2, "resource_name": bench.name("missing")}


def _member(bench: Bench) -> Values:
    return {"group_id": bench.name("missing"), "member_id": "nobody", "generation_id": 1}


def _txn(bench: Bench) -> Values:
    return {"transactional_id": bench.name("missing"), "producer_id": 4242, "producer_epoch": 0}


def _acl(bench: Bench) -> Values:
    return {
        "resource_type_filter": 2,
        "resource_name_filter": bench.name("missing"),
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }


def _new_acl(bench: Bench) -> Values:
    name = bench.name("missing")
    fields = {"resource_type": 2, "resource_name": name, "resource_pattern_type": 3, "host": "*"}
    return {**fields, "principal": f"User:{name}", "operation": 3, "permission_type": 3}


def _add_to_txn(bench: Bench, version: int) -> Values:
    txn, topics = _txn(bench), [{**_named(bench), "partitions": [0]}]
    if version >= 4:
        return {"transactions": [{**txn, "verify_only": False, "topics": topics}]}
    return {**{f"v3_and_below_{key}": value for key, value in txn.items()}, "v3_and_below_topics": topics}


def _delete_topics(bench: Bench, version: int) -> Values:
    return {"topics": [{"topic_id": NO_ID}], "topic_names": [bench.name("missing")], "timeout_ms": 5000}


def _leave(bench: Bench, version: int) -> Values:
    return {"group_id": bench.name("missing"), "member_id": "nobody", "members": [{"member_id": "nobody"}]}


def _offset_fetch(bench: Bench, version: int) -> Values:
    group, topic = bench.name("missing"), {**_named(bench), "partition_indexes": [0]}
    return {
        "group_id": group,
        "topics": [topic],
        "groups": [{"group_id": group, "topics": [{**topic, "topic_id": NO_ID}]}],
    }


def _find(bench: Bench, version: int) -> Values:
    return {"key": bench.name("missing"), "key_type": 9, "coordinator_keys": [bench.name("missing")]}


def _commit(bench: Bench, version: int) -> Values:
    partition = {"partition_index": 0, "committed_offset": 1, "committed_metadata": None}
    topic = {"name": bench.name("missing"), "topic_id": NO_ID, "partitions": [partition]}
    member = {"member_id": "nobody", "generation_id_or_member_epoch": 1}
    return {"group_id": bench.name("missing"), **member, "topics": [topic]}


def _quota(bench: Bench, version: int) -> Values:
    entity = [{"entity_type": "client-id", "entity_name": bench.name("missing")}]
    return {"entries": [{"entity": entity, "ops": [{"key": "no_such_quota", "value": 1.0}]}], "validate_only": True}


def _scram(bench: Bench, version: int) -> Values:
    return {"deletions": [{"name": bench.name("missing"), "mechanism": 1}]}


def _share_partition(bench: Bench) -> Values:
    return {"topic_id": NO_ID, "partitions": [{"partition_index": 0, "partition_max_bytes": 1024}]}


TOPIC, PARTITION, GROUP = (
    "a topic that does not exist",
    "a partition that does not exist",
    "a group that does not exist",
)
TRANSACTION = "a transactional id that does not exist"

ROWS = (
    Row(
        api="Produce",
        argument=TOPIC,
        values=lambda b, v: {
            "acks": 1,
            "timeout_ms": 5000,
            "topic_data": [
                {"name": b.name("missing"), "topic_id": NO_ID, "partition_data": [{"index": 0, "records": _batch(v)}]}
            ],
        },
    ),
    Row(
        api="Fetch",
        argument=TOPIC,
        values=lambda b, v: {
            "max_wait_ms": WAIT_MS,
            "topics": [
                {
                    "topic": b.name("missing"),
                    "topic_id": NO_ID,
                    "partitions": [{"partition": 0, "partition_max_bytes": 1024}],
                }
            ],
        },
    ),
    Row(
        api="ListOffsets",
        argument=TOPIC,
        values=lambda b, v: {
            "replica_id": -1,
            "topics": [{**_named(b), "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        },
    ),
    Row(api="Metadata", argument="a name with a slash", values=lambda b, v: {"topics": [{"name": b.name("a/b")}]}),
    Row(api="OffsetCommit", argument=GROUP, values=_commit, at="group"),
    Row(
        api="OffsetFetch",
        argument=GROUP,
        values=_offset_fetch,
        at="group",
        allowed=(
            Allowed(
                path="topics.0.partitions.0.errorCode",
                values=("UNKNOWN_TOPIC_OR_PARTITION",),
                reason="version 0 as with ZooKeeper, whose offsets it read",
            ),
        ),
    ),
    Row(api="FindCoordinator", argument="an unknown type of key", values=_find),
    Row(
        api="JoinGroup",
        argument="a session timeout of 1 ms",
        values=lambda b, v: {
            "group_id": b.name("missing"),
            "session_timeout_ms": 1,
            "rebalance_timeout_ms": 1,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
        at="group",
    ),
    Row(api="Heartbeat", argument=GROUP, values=lambda b, v: _member(b), at="group"),
    Row(api="LeaveGroup", argument=GROUP, values=_leave, at="group"),
    Row(api="SyncGroup", argument=GROUP, values=lambda b, v: _member(b), at="group"),
    Row(api="DescribeGroups", argument=GROUP, values=lambda b, v: {"groups": [b.name("missing")]}, at="group"),
    Row(
        api="ListGroups",
        argument="a state that no group has",
        values=lambda b, v: {"states_filter": ["NoSuchState"], "types_filter": []},
        drop=frozenset({"groups"}),
    ),
    Row(
        api="CreateTopics",
        argument="a name with a slash, validated only",
        values=lambda b, v: {
            "topics": [{"name": b.name("a/b"), "num_partitions": 1, "replication_factor": 1}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
        at="controller",
    ),
    Row(api="DeleteTopics", argument=TOPIC, values=_delete_topics, at="controller"),
    Row(
        api="DeleteRecords",
        argument=TOPIC,
        values=lambda b, v: {
            "topics": [{**_named(b), "partitions": [{"partition_index": 0, "offset": 1}]}],
            "timeout_ms": 1000,
        },
    ),
    Row(
        api="InitProducerId",
        argument="an empty transactional id",
        values=lambda b, v: {"transactional_id": "", "transaction_timeout_ms": 1000},
    ),
    Row(
        api="OffsetForLeaderEpoch",
        argument=TOPIC,
        values=lambda b, v: {
            "replica_id": -1,
            "topics": [{"topic": b.name("missing"), "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        },
    ),
    Row(api="AddPartitionsToTxn", argument=TRANSACTION, values=_add_to_txn, at="txn"),
    Row(
        api="AddOffsetsToTxn",
        argument=TRANSACTION,
        values=lambda b, v: {**_txn(b), "group_id": b.name("missing")},
        at="txn",
    ),
    Row(api="EndTxn", argument=TRANSACTION, values=lambda b, v: {**_txn(b), "committed": True}, at="txn"),
    Row(
        api="WriteTxnMarkers",
        argument=TOPIC,
        values=lambda b, v: {
            "markers": [
                {
                    "producer_id": 4242,
                    "producer_epoch": 0,
                    "transaction_result": True,
                    "topics": [{**_named(b), "partition_indexes": [0]}],
                }
            ]
        },
    ),
    Row(
        api="TxnOffsetCommit",
        argument=TRANSACTION,
        values=lambda b, v: {**_txn(b), **_commit(b, v)},
        at="group",
    ),
    Row(api="DescribeAcls", argument="no authorizer", values=lambda b, v: _acl(b), needs=NO_AUTHORIZER),
    Row(
        api="CreateAcls",
        argument="no authorizer",
        values=lambda b, v: {"creations": [_new_acl(b)]},
        at="controller",
        needs=NO_AUTHORIZER,
    ),
    Row(
        api="DeleteAcls",
        argument="no authorizer",
        values=lambda b, v: {"filters": [_acl(b)]},
        at="controller",
        needs=NO_AUTHORIZER,
    ),
    Row(
        api="DescribeConfigs",
        argument=TOPIC,
        values=lambda b, v: {"resources": [{**_resource(b), "configuration_keys": None}]},
    ),
    Row(
        api="AlterConfigs",
        argument=TOPIC,
        values=lambda b, v: {
            "resources": [{**_resource(b), "configs": [{"name": "retention.ms", "value": "1"}]}],
            "validate_only": True,
        },
        at="controller",
    ),
    Row(
        api="AlterReplicaLogDirs",
        argument="a log directory that does not exist",
        values=lambda b, v: {"dirs": [{"path": "/" + b.name("missing"), "topics": [{**_named(b), "partitions": [0]}]}]},
    ),
    Row(
        api="DescribeLogDirs",
        argument=TOPIC,
        values=lambda b, v: {"topics": [{"topic": b.name("missing"), "partitions": [0]}]},
        drop=frozenset({"logDir", "totalBytes", "usableBytes", "topics"}),
    ),
    Row(
        api="CreatePartitions",
        argument=TOPIC,
        values=lambda b, v: {
            "topics": [{**_named(b), "count": 2, "assignments": None}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
        at="controller",
    ),
    Row(
        api="CreateDelegationToken",
        argument="no authentication",
        needs=NO_CREDENTIALS,
        values=lambda b, v: {"renewers": [], "max_lifetime_ms": 1000},
        at="controller",
    ),
    Row(
        api="RenewDelegationToken",
        argument="no authentication",
        needs=NO_CREDENTIALS,
        values=lambda b, v: {"hmac": b"\1" * 8, "renew_period_ms": 1000},
        at="controller",
    ),
    Row(
        api="ExpireDelegationToken",
        argument="no authentication",
        needs=NO_CREDENTIALS,
        values=lambda b, v: {"hmac": b"\1" * 8, "expiry_time_period_ms": 1000},
        at="controller",
    ),
    Row(
        api="DescribeDelegationToken",
        argument="no authentication",
        needs=NO_CREDENTIALS,
        values=lambda b, v: {"owners": []},
    ),
    Row(api="DeleteGroups", argument=GROUP, values=lambda b, v: {"groups_names": [b.name("missing")]}, at="group"),
    Row(
        api="ElectLeaders",
        argument=TOPIC,
        values=lambda b, v: {"topic_partitions": [{"topic": b.name("missing"), "partitions": [0]}], "timeout_ms": 5000},
        at="controller",
    ),
    Row(
        api="IncrementalAlterConfigs",
        argument=TOPIC,
        values=lambda b, v: {
            "resources": [{**_resource(b), "configs": [{"name": "retention.ms", "config_operation": 0, "value": "1"}]}],
            "validate_only": True,
        },
        at="controller",
    ),
    Row(
        api="AlterPartitionReassignments",
        argument=TOPIC,
        values=lambda b, v: {
            "topics": [{**_named(b), "partitions": [{"partition_index": 0, "replicas": None}]}],
            "timeout_ms": 5000,
        },
        at="controller",
    ),
    Row(
        api="ListPartitionReassignments",
        argument=TOPIC,
        values=lambda b, v: {"topics": [{**_named(b), "partition_indexes": [0]}], "timeout_ms": 5000},
        at="controller",
    ),
    Row(
        api="OffsetDelete",
        argument=GROUP,
        values=lambda b, v: {
            "group_id": b.name("missing"),
            "topics": [{**_named(b), "partitions": [{"partition_index": 0}]}],
        },
        at="group",
    ),
    Row(
        api="DescribeClientQuotas",
        argument="a client id without quotas",
        values=lambda b, v: {
            "components": [{"entity_type": "client-id", "match_type": 0, "match": b.name("missing")}],
            "strict": True,
        },
    ),
    Row(api="AlterClientQuotas", argument="an unknown quota, validated only", values=_quota, at="controller"),
    Row(
        api="DescribeUserScramCredentials",
        argument="a user that does not exist",
        values=lambda b, v: {"users": [{"name": b.name("missing")}]},
    ),
    Row(api="AlterUserScramCredentials", argument="a user that does not exist", values=_scram, at="controller"),
    Row(
        api="DescribeQuorum",
        argument=TOPIC,
        values=lambda b, v: {"topics": [{"topic_name": b.name("missing"), "partitions": [{"partition_index": 0}]}]},
        drop=frozenset({"nodes"}),
    ),
    Row(
        api="UpdateFeatures",
        argument="a feature that does not exist, validated only",
        values=lambda b, v: {
            "feature_updates": [{"feature": "no.such.feature", "max_version_level": 1, "upgrade_type": 1}],
            "timeout_ms": 5000,
            "validate_only": True,
        },
        at="controller",
    ),
    Row(api="DescribeCluster", argument="an unknown type of endpoint", values=lambda b, v: {"endpoint_type": 9}),
    Row(
        api="DescribeProducers",
        argument=TOPIC,
        values=lambda b, v: {"topics": [{**_named(b), "partition_indexes": [0]}]},
    ),
    Row(
        api="DescribeTransactions",
        argument=TRANSACTION,
        values=lambda b, v: {"transactional_ids": [b.name("missing")]},
        at="txn",
    ),
    Row(
        api="ListTransactions",
        argument="a state that does not exist",
        values=lambda b, v: {"state_filters": ["NoSuchState"], "producer_id_filters": [4242]},
        drop=frozenset({"transactionStates"}),
    ),
    Row(
        api="ConsumerGroupHeartbeat",
        argument=GROUP,
        values=lambda b, v: {"group_id": b.name("missing"), "member_id": "nobody", "member_epoch": 5},
        at="group",
    ),
    Row(
        api="ConsumerGroupDescribe",
        argument=GROUP,
        values=lambda b, v: {"group_ids": [b.name("missing")]},
        at="group",
    ),
    Row(
        api="PushTelemetry",
        argument="a subscription that does not exist",
        needs=("telemetry",),
        values=lambda b, v: {"client_instance_id": uuid.uuid4(), "subscription_id": 7, "metrics": b""},
    ),
    Row(
        api="ListConfigResources",
        argument="an unknown type of resource",
        values=lambda b, v: {"resource_types": [99]},
        drop=frozenset({"configResources"}),
    ),
    Row(api="DescribeTopicPartitions", argument=TOPIC, values=lambda b, v: {"topics": [_named(b)]}),
    Row(
        api="ShareGroupHeartbeat",
        argument=GROUP,
        values=lambda b, v: {"group_id": b.name("missing"), "member_id": "nobody", "member_epoch": 5},
        at="group",
    ),
    Row(api="ShareGroupDescribe", argument=GROUP, values=lambda b, v: {"group_ids": [b.name("missing")]}, at="group"),
    Row(
        api="ShareFetch",
        argument="a share session that does not exist",
        values=lambda b, v: {
            "group_id": b.name("missing"),
            "member_id": str(NO_ID),
            "share_session_epoch": 5,
            "topics": [_share_partition(b)],
        },
        drop=frozenset({"acquisitionLockTimeoutMs"}),
    ),
    Row(
        api="ShareAcknowledge",
        argument="a share session that does not exist",
        values=lambda b, v: {"group_id": b.name("missing"), "member_id": str(NO_ID), "share_session_epoch": 5},
        drop=frozenset({"acquisitionLockTimeoutMs"}),
    ),
    Row(
        api="StreamsGroupHeartbeat",
        argument=GROUP,
        values=lambda b, v: {"group_id": b.name("missing"), "member_id": "nobody", "member_epoch": 5},
        at="group",
        needs=STREAMS_GROUPS,
    ),
    Row(
        api="StreamsGroupDescribe",
        argument=GROUP,
        values=lambda b, v: {"group_ids": [b.name("missing")]},
        at="group",
        needs=STREAMS_GROUPS,
    ),
    Row(
        api="DescribeShareGroupOffsets",
        argument=GROUP,
        values=lambda b, v: {"groups": [{"group_id": b.name("missing"), "topics": None}]},
        at="group",
    ),
    Row(
        api="AlterShareGroupOffsets",
        argument=GROUP,
        values=lambda b, v: {"group_id": b.name("missing"), "topics": []},
        at="group",
    ),
    Row(
        api="DeleteShareGroupOffsets",
        argument=GROUP,
        values=lambda b, v: {"group_id": b.name("missing"), "topics": []},
        at="group",
    ),
)


def address(row: Row, bench: Bench) -> Address | None:
    """Return the broker that a row's request goes to; None for the one under test."""
    if row.at == "controller":
        return bench.controller()
    if row.at in ("group", "txn"):
        return bench.coordinator(bench.name("missing"), int(row.at == "txn"))
    return None


def _observe(row: Row, version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        values: Mapping[str, Any] = row.values(bench, version)
        connection = bench.connection(address(row, bench))
        body = request(row.api, version, **values)
        return bench.loaded(lambda: bench.values(connection.ask(body, version), version, *row.drop))

    return observe


for _row in ROWS:
    for _version in api_versions(_row.api):
        chapter.add(
            BrokerCheck(
                id=f"ERROR-{code_of(_row.api)}-{_version:02}",
                chapter=chapter.name,
                title=f"{_row.api} {_version}: {_row.argument}",
                source=f"{_row.api}Response",
                steps=(
                    f"Send {_row.api} {_version} with {_row.argument}.",
                    "The response has the format of this version, and the errors and defaults of the release.",
                ),
                observe=_observe(_row, _version),
                uses={_row.api: _version},
                needs=_row.needs,
                allowed=_row.allowed,
                **released(_row.api, _version),
            )
        )
