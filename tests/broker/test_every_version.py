"""Every version of these APIs has a response with the fields of that version only."""

from __future__ import annotations

from typing import Any

import pytest

from kwire import messages, records
from kwire.broker import Broker
from kwire.broker.apis import SERVED
from kwire.messages.base import Message
from kwire.messages.error_codes import ErrorCode
from tests.broker.wire import RawClient

TOPIC = "versions"


def batch(magic: int) -> bytes:
    """Return a batch of two records."""
    builder = records.BatchBuilder(magic=magic)
    builder.append(b"k", b"v", timestamp=1_760_000_000_000 if magic else -1)
    builder.append(None, b"w", timestamp=1_760_000_000_001 if magic else -1)
    return builder.build()


def produce(version: int, topic_id: Any) -> Message:
    cls = messages.ProduceRequest
    data = cls.PartitionProduceData(index=0, records=batch(0 if version < 2 else 1 if version == 2 else 2))
    return cls(
        acks=1,
        timeout_ms=1000,
        topic_data=[cls.TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=[data])],
    )


def fetch(version: int, topic_id: Any) -> Message:
    cls = messages.FetchRequest
    partition = cls.FetchPartition(partition=0, partition_max_bytes=1 << 20)
    return cls(
        max_wait_ms=0,
        topics=[
            cls.FetchTopic(topic=TOPIC, topic_id=topic_id, partitions=[partition, cls.FetchPartition(partition=9)])
        ],
    )


def list_offsets(version: int, topic_id: Any) -> Message:
    cls = messages.ListOffsetsRequest
    asked = [cls.ListOffsetsPartition(partition_index=0, timestamp=-1), cls.ListOffsetsPartition(partition_index=9)]
    return cls(replica_id=-1, topics=[cls.ListOffsetsTopic(name=TOPIC, partitions=asked)])


def metadata(version: int, topic_id: Any) -> Message:
    cls = messages.MetadataRequest
    return cls(topics=[cls.MetadataRequestTopic(name=TOPIC)])


def create_topics(version: int, topic_id: Any) -> Message:
    cls = messages.CreateTopicsRequest
    return cls(topics=[cls.CreatableTopic(name=f"new-{version}", num_partitions=1, replication_factor=1)])


def delete_topics(version: int, topic_id: Any) -> Message:
    cls = messages.DeleteTopicsRequest
    if version < 6:
        return cls(topic_names=[f"new-{version}", "unknown"])
    return cls(topics=[cls.DeleteTopicState(name=f"new-{version}"), cls.DeleteTopicState(name="unknown")])


def create_partitions(version: int, topic_id: Any) -> Message:
    cls = messages.CreatePartitionsRequest
    return cls(topics=[cls.CreatePartitionsTopic(name=TOPIC, count=5, assignments=None)], validate_only=True)


def delete_records(version: int, topic_id: Any) -> Message:
    cls = messages.DeleteRecordsRequest
    partitions = [cls.DeleteRecordsPartition(partition_index=0), cls.DeleteRecordsPartition(partition_index=9)]
    return cls(topics=[cls.DeleteRecordsTopic(name=TOPIC, partitions=partitions)])


def offset_for_leader_epoch(version: int, topic_id: Any) -> Message:
    cls = messages.OffsetForLeaderEpochRequest
    partitions = [cls.OffsetForLeaderPartition(partition=0), cls.OffsetForLeaderPartition(partition=9)]
    return cls(topics=[cls.OffsetForLeaderTopic(topic=TOPIC, partitions=partitions)])


def describe_configs(version: int, topic_id: Any) -> Message:
    cls = messages.DescribeConfigsRequest
    resources = [(2, TOPIC), (4, "1"), (2, "unknown")]
    return cls(
        resources=[
            cls.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
            for kind, name in resources
        ],
        include_synonyms=version >= 1,
    )


