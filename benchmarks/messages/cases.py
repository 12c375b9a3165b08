"""Messages for benchmarks: small and large, flexible and not, with tags, lists, strings and blobs."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from kwire.messages import registry


class Case(NamedTuple):
    """A message and its version."""

    name: str
    version: int
    obj: Any


def cases() -> dict[str, Case]:
    """Return messages by label, with made-up contents and the sizes of a small cluster."""
    built = (_metadata, _api_versions, _fetch, _produce, _offset_commit, _request_header, _produce_response)
    found: dict[str, Case] = {}
    for build in built:
        found.update(build())
    return found


def elderly_cases() -> dict[str, Case]:
    """Return messages in versions that aiokafka supports."""
    return {
        "Metadata_v5": Case("MetadataResponse", 5, _metadata_response()),
        "Fetch_v11": Case("FetchResponse", 11, _fetch_response()),
        "Produce_v7": Case("ProduceRequest", 7, _produce_request()),
    }


def large_cases() -> dict[str, Case]:
    """Return messages with many partitions, whose leaders and replicas differ, and with large records."""
    cls: Any = registry.get("MetadataResponse")
    fetch: Any = registry.get("FetchResponse")
    brokers = [cls.MetadataResponseBroker(node_id=i, host=f"host-{i}.example.com", port=9092) for i in range(6)]

    def topic(name: str, partitions: int) -> Any:
        found = []
        for i in range(partitions):
            replicas = [(i + k) % 6 for k in range(3)]
            found.append(
                cls.MetadataResponsePartition(
                    partition_index=i,
                    leader_id=replicas[0],
                    leader_epoch=5 + i % 7,
                    replica_nodes=replicas,
                    isr_nodes=replicas,
                )
            )
        return cls.MetadataResponseTopic(name=name, partitions=found)

    one = cls(brokers=brokers, cluster_id="abc", controller_id=1, topics=[topic("topic", 480)])
    many = cls(brokers=brokers, cluster_id="abc", controller_id=1, topics=[topic(f"topic-{t}", 10) for t in range(48)])
    partitions = [fetch.PartitionData(partition_index=i, records=os.urandom(500_000)) for i in range(10)]
    fetched = fetch(responses=[fetch.FetchableTopicResponse(topic="topic", partitions=partitions)])
    return {
        "Metadata_v9_1x480": Case("MetadataResponse", 9, one),
        "Metadata_v9_48x10": Case("MetadataResponse", 9, many),
        "Fetch_v12_10x500kB": Case("FetchResponse", 12, fetched),
    }


def _metadata_response() -> Any:
    cls: Any = registry.get("MetadataResponse")
    brokers = [
        cls.MetadataResponseBroker(node_id=i, host=f"host-{i}.example.com", port=9092, rack=None) for i in range(2)
    ]
    partitions = [
        cls.MetadataResponsePartition(
            partition_index=i, leader_id=1 + i % 2, leader_epoch=5, replica_nodes=[1, 2], isr_nodes=[1, 2]
        )
        for i in range(100)
    ]
    topic = cls.MetadataResponseTopic(name="topic", partitions=partitions)
    return cls(brokers=brokers, cluster_id="abcdefghijklmnopqrstuv", controller_id=1, topics=[topic])


def metadata_bodies(count: int) -> list[bytes]:
    """Return MetadataResponse v9 bodies of one to three topics with ten partitions."""
    cls: Any = registry.get("MetadataResponse")
    brokers = [cls.MetadataResponseBroker(node_id=i, host=f"host-{i}", port=9092) for i in range(2)]
    bodies = []
    for k in range(count):
        topics = [
            cls.MetadataResponseTopic(
                name=f"topic-{k}-{t}",
                partitions=[
                    cls.MetadataResponsePartition(
                        partition_index=i, leader_id=(i + k) % 3, leader_epoch=5, replica_nodes=[1, 2], isr_nodes=[1, 2]
                    )
                    for i in range(10)
                ],
            )
            for t in range(1 + k % 3)
        ]
        bodies.append(cls(brokers=brokers, cluster_id="c", topics=topics).encode(version=9))
    return bodies


def _metadata() -> dict[str, Case]:
    response = _metadata_response()
    return {f"Metadata_v{v}": Case("MetadataResponse", v, response) for v in (8, 9)}


def _api_versions() -> dict[str, Case]:
    cls: Any = registry.get("ApiVersionsResponse")
    features = ("metadata.version", "group.version", "kraft.version")
    response = cls(
        api_keys=[cls.ApiVersion(api_key=i, min_version=0, max_version=i % 13) for i in range(60)],
        supported_features=[cls.SupportedFeatureKey(name=n, min_version=0, max_version=20) for n in features],
        finalized_features_epoch=1234,
        finalized_features=[
            cls.FinalizedFeatureKey(name="metadata.version", max_version_level=20, min_version_level=20)
        ],
    )
    return {"ApiVersions_v3": Case("ApiVersionsResponse", 3, response)}


def _fetch_response() -> Any:
    cls: Any = registry.get("FetchResponse")
    records = os.urandom(200)
    return cls(
        session_id=77,
        responses=[
            cls.FetchableTopicResponse(
                topic=f"topic-{t}",
                partitions=[
                    cls.PartitionData(
                        partition_index=i,
                        high_watermark=10**10 + i,
                        last_stable_offset=10**10,
                        log_start_offset=5,
                        aborted_transactions=None,
                        records=records,
                    )
                    for i in range(10)
                ],
            )
            for t in range(10)
        ],
    )


def _fetch() -> dict[str, Case]:
    return {"Fetch_v12_10x10x200B": Case("FetchResponse", 12, _fetch_response())}


def _produce_request() -> Any:
    cls: Any = registry.get("ProduceRequest")
    partitions = [cls.PartitionProduceData(index=i, records=os.urandom(1000)) for i in range(10)]
    topics = [cls.TopicProduceData(name="topic", partition_data=partitions)]
    return cls(acks=-1, timeout_ms=30000, topic_data=topics)


def _produce() -> dict[str, Case]:
    return {"Produce_v9_1x10x1kB": Case("ProduceRequest", 9, _produce_request())}


def _offset_commit() -> dict[str, Case]:
    cls: Any = registry.get("OffsetCommitRequest")
    partitions = [
        cls.OffsetCommitRequestPartition(
            partition_index=i, committed_offset=10**9 + i, committed_leader_epoch=5, committed_metadata=""
        )
        for i in range(50)
    ]
    request = cls(
        group_id="my-group",
        generation_id_or_member_epoch=3,
        member_id="consumer-1-" + "a" * 36,
        topics=[cls.OffsetCommitRequestTopic(name="topic", partitions=partitions)],
    )
    return {"OffsetCommit_v8_x50": Case("OffsetCommitRequest", 8, request)}


def request_header() -> Any:
    """Return the header of a request."""
    cls: Any = registry.get("RequestHeader")
    return cls(request_api_key=3, request_api_version=9, correlation_id=123456, client_id="console-producer")


def _request_header() -> dict[str, Case]:
    return {"RequestHeader_v2": Case("RequestHeader", 2, request_header())}


def _produce_response() -> dict[str, Case]:
    cls: Any = registry.get("ProduceResponse")
    responses = [
        cls.TopicProduceResponse(
            name=f"topic-{t}",
            partition_responses=[
                cls.PartitionProduceResponse(
                    index=i,
                    error_code=6,
                    base_offset=10**9 + i,
                    log_start_offset=5,
                    record_errors=[
                        cls.BatchIndexAndErrorMessage(batch_index=k, batch_index_error_message="bad record")
                        for k in range(2)
                    ],
                    current_leader=cls.LeaderIdAndEpoch(leader_id=2, leader_epoch=7),
                )
                for i in range(5)
            ],
        )
        for t in range(5)
    ]
    endpoints = [cls.NodeEndpoint(node_id=i, host=f"host-{i}.example.com", port=9092, rack="rack-a") for i in range(3)]
    response = cls(responses=responses, node_endpoints=endpoints)
    return {"ProduceResponse_v10_tagged": Case("ProduceResponse", 10, response)}
