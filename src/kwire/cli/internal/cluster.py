"""`kwire cluster`: brokers, topics, configs, users and ACLs of the metadata log."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from kwire.cli.command import FINE
from kwire.cli.internal.moment import parse_moment, require_topic, shown_time, warn_of_problems
from kwire.cli.internal.record_table import write_history
from kwire.cli.internal.sources import open_source, report_requests
from kwire.cli.options import AtOffset, AtTime, ClientConfigFile, ClientConfigs, FormatOption, History
from kwire.cli.rows import TOPIC, Column, Format, Row, write_rows
from kwire.errors import LogError, OptionError
from kwire.pages.quantities import time_text

if TYPE_CHECKING:
    from kwire.client.cluster_logs import ClusterLogs
    from kwire.internal_topics.cluster_state import ClusterState
    from kwire.log import LogDirectory
    from kwire.log.reading.readable_log import LogSource, ReadableLog

__all__ = ["cluster"]


class Part(enum.StrEnum):
    """Values of PART: the members of cluster_rows.ClusterPart, the overview, and the snapshots of the log."""

    OVERVIEW = "overview"
    BROKERS = "brokers"
    CONTROLLERS = "controllers"
    TOPICS = "topics"
    PARTITIONS = "partitions"
    CONFIGS = "configs"
    QUOTAS = "quotas"
    USERS = "users"
    ACLS = "acls"
    FEATURES = "features"
    VOTERS = "voters"
    TOKENS = "tokens"
    SNAPSHOTS = "snapshots"


def cluster(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="Log directory or __cluster_metadata-0: local path or URL; or kafka://HOST:PORT."
        ),
    ],
    part: Annotated[Part, typer.Argument(metavar="PART", help="Part of the state.")] = Part.OVERVIEW,
    history: History = False,
    at_offset: AtOffset = None,
    at_time: AtTime = None,
    redact: Annotated[
        bool,
        typer.Option(
            "--redact/--show-secrets",
            help="Values of SCRAM credentials, delegation tokens and passwords: hidden or shown.",
        ),
    ] = True,
    config: ClientConfigs = None,
    config_file: ClientConfigFile = None,
    format: FormatOption = Format.TABLE,
) -> int:
    """Show the brokers, topics, configs, users and ACLs of a cluster.

    Reads the metadata log and its snapshots, without a controller: the newest snapshot at or before --at-offset or
    --at-time, then the records after it. A running cluster shows clients no metadata log: its admin APIs are used.
    Exit code 1 if a record cannot be read, or the log no longer reaches back to that time.
    """
    if history and part is not Part.OVERVIEW:
        raise OptionError(f"--history shows all records; remove {part}")
    moment = parse_moment(at_offset, at_time)
    running, source = open_source(path, config, config_file)
    if running is not None:
        if history or moment.is_past or part is Part.SNAPSHOTS:
            raise OptionError(f"{path}: clients cannot read the metadata log, only the present state")
        return _running(running, part, redact=redact, format=format)
    directory = cast("LogDirectory", source)
    from kwire.internal_topics.names import METADATA_TOPIC
    from kwire.log.topics import read_cluster_records, replay_cluster

    require_topic(cast("LogSource[ReadableLog]", directory), METADATA_TOPIC)
    if history:
        records = read_cluster_records(directory, at_offset=moment.at_offset, at_time=moment.at_time)
        return write_history(records, format, redact=redact)
    if part is Part.SNAPSHOTS:
        write_rows(_snapshots(directory), COLUMNS[part], format)
        return FINE
    state = replay_cluster(directory, at_offset=moment.at_offset, at_time=moment.at_time)
    if part is Part.OVERVIEW:
        write_rows(_overview(state, _cluster_id(directory)), COLUMNS[part], format)
    else:
        from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows

        write_rows(cluster_rows(state, ClusterPart(part), redact=redact), COLUMNS[part], format)
    return warn_of_problems(state.problems)


OF_THE_LOG = (
    "records below offset",
    "last record",
    "from the snapshot at",
    "next producer id",
    "records of an unfinished transaction",
)
"""Facts that only the metadata log has."""
FACT_PARTS = {
    "settings": Part.CONFIGS,
    "quotas": Part.QUOTAS,
    "users": Part.USERS,
    "acls": Part.ACLS,
    "delegation tokens": Part.TOKENS,
    "quorum leader": Part.CONTROLLERS,
    "voters": Part.CONTROLLERS,
    "controllers": Part.CONTROLLERS,
}
"""Facts that are unknown where the account may not see a part."""


def _running(cluster: ClusterLogs, part: Part, *, redact: bool, format: Format) -> int:
    """Print a part of a running cluster."""
    from kwire.client.admin.cluster import describe_cluster, described_rows
    from kwire.internal_topics.cluster_rows import ClusterPart

    if cluster.address.name is not None:
        raise OptionError(f"{cluster.url}: expected {cluster.address.cluster}")
    if part is Part.OVERVIEW:
        described = describe_cluster(cluster.client)
        unseen = {
            *OF_THE_LOG,
            *(fact for fact, source in FACT_PARTS.items() if source.value in described.requests.unseen),
        }
        rows = [
            row | {"value": None} if row["fact"] in unseen else row
            for row in _overview(described.state, described.cluster_id)
        ]
        write_rows(rows, COLUMNS[part], format)
    else:
        described = describe_cluster(cluster.client, [ClusterPart(part)])
        write_rows(described_rows(described, ClusterPart(part), redact=redact), COLUMNS[part], format)
    report_requests(described.requests)
    return FINE


def _snapshots(directory: LogDirectory) -> Iterator[Row]:
    from kwire.log.topics import list_snapshots, read_snapshot_records

    for snapshot in list_snapshots(directory):
        timestamp, records, whole = None, 0, False
        for record in read_snapshot_records(directory, snapshot):
            if record.kind == "SNAPSHOT_HEADER":
                timestamp = getattr(record.value, "last_contained_log_timestamp", None)
            whole = record.kind == "SNAPSHOT_FOOTER"
            records += not record.is_control
        yield {
            "file": snapshot.name,
            "end_offset": snapshot.end_offset,
            "epoch": snapshot.epoch,
            "last_contained_timestamp": timestamp,
            "records": records,
            "is_whole": whole,
        }


def _overview(state: ClusterState, cluster_id: str | None) -> Iterator[Row]:
    topics = state.topics.values()
    partitions = [each for topic in topics for each in topic.partitions.values()]
    facts: dict[str, Any] = {
        "cluster id": cluster_id,
        "records below offset": state.end_offset,
        "last record": time_text(state.end_timestamp),
        "from the snapshot at": state.snapshot_offset,
        "metadata.version": state.features.get("metadata.version"),
        "kraft.version": state.kraft_version,
        "quorum leader": None if state.leader < 0 else state.leader,
        "voters": len(state.voters),
        "controllers": len(state.controllers),
        "brokers": len(state.brokers),
        "fenced brokers": sum(each.fenced for each in state.brokers.values()),
        "topics": len(topics),
        "partitions": len(partitions),
        "partitions without leader": sum(each.leader < 0 for each in partitions),
        "under-replicated partitions": sum(not set(each.replicas) <= set(each.isr) for each in partitions),
        "settings": sum(map(len, state.configs.values())),
        "quotas": sum(map(len, state.quotas.values())),
        "users": len(state.users),
        "acls": len(state.acls),
        "delegation tokens": len(state.tokens),
        "next producer id": None if state.next_producer_id < 0 else state.next_producer_id,
        "records of an unfinished transaction": len(state.open_transaction or ()),
    }
    for fact, value in facts.items():
        yield {"fact": fact, "value": value}


def _cluster_id(directory: LogDirectory) -> str | None:
    try:
        return directory.meta_properties.get("cluster.id")
    except LogError:
        return None


def _listed(name: str) -> Any:
    return lambda row: ",".join(map(str, row[name] or ())) or None


def _endpoints(row: Row) -> str | None:
    return " ".join(_endpoint(each) for each in row["endpoints"]) or None


def _endpoint(endpoint: Row) -> str:
    address = f"{endpoint['host']}:{endpoint['port']}"
    return f"{endpoint['name']}://{address}" if endpoint["name"] else address  # clients are not told its name


def _broker_state(row: Row) -> str:
    if row["in_controlled_shutdown"]:
        return "fenced, shut down" if row["fenced"] else "shutting down"
    return "fenced" if row["fenced"] else "active"


def _entity(row: Row) -> str:
    return " ".join(f"{each['type']}={each['name'] or '<default>'}" for each in row["entity"])


def _quota(value: float) -> str:
    return f"{value:.0f}" if value == int(value) else str(value)


NODE = Column(key="node_id", heading="NODE", right=True)
LEADER = Column(pick=lambda row: "leader" if row["is_leader"] else None, heading="ROLE")
ENDPOINTS = Column(pick=_endpoints, heading="ENDPOINTS")
TOPIC_ID = Column(key="topic_id", heading="ID")

COLUMNS: dict[Part, tuple[Column, ...]] = {
    Part.OVERVIEW: (Column(key="fact", heading="PROPERTY"), Column(key="value", heading="VALUE")),
    Part.BROKERS: (
        NODE,
        Column(pick=_broker_state, heading="STATE"),
        Column(key="epoch", heading="EPOCH", right=True),
        Column(key="rack", heading="RACK"),
        Column(key="leads", heading="LEADS", right=True),
        ENDPOINTS,
    ),
    Part.CONTROLLERS: (NODE, LEADER, ENDPOINTS),
    Part.TOPICS: (
        TOPIC,
        Column(key="partitions", heading="PARTITIONS", right=True),
        Column(key="replication_factor", heading="REPLICAS", right=True),
        Column(key="leaderless", heading="NO LEADER", right=True),
        Column(key="under_replicated", heading="UNDER-REPLICATED", right=True),
        Column(key="configs", heading="SETTINGS", right=True),
        TOPIC_ID,
    ),
    Part.PARTITIONS: (
        TOPIC,
        Column(key="partition", heading="PARTITION", right=True),
        Column(key="leader", heading="LEADER", right=True),
        Column(key="leader_epoch", heading="EPOCH", right=True),
        Column(pick=_listed("replicas"), heading="REPLICAS"),
        Column(pick=_listed("isr"), heading="ISR"),
        Column(pick=_listed("elr"), heading="ELR"),
        Column(pick=_listed("adding_replicas"), heading="ADDING"),
        Column(pick=_listed("removing_replicas"), heading="REMOVING"),
    ),
    Part.CONFIGS: (
        Column(key="resource_type", heading="OF"),
        Column(pick=lambda row: row["resource_name"] or "<default>", heading="NAME"),
        Column(key="name", heading="SETTING"),
        Column(key="value", heading="VALUE"),
    ),
    Part.QUOTAS: (
        Column(pick=_entity, heading="FOR"),
        Column(key="quota", heading="QUOTA"),
        Column(key="value", heading="VALUE", show=_quota, right=True),
    ),
    Part.USERS: (
        Column(key="user", heading="USER"),
        Column(key="mechanism", heading="MECHANISM"),
        Column(key="iterations", heading="ITERATIONS", right=True),
        Column(key="salt", heading="SALT"),
        Column(key="stored_key", heading="STORED KEY"),
        Column(key="server_key", heading="SERVER KEY"),
    ),
    Part.ACLS: (
        Column(key="principal", heading="PRINCIPAL"),
        Column(key="permission", heading="PERMISSION"),
        Column(key="operation", heading="OPERATION"),
        Column(key="resource_type", heading="RESOURCE"),
        Column(key="pattern_type", heading="PATTERN"),
        Column(key="resource_name", heading="NAME"),
        Column(key="host", heading="HOST"),
    ),
    Part.FEATURES: (Column(key="feature", heading="FEATURE"), Column(key="level", heading="LEVEL", right=True)),
    Part.VOTERS: (NODE, LEADER, Column(key="directory_id", heading="DIRECTORY"), ENDPOINTS),
    Part.TOKENS: (
        Column(key="token_id", heading="TOKEN"),
        Column(key="owner", heading="OWNER"),
        Column(key="requester", heading="REQUESTER"),
        Column(key="issue_timestamp", heading="ISSUED", show=shown_time),
        Column(key="expiration_timestamp", heading="EXPIRES", show=shown_time),
        Column(key="max_timestamp", heading="AT MOST UNTIL", show=shown_time),
    ),
    Part.SNAPSHOTS: (
        Column(key="file", heading="FILE"),
        Column(key="end_offset", heading="END OFFSET", right=True),
        Column(key="epoch", heading="EPOCH", right=True),
        Column(key="last_contained_timestamp", heading="LAST TIME", show=shown_time),
        Column(key="records", heading="RECORDS", right=True),
        Column(pick=lambda row: None if row["is_whole"] else "not finished", heading="DAMAGE"),
    ),
}