def alter_configs(version: int, topic_id: Any) -> Message:
    cls = messages.AlterConfigsRequest
    config = cls.AlterableConfig(name="retention.ms", value="1000")
    return cls(resources=[cls.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[config])])


def incremental_alter_configs(version: int, topic_id: Any) -> Message:
    cls = messages.IncrementalAlterConfigsRequest
    config = cls.AlterableConfig(name="retention.ms", config_operation=1, value=None)
    return cls(resources=[cls.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[config])])


def describe_cluster(version: int, topic_id: Any) -> Message:
    return messages.DescribeClusterRequest(include_cluster_authorized_operations=True)


def describe_log_dirs(version: int, topic_id: Any) -> Message:
    return messages.DescribeLogDirsRequest(topics=None)


def describe_producers(version: int, topic_id: Any) -> Message:
    cls = messages.DescribeProducersRequest
    return cls(topics=[cls.TopicRequest(name=TOPIC, partition_indexes=[0, 9])])


def describe_topic_partitions(version: int, topic_id: Any) -> Message:
    cls = messages.DescribeTopicPartitionsRequest
    return cls(topics=[cls.TopicRequest(name=TOPIC), cls.TopicRequest(name="unknown")])


def elect_leaders(version: int, topic_id: Any) -> Message:
    return messages.ElectLeadersRequest(topic_partitions=None)


def alter_partition_reassignments(version: int, topic_id: Any) -> Message:
    cls = messages.AlterPartitionReassignmentsRequest
    partitions = [cls.ReassignablePartition(partition_index=index, replicas=[1]) for index in (0, 9)]
    return cls(topics=[cls.ReassignableTopic(name=TOPIC, partitions=partitions)])


def list_partition_reassignments(version: int, topic_id: Any) -> Message:
    return messages.ListPartitionReassignmentsRequest(topics=None)


def describe_quorum(version: int, topic_id: Any) -> Message:
    cls = messages.DescribeQuorumRequest
    return cls(topics=[cls.TopicData(topic_name="__cluster_metadata", partitions=[cls.PartitionData()])])


def list_config_resources(version: int, topic_id: Any) -> Message:
    return messages.ListConfigResourcesRequest()


def alter_replica_log_dirs(version: int, topic_id: Any) -> Message:
    return messages.AlterReplicaLogDirsRequest()


def get_telemetry_subscriptions(version: int, topic_id: Any) -> Message:
    return messages.GetTelemetrySubscriptionsRequest()


def update_features(version: int, topic_id: Any) -> Message:
    cls = messages.UpdateFeaturesRequest
    return cls(feature_updates=[cls.FeatureUpdateKey(feature="metadata.version", max_version_level=21)])


def api_versions(version: int, topic_id: Any) -> Message:
    return messages.ApiVersionsRequest(client_software_name="raw", client_software_version="1")


REQUESTS = [
    api_versions,
    create_topics,
    metadata,
    produce,
    fetch,
    list_offsets,
    offset_for_leader_epoch,
    create_partitions,
    delete_records,
    describe_configs,
    alter_configs,
    incremental_alter_configs,
    describe_cluster,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    elect_leaders,
    alter_partition_reassignments,
    list_partition_reassignments,
    describe_quorum,
    list_config_resources,
    alter_replica_log_dirs,
    get_telemetry_subscriptions,
    update_features,
    delete_topics,
]


def error_codes(value: Any) -> set[int]:
    """Return every error code in the JSON of a response."""
    if isinstance(value, list):
        return set().union(*(error_codes(each) for each in value)) if value else set()
    if not isinstance(value, dict):
        return set()
    own = {code for key, code in value.items() if key == "errorCode"}
    return own.union(*(error_codes(each) for each in value.values()))


