"""The columns of `kafka-internal`, kind by kind, as DDL types; and those types in Arrow. No pyarrow until asked for.

Names and values are those of kwire.log.internal's rows; times are timestamps, secrets are left out unless asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.internal_topics.names import GROUPS_TOPIC, METADATA_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "HISTORY_COLUMNS", "TOPICS", "arrow_type"]

ASSIGNED = "array<struct<topic:string,topic_id:string,partitions:array<int>>>"
TASKS = "array<struct<subtopology:string,partitions:array<int>>>"
ENDPOINTS = "array<struct<name:string,host:string,port:int,security_protocol:string>>"
FEATURES = "array<struct<name:string,min:int,max:int>>"
STRINGS, INTS = "array<string>", "array<int>"

COLUMNS: dict[str, dict[str, str]] = {
    "groups": {
        "group": "string",
        "kind": "string",
        "state": "string",
        "epoch": "int",
        "assignment_epoch": "int",
        "protocol_type": "string",
        "protocol": "string",
        "leader": "string",
        "members": "int",
        "partitions": "int",
        "pending_offsets": "int",
        "lag": "bigint",
        "state_timestamp": "timestamp",
        "coordinator_partition": "int",
        "last_offset": "bigint",
        "last_timestamp": "timestamp",
    },
    "members": {
        "group": "string",
        "kind": "string",
        "member_id": "string",
        "instance_id": "string",
        "client_id": "string",
        "client_host": "string",
        "rack_id": "string",
        "state": "string",
        "epoch": "int",
        "previous_epoch": "int",
        "subscribed_topics": STRINGS,
        "subscribed_regex": "string",
        "assignor": "string",
        "assigned": ASSIGNED,
        "revoking": ASSIGNED,
        "target": ASSIGNED,
        "active_tasks": TASKS,
        "standby_tasks": TASKS,
        "warmup_tasks": TASKS,
        "process_id": "string",
        "session_timeout_ms": "int",
        "rebalance_timeout_ms": "int",
    },
    "offsets": {
        "group": "string",
        "kind": "string",
        "topic": "string",
        "partition": "int",
        "offset": "bigint",
        "log_end_offset": "bigint",
        "lag": "bigint",
        "leader_epoch": "int",
        "metadata": "string",
        "commit_timestamp": "timestamp",
        "expire_timestamp": "timestamp",
        "producer_id": "bigint",
        "in_transaction": "boolean",
        "record_offset": "bigint",
        "member_id": "string",
        "instance_id": "string",
        "client_id": "string",
        "client_host": "string",
    },
    "transactions": {
        "transactional_id": "string",
        "state": "string",
        "is_open": "boolean",
        "producer_id": "bigint",
        "producer_epoch": "int",
        "previous_producer_id": "bigint",
        "next_producer_id": "bigint",
        "timeout_ms": "int",
        "start_timestamp": "timestamp",
        "last_update_timestamp": "timestamp",
        "partitions": "array<struct<topic:string,partitions:array<int>>>",
        "client_transaction_version": "int",
        "coordinator_partition": "int",
        "record_offset": "bigint",
        "timestamp": "timestamp",
    },
    "share": {
        "group": "string",
        "topic": "string",
        "topic_id": "string",
        "partition": "int",
        "start_offset": "bigint",
        "log_end_offset": "bigint",
        "lag": "bigint",
        "delivery_complete_count": "int",
        "leader_epoch": "int",
        "state_epoch": "int",
        "snapshot_epoch": "int",
        "ranges": "array<struct<first_offset:bigint,last_offset:bigint,state:string,delivery_count:int>>",
        "create_timestamp": "timestamp",
        "write_timestamp": "timestamp",
        "state_partition": "int",
        "record_offset": "bigint",
        "timestamp": "timestamp",
    },
    "brokers": {
        "node_id": "int",
        "epoch": "bigint",
        "fenced": "boolean",
        "in_controlled_shutdown": "boolean",
        "rack": "string",
        "leads": "int",
        "log_dirs": STRINGS,
        "cordoned_log_dirs": STRINGS,
        "endpoints": ENDPOINTS,
        "features": FEATURES,
        "incarnation_id": "string",
    },
    "controllers": {
        "node_id": "int",
        "is_leader": "boolean",
        "endpoints": ENDPOINTS,
        "features": FEATURES,
        "incarnation_id": "string",
    },
    "topics": {
        "topic": "string",
        "topic_id": "string",
        "partitions": "int",
        "replication_factor": "int",
        "leaderless": "int",
        "under_replicated": "int",
        "configs": "int",
    },
    "partitions": {
        "topic": "string",
        "topic_id": "string",
        "partition": "int",
        "leader": "int",
        "leader_epoch": "int",
        "partition_epoch": "int",
        "replicas": INTS,
        "isr": INTS,
        "adding_replicas": INTS,
        "removing_replicas": INTS,
        "elr": INTS,
        "last_known_elr": INTS,
        "recovering": "boolean",
        "directories": STRINGS,
    },
    "configs": {
        "resource_type": "string",
        "resource_name": "string",
        "name": "string",
        "value": "string",
        "is_secret": "boolean",
    },
    "quotas": {"entity": "array<struct<type:string,name:string>>", "quota": "string", "value": "double"},
    "users": {
        "user": "string",
        "mechanism": "string",
        "iterations": "int",
        "salt": "string",
        "stored_key": "string",
        "server_key": "string",
    },
    "acls": {
        "principal": "string",
        "permission": "string",
        "operation": "string",
        "resource_type": "string",
        "pattern_type": "string",
        "resource_name": "string",
        "host": "string",
        "acl_id": "string",
    },
    "features": {"feature": "string", "level": "int"},
    "voters": {"node_id": "int", "is_leader": "boolean", "directory_id": "string", "endpoints": ENDPOINTS},
    "tokens": {
        "token_id": "string",
        "owner": "string",
        "requester": "string",
        "renewers": STRINGS,
        "issue_timestamp": "timestamp",
        "expiration_timestamp": "timestamp",
        "max_timestamp": "timestamp",
    },
}
"""kind -> column -> type, in mode current."""

HISTORY_COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "kind": "string",
    "record_type": "int",
    "version": "int",
    "key": "string",
    "value": "string",
    "is_tombstone": "boolean",
    "is_control": "boolean",
    "is_transactional": "boolean",
    "producer_id": "bigint",
    "producer_epoch": "int",
    "coordinator_epoch": "int",
    "error": "string",
    "error_field": "string",
    "error_position": "bigint",
    "raw_key": "string",
    "raw_value": "string",
}
"""column -> type, in mode history, where key and value are Kafka's JSON form and raw bytes base64."""

TOPICS = {
    **dict.fromkeys(COLUMNS, METADATA_TOPIC),
    **dict.fromkeys(("groups", "members", "offsets"), GROUPS_TOPIC),
    "transactions": TRANSACTIONS_TOPIC,
    "share": SHARE_STATE_TOPIC,
}
"""kind -> the internal topic it is read from."""


def arrow_type(ddl: str) -> pa.DataType:
    """One of the types above in Arrow."""
    import pyarrow as pa

    if ddl.startswith("array<"):
        return pa.list_(arrow_type(ddl.removeprefix("array<").removesuffix(">")))
    if ddl.startswith("struct<"):
        return pa.struct(
            [
                pa.field(name, arrow_type(kind))
                for name, _, kind in (each.partition(":") for each in _fields(ddl.removeprefix("struct<")[:-1]))
            ]
        )
    simple: dict[str, pa.DataType] = {
        "string": pa.string(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    return simple[ddl]


def _fields(text: str) -> list[str]:
    """A struct's fields, split at the commas that are outside brackets."""
    fields, depth, start = list[str](), 0, 0
    for i, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0:
            fields.append(text[start:i])
            start = i + 1
    return [*fields, text[start:]]
