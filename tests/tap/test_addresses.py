"""Where responses have addresses of nodes, and their replacement."""

from __future__ import annotations

import copy
from uuid import UUID

import pytest

from kwire.messages import (
    DescribeClusterResponse,
    FetchResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    ProduceResponse,
    registry,
)
from kwire.messages.base import Message
from kwire.tap.addresses import Node, carriers, carries_addresses, replace_addresses

EXPECTED = {
    "BeginQuorumEpochResponse": ["node_endpoints"],
    "DescribeClusterResponse": ["brokers"],
    "EndQuorumEpochResponse": ["node_endpoints"],
    "FetchResponse": ["node_endpoints"],
    "FetchSnapshotResponse": ["node_endpoints"],
    "FindCoordinatorResponse": ["", "coordinators"],
    "MetadataResponse": ["brokers"],
    "ProduceResponse": ["node_endpoints"],
    "ShareAcknowledgeResponse": ["node_endpoints"],
    "ShareFetchResponse": ["node_endpoints"],
    "UpdateRaftVoterResponse": ["current_leader"],
    "VoteResponse": ["node_endpoints"],
}
LEFT_ALONE = {"DescribeQuorumResponse", "StreamsGroupDescribeResponse", "StreamsGroupHeartbeatResponse"}
"""Responses with a host that is not one of a broker for clients."""


def has_host(struct: object) -> bool:
    fields = struct.fields  # type: ignore[attr-defined]
    return any(field.attr == "host" or (field.struct is not None and has_host(field.struct)) for field in fields)


def test_every_response_with_a_host_is_known() -> None:
    """A release that adds one fails here: is it the address of a node?"""
    responses = {name: registry.get(name) for name in registry.names() if name.endswith("Response")}
    found = {
        name: [each.attr for each in carriers(cls.API_KEY)]
        for name, cls in responses.items()
        if cls.API_KEY is not None and carriers(cls.API_KEY)
    }
    assert found == EXPECTED
    hosts = {name for name, cls in responses.items() if has_host(cls.SPEC.struct)}
    # hosts of ACLs are those of clients
    of_others = {name for name in hosts - set(EXPECTED) - LEFT_ALONE if "Acl" in name}
    assert hosts - of_others == set(EXPECTED) | LEFT_ALONE


def place(node: Node, host: str, port: int) -> tuple[str, int]:
    return "tap", 10_000 + node.node_id + (500 if node.is_controller else 0)


def examples() -> list[tuple[Message, int]]:
    broker = MetadataResponse.MetadataResponseBroker(node_id=2, host="kafka", port=9092)
    described = DescribeClusterResponse.DescribeClusterBroker(broker_id=2, host="kafka", port=9092)
    coordinator = FindCoordinatorResponse.Coordinator(key="g", node_id=2, host="kafka", port=9092)
    return [
        *((MetadataResponse(brokers=[broker]), version) for version in (0, 1, 9, 13)),
        *((FindCoordinatorResponse(node_id=2, host="kafka", port=9092), version) for version in (0, 1, 3)),
        *((FindCoordinatorResponse(coordinators=[coordinator]), version) for version in (4, 6)),
        (DescribeClusterResponse(brokers=[described]), 0),
        (ProduceResponse(node_endpoints=[ProduceResponse.NodeEndpoint(node_id=2, host="kafka", port=9092)]), 10),
        (FetchResponse(node_endpoints=[FetchResponse.NodeEndpoint(node_id=2, host="kafka", port=9092)]), 16),
    ]  # fmt: skip


@pytest.mark.parametrize(("body", "version"), examples(), ids=lambda value: getattr(type(value), "__name__", value))
def test_addresses_are_replaced_in_each_version(body: Message, version: int) -> None:
    assert body.API_KEY is not None
    body = copy.deepcopy(body)  # of several versions
    assert carries_addresses(body.API_KEY, version)
    assert replace_addresses(body, body.API_KEY, version, place)
    sent = type(body).decode(body.encode(version=version), version=version)
    text = str(sent.to_json(version=version))
    assert "kafka" not in text
    assert "'tap'" in text
    assert "10002" in text
    assert not replace_addresses(body, body.API_KEY, version, place), "they are in place already"


def test_versions_before_addresses_are_not_read() -> None:
    assert not carries_addresses(0, 9)
    assert carries_addresses(0, 10)
    assert not carries_addresses(1, 15)
    assert carries_addresses(1, 16)
    assert not carries_addresses(19, 7)
    assert not carries_addresses(31_000, 0)


def test_errors_without_an_address_are_left_alone() -> None:
    body = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert not replace_addresses(body, 10, 3, place)
    assert (body.host, body.port) == ("", -1)


def test_controllers_are_other_nodes_than_brokers_with_their_ids() -> None:
    broker = DescribeClusterResponse.DescribeClusterBroker(broker_id=2, host="kafka", port=9093)
    body = DescribeClusterResponse(endpoint_type=2, brokers=[broker])
    assert replace_addresses(body, 60, 1, place)
    assert body.brokers[0].port == 10_502


def test_records_beside_addresses_are_kept() -> None:
    partition = FetchResponse.PartitionData(partition_index=0, error_code=6, records=b"records")
    topic = FetchResponse.FetchableTopicResponse(topic_id=UUID(int=7), partitions=[partition])
    endpoint = FetchResponse.NodeEndpoint(node_id=2, host="kafka", port=9092, rack="r")
    body = FetchResponse(responses=[topic], node_endpoints=[endpoint])
    assert replace_addresses(body, 1, 17, place)
    assert body.responses[0].partitions[0].records == b"records"
    assert (endpoint.host, endpoint.port, endpoint.rack) == ("tap", 10_002, "r")