@pytest.mark.parametrize("make", REQUESTS, ids=lambda make: make.__name__)
def test_every_version_gets_a_response(broker: Broker, make: Any) -> None:
    _, lowest, highest = SERVED[make(0, None).API_KEY]
    with RawClient(broker) as client:
        cls = messages.MetadataRequest
        topics = client.ask(cls(topics=[cls.MetadataRequestTopic(name=TOPIC)]), 12).topics
        for version in range(lowest, highest + 1):
            if make is delete_topics:  # they exist if the test of create_topics ran in this process
                client.ask(create_topics(version, None), 7)
            response = client.ask(make(version, topics[0].topic_id), version)
            codes = error_codes(response.to_json(version=version))
            # none of ours; unknown topics and partitions are asked for above
            assert codes <= {0, 3}, (version, codes)
            assert 0 in codes or not codes


def test_advertised_versions_are_the_served_ones(broker: Broker) -> None:
    with RawClient(broker) as client:
        offered = client.ask(api_versions(5, None), 5)
    assert {key.api_key: (key.min_version, key.max_version) for key in offered.api_keys} == {
        key: (api.lowest, api.highest) for key, api in SERVED.items() if key not in (71, 72)
    }
    assert {feature.name: feature.max_version_level for feature in offered.finalized_features}["metadata.version"] == 21


def test_unstable_versions_are_served_only_if_they_are_enabled(broker: Broker) -> None:
    key, request = messages.InitProducerIdRequest.API_KEY, messages.InitProducerIdRequest(transactional_id=None)
    with RawClient(broker) as client:
        client.send(request, 6)
        assert client.is_closed()
    with Broker(unstable_api_versions_enable=True) as unstable, RawClient(unstable) as client:
        offered = {each.api_key: each.max_version for each in client.ask(api_versions(4, None), 4).api_keys}
        assert offered[key] == 6
        assert {name: each for name, each in offered.items() if each != SERVED[name].highest} == {key: 6}
        response = client.ask(request, 6)
    assert (response.error_code, response.ongoing_txn_producer_id) == (0, -1)


def test_a_topic_without_name_and_id_is_invalid(broker: Broker) -> None:
    cls = messages.MetadataRequest
    with RawClient(broker) as client:
        [topic] = client.ask(cls(topics=[cls.MetadataRequestTopic(name=None)]), 12).topics
    assert topic.error_code == 17


def test_an_unknown_api_versions_request_gets_a_version_0_response(broker: Broker) -> None:
    with RawClient(broker) as client:
        frame = bytearray(client.protocol.send(api_versions(4, None), version=4))
        frame[6:8] = (77).to_bytes(2, "big")
        client.sock.sendall(frame)
        body = messages.ApiVersionsResponse.decode(client.sock.recv(1 << 16)[8:], version=0)
    assert body.error_code == 35
    assert [(key.api_key, key.min_version, key.max_version) for key in body.api_keys] == [(18, 0, 5)]


EXPECTATIONS: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"cluster_id": "own", "node_id": 1}, 0),
    ({"cluster_id": "other", "node_id": 1}, ErrorCode.REBOOTSTRAP_REQUIRED),
    ({"cluster_id": "own", "node_id": 2}, ErrorCode.REBOOTSTRAP_REQUIRED),
    ({"cluster_id": "own"}, ErrorCode.INVALID_REQUEST),
    ({"node_id": 1}, ErrorCode.INVALID_REQUEST),
    ({"cluster_id": "", "node_id": 0}, ErrorCode.REBOOTSTRAP_REQUIRED),
    ({"cluster_id": "other", "node_id": 1, "client_software_name": "-"}, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("expected", "code"), EXPECTATIONS)
def test_a_client_that_expects_another_broker_is_told_so(broker: Broker, expected: dict[str, Any], code: int) -> None:
    own = broker.call(lambda node: node.cluster_id)
    given = {name: own if value == "own" else value for name, value in expected.items()}
    request = messages.ApiVersionsRequest(**{"client_software_name": "raw", "client_software_version": "1", **given})
    with RawClient(broker) as client:
        assert client.ask(request, 4).error_code == (code if "client_software_name" in expected else 0)
        response = client.ask(request, 5)
    assert (response.error_code, not response.api_keys) == (code, code != 0)
