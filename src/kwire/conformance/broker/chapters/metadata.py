"""Metadata: null against empty, topics by id, auto creation, names that are wrong."""

from __future__ import annotations

import uuid
from typing import Any

from kwire.conformance.broker.bench import Bench
from kwire.conformance.broker.chapters.tables import api_versions, released
from kwire.conformance.broker.checks import BrokerCheck, Chapter, Observe
from kwire.conformance.broker.requests import error_name

__all__ = ["chapter"]

chapter = Chapter("Metadata")
SOURCE = "MetadataRequest"
USES = {"Metadata": 4, "Topics": -1}


def _errors(body: Any) -> list[str]:
    return [error_name(each.error_code) for each in body.topics]


@chapter.check("METADATA-001", SOURCE, uses={"Metadata": 0, "Topics": -1})
def empty_is_all_in_version_0(bench: Bench) -> Any:
    """An empty list of topics selects all topics in version 0.

    Create a topic, then send Metadata 0 with no topics.
    The topic is in the response.
    """
    topic = bench.topic()
    return {"has it": topic.name in {each.name for each in bench.ask("Metadata", 0, topics=[]).topics}}


@chapter.check("METADATA-002", SOURCE, uses={"Metadata": 1, "Topics": -1})
def empty_is_none(bench: Bench) -> Any:
    """An empty list of topics selects none since version 1.

    Create a topic, then send Metadata 1 with no topics.
    The response has brokers and no topics.
    """
    bench.topic()
    body = bench.ask("Metadata", 1, topics=[])
    return {"topics": len(body.topics), "has brokers": bool(body.brokers)}


@chapter.check("METADATA-003", SOURCE, uses={"Metadata": 1, "Topics": -1})
def null_is_all(bench: Bench) -> Any:
    """A null list of topics selects all topics since version 1.

    Create a topic, then send Metadata 1 with null for the topics.
    The topic is in the response.
    """
    topic = bench.topic()
    return {"has it": topic.name in {each.name for each in bench.ask("Metadata", 1, topics=None).topics}}


@chapter.check("METADATA-004", SOURCE, uses={"Metadata": 4})
def missing_topic(bench: Bench) -> Any:
    """A topic that does not exist is not created if the request forbids it.

    Send Metadata 4 with a missing topic and allow_auto_topic_creation false, twice.
    Both responses have UNKNOWN_TOPIC_OR_PARTITION.
    """
    fields: dict[str, Any] = {"topics": [{"name": bench.name("missing")}], "allow_auto_topic_creation": False}
    return {"errors": [_errors(bench.ask("Metadata", 4, **fields)) for _ in range(2)]}


@chapter.check("METADATA-005", SOURCE, uses={"Metadata": 1})
def wrong_names(bench: Bench) -> Any:
    """Names that no topic can have are refused one by one.

    Send Metadata with an empty name, ".", "..", a name with a space and one of 250 letters.
    Each has its error.
    """
    names = ["", ".", "..", bench.name("a b"), "x" * 250]
    return {"errors": [_errors(bench.ask("Metadata", 1, topics=[{"name": name}])) for name in names]}


@chapter.check("METADATA-006", "KIP-516", uses={"Metadata": 12, "CreateTopics": 7})
def by_id(bench: Bench) -> Any:
    """A topic is found by its id since version 12.

    Create a topic, then send Metadata 12 with its id and no name.
    The response has its name.
    """
    topic = bench.topic()
    body = bench.ask("Metadata", 12, topics=[{"topic_id": topic.topic_id, "name": None}])
    return {"errors": _errors(body), "name": body.topics[0].name == topic.name}


@chapter.check("METADATA-007", "KIP-516", uses={"Metadata": 12})
def by_unknown_id(bench: Bench) -> Any:
    """An unknown topic id has UNKNOWN_TOPIC_ID.

    Send Metadata 12 with an id that no topic has.
    The error is UNKNOWN_TOPIC_ID, and the name is null.
    """
    body = bench.ask("Metadata", 12, topics=[{"topic_id": uuid.UUID(int=77), "name": None}])
    return {"errors": _errors(body), "name": body.topics[0].name, "id": body.topics[0].topic_id.int}


@chapter.check("METADATA-008", "KIP-516", uses={"Metadata": 10, "Topics": -1})
def has_an_id(bench: Bench) -> Any:
    """A topic has an id that stays, and no other topic has.

    Create two topics and ask for both twice with Metadata 10.
    Their ids are not zero, differ, and stay the same.
    """
    names = [bench.topic(name).name for name in ("first", "second")]
    bodies = [bench.ask("Metadata", 10, topics=[{"name": name} for name in names]).topics for _ in range(2)]
    ids = [{each.name: each.topic_id for each in topics} for topics in bodies]
    return {
        "set": all(each.int for each in ids[0].values()),
        "equal": ids[0] == ids[1],
        "count": len({*ids[0].values()}),
    }


