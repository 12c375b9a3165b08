"""The parts of a cluster as rows of plain values, for `kwire cluster PATH PART` and Spark's `kafka-internal`."""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

from kwire.identifiers import render_uuid
from kwire.internal_topics.cluster_state import ClusterState, Endpoint, Node, Topic
from kwire.internal_topics.enums import label
from kwire.protocol import HIDDEN, is_secret_setting

__all__ = ["ClusterPart", "cluster_rows"]

Row = dict[str, Any]


class ClusterPart(enum.StrEnum):
    """Parts of a cluster."""

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


def cluster_rows(cluster: ClusterState, part: ClusterPart, *, redact: bool = True) -> Iterator[Row]:
    """Yield the rows of one part in a fixed order. redact: hide secrets."""
    return PARTS[part](cluster, redact)


def _brokers(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    leads: dict[int, int] = {}
    for topic in cluster.topics.values():
        for partition in topic.partitions.values():
            leads[partition.leader] = leads.get(partition.leader, 0) + 1
    for node_id, broker in sorted(cluster.brokers.items()):
        yield {
            "node_id": node_id,
            "epoch": broker.epoch,
            "fenced": broker.fenced,
            "in_controlled_shutdown": broker.in_controlled_shutdown,
            "rack": broker.rack,
            "leads": leads.get(node_id, 0),
            "log_dirs": _ids(broker.log_dirs),
            "cordoned_log_dirs": _ids(broker.cordoned_log_dirs),
        } | _node(broker)


def _controllers(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for node_id, controller in sorted(cluster.controllers.items()):
        yield {"node_id": node_id, "is_leader": node_id == cluster.leader} | _node(controller)


def _node(node: Node) -> Row:
    return {
        "endpoints": _endpoints(node.endpoints),
        "features": [{"name": name, "min": low, "max": high} for name, (low, high) in sorted(node.features.items())],
        "incarnation_id": render_uuid(node.incarnation_id),
    }


def _endpoints(endpoints: Iterable[Endpoint]) -> list[Row]:
    return [
        {"name": each.name, "host": each.host, "port": each.port, "security_protocol": each.security_protocol}
        for each in endpoints
    ]


def _ids(ids: Iterable[UUID]) -> list[str]:
    return [render_uuid(each) for each in ids]


def _topics(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for name, topic in sorted(cluster.topics.items()):
        partitions = topic.partitions.values()
        yield {
            "topic": name,
            "topic_id": render_uuid(topic.topic_id),
            "partitions": len(partitions),
            "replication_factor": max((len(each.replicas) for each in partitions), default=0),
            "leaderless": sum(each.leader < 0 for each in partitions),
            "under_replicated": _under_replicated(topic),
            "configs": len(cluster.configs.get(("topic", name), ())),
        }


def _under_replicated(topic: Topic) -> int:
    return sum(not set(each.replicas) <= set(each.isr) for each in topic.partitions.values())


def _partitions(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for name, topic in sorted(cluster.topics.items()):
        for number, each in sorted(topic.partitions.items()):
            yield {
                "topic": name,
                "topic_id": render_uuid(topic.topic_id),
                "partition": number,
                "leader": None if each.leader < 0 else each.leader,
                "leader_epoch": each.leader_epoch,
                "partition_epoch": each.partition_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.isr),
                "adding_replicas": list(each.adding_replicas),
                "removing_replicas": list(each.removing_replicas),
                "elr": list(each.elr),
                "last_known_elr": list(each.last_known_elr),
                "recovering": each.recovering,
                "directories": _ids(each.directories),
            }


def _configs(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for (kind, resource), settings in sorted(cluster.configs.items()):
        for name, value in sorted(settings.items()):
            secret = is_secret_setting(name)
            yield {
                "resource_type": kind,
                "resource_name": resource,
                "name": name,
                "value": HIDDEN if secret and redact else value,
                "is_secret": secret,
            }


def _quotas(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for entity, quotas in sorted(cluster.quotas.items(), key=lambda each: [(t, n or "") for t, n in each[0]]):
        for name, value in sorted(quotas.items()):
            yield {
                "entity": [{"type": kind, "name": entity_name} for kind, entity_name in entity],
                "quota": name,
                "value": value,
            }


def _users(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    def shown(secret: bytes) -> str:
        return HIDDEN if redact else base64.b64encode(secret).decode()

    for (name, mechanism), user in sorted(cluster.users.items()):
        yield {
            "user": name,
            "mechanism": mechanism,
            "iterations": user.iterations,
            "salt": shown(user.salt),
            "stored_key": shown(user.stored_key),
            "server_key": shown(user.server_key),
        }


def _acls(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    rows = [
        {
            "principal": each.principal,
            "permission": label(each.permission_type),
            "operation": label(each.operation),
            "resource_type": label(each.resource_type),
            "pattern_type": label(each.pattern_type),
            "resource_name": each.resource_name,
            "host": each.host,
            "acl_id": render_uuid(acl_id),
        }
        for acl_id, each in cluster.acls.items()
    ]
    yield from sorted(rows, key=lambda row: list(row.values()))


def _features(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for name, level in sorted((cluster.features | {"kraft.version": cluster.kraft_version}).items()):
        yield {"feature": name, "level": level}


def _voters(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for node_id, voter in sorted(cluster.voters.items()):
        yield {
            "node_id": node_id,
            "is_leader": node_id == cluster.leader,
            "directory_id": render_uuid(voter.directory_id),
            "endpoints": _endpoints(voter.endpoints),
        }


def _tokens(cluster: ClusterState, redact: bool) -> Iterator[Row]:
    for _, token in sorted(cluster.tokens.items()):
        yield {
            "token_id": HIDDEN if redact else token.token_id,
            "owner": token.owner,
            "requester": token.requester,
            "renewers": list(token.renewers),
            "issue_timestamp": token.issue_timestamp,
            "expiration_timestamp": token.expiration_timestamp,
            "max_timestamp": token.max_timestamp,
        }


PARTS: dict[ClusterPart, Callable[[ClusterState, bool], Iterator[Row]]] = {
    ClusterPart.BROKERS: _brokers,
    ClusterPart.CONTROLLERS: _controllers,
    ClusterPart.TOPICS: _topics,
    ClusterPart.PARTITIONS: _partitions,
    ClusterPart.CONFIGS: _configs,
    ClusterPart.QUOTAS: _quotas,
    ClusterPart.USERS: _users,
    ClusterPart.ACLS: _acls,
    ClusterPart.FEATURES: _features,
    ClusterPart.VOTERS: _voters,
    ClusterPart.TOKENS: _tokens,
}