@chapter.check("METADATA-009", "KIP-430; MetadataRequest", uses={"Metadata": 8, "Topics": -1})
def authorized_operations(bench: Bench) -> Any:
    """Authorized operations are sent only if the request asks for them.

    Send Metadata 8 without and with include_topic_authorized_operations.
    The first has the smallest int32, the second a mask.
    """
    name = bench.topic().name
    topics = [{"name": name}]
    found = [
        bench.ask("Metadata", 8, topics=topics, include_topic_authorized_operations=each).topics[0]
        for each in (False, True)
    ]
    return {"without": found[0].topic_authorized_operations, "with": found[1].topic_authorized_operations > 0}


@chapter.check("METADATA-010", SOURCE, uses=USES)
def same_topic_twice(bench: Bench) -> Any:
    """A topic that is named twice is in the response once.

    Send Metadata 4 with the same name twice.
    The response has it once.
    """
    name = bench.topic().name
    return {"topics": len(bench.ask("Metadata", 4, topics=[{"name": name}, {"name": name}]).topics)}


@chapter.check("METADATA-011", SOURCE, uses=USES)
def partitions(bench: Bench) -> Any:
    """Each partition has its index, a leader among the brokers, and replicas in sync.

    Create a topic of three partitions, then send Metadata.
    Indexes are 0 to 2; each leader is a broker of the response and among the replicas in sync.
    """
    name = bench.topic(partitions=3).name
    body = bench.ask("Metadata", 4, topics=[{"name": name}])
    brokers, found = {each.node_id for each in body.brokers}, body.topics[0].partitions
    return {
        "indexes": sorted(each.partition_index for each in found),
        "leaders": all(each.leader_id in brokers for each in found),
        "in sync": all(
            each.leader_id in each.isr_nodes and set(each.isr_nodes) <= {*each.replica_nodes} for each in found
        ),
    }


@chapter.check("METADATA-012", SOURCE, uses={"Metadata": 4, "Topics": -1, "DeleteTopics": -1})
def after_deletion(bench: Bench) -> Any:
    """A deleted topic is gone.

    Create a topic, delete it, and send Metadata until it has an error.
    The error is UNKNOWN_TOPIC_OR_PARTITION.
    """
    name = bench.topic().name
    bench.delete_topics([name])
    fields: dict[str, Any] = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    for _ in range(100):
        errors = _errors(bench.ask("Metadata", 4, **fields))
        if errors != ["NONE"]:
            break
    return {"errors": errors}


@chapter.check("METADATA-013", "KIP-101, KIP-320", uses={"Metadata": 7, "Topics": -1})
def leader_epoch(bench: Bench) -> Any:
    """Partitions have their leader epoch since version 7.

    Create a topic, then send Metadata 7.
    The leader epoch of a new partition is 0.
    """
    body = bench.ask("Metadata", 7, topics=[{"name": bench.topic().name}])
    return {"leader epoch": body.topics[0].partitions[0].leader_epoch}


@chapter.check("METADATA-014", SOURCE, uses={"Metadata": 1})
def internal_topics(bench: Bench) -> Any:
    """Internal topics are marked as such.

    Look for a coordinator, so that __consumer_offsets exists, then send Metadata 1 for it and for a topic.
    Only the first is internal.
    """
    bench.coordinator(bench.name("group"))
    names = ["__consumer_offsets", bench.topic().name]
    topics = bench.ask("Metadata", 1, topics=[{"name": name} for name in names]).topics
    return {"internal": [each.is_internal for name in names for each in topics if each.name == name]}


def _working(version: int) -> Observe:
    def observe(bench: Bench) -> Any:
        name = bench.topic(partitions=2).name
        body = bench.ask("Metadata", version, topics=[{"name": name}])
        for topic in body.topics:  # their order is not part of the protocol
            topic.partitions = sorted(topic.partitions, key=lambda each: each.partition_index)
        return bench.values(body, version, "topicId")

    return observe


for _version in api_versions("Metadata"):
    chapter.add(
        BrokerCheck(
            id=f"METADATA-V{_version:02}",
            chapter=chapter.name,
            title=f"Metadata {_version} of a topic with two partitions",
            source=SOURCE,
            steps=("Create a topic.", f"Send Metadata {_version} with its name.", "All fields are as in the release."),
            observe=_working(_version),
            uses={"Metadata": _version, "Topics": -1},
            **released("Metadata", _version),
        )
    )
