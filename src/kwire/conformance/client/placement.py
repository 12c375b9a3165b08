"""Where leaders and coordinators are: one broker, shown as several nodes.

Node 1 is where everything is at first. A partition that was moved has a leader epoch of its own, which requests are
checked against here, as the broker behind knows nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from kwire.messages.base import ZERO_UUID
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.requests import request_codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kwire.conformance.client.exchange import Exchange

__all__ = ["LOCALHOST", "Placement"]

LOCALHOST = "127.0.0.1"
ANY_NODE, NO_NODE, BROKER = -1, 0, 1
"""Ids of nodes: of a client that expects none, of none that exists, of the broker behind."""
GROUP_APIS = frozenset(
    {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat"}
)
TXN_APIS = frozenset({"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "InitProducerId"})
LEADER_APIS = frozenset({"Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch"})


class Placement:
    """Nodes with their ports, and what is on which.

    leaders, epochs: by (topic, partition); node 1 and the broker's epoch for those that were not moved; a leader of -1
    is none. topic_ids: names by id. topics: the names that Metadata shows.
    """

    def __init__(self, nodes: int = 1) -> None:
        self.nodes = list(range(1, nodes + 1))
        self.ports: dict[int, int] = {}
        self.leaders: dict[tuple[str, int], int] = {}
        self.epochs: dict[tuple[str, int], int] = {}
        self.coordinator = 1
        self.topic_ids: dict[UUID, str] = {}
        self.topics: set[str] = set()
        self.gone: set[int] = set()

    def move(self, topic: str, partition: int, node: int) -> None:
        """Make a node the leader of a partition, in the next leader epoch."""
        self.leaders[topic, partition] = node
        self.epochs[topic, partition] = self.epochs.get((topic, partition), 0) + 1

    def leader(self, topic: str, partition: int) -> int:
        """Return the leader of a partition."""
        return self.leaders.get((topic, partition), 1)

    # Requests

    def refusal(self, exchange: Exchange) -> ErrorCode | None:
        """Return the error of a request that is at the wrong node, or has another leader epoch."""
        api, body = exchange.api, exchange.body
        if api in GROUP_APIS or (api in TXN_APIS and getattr(body, "transactional_id", "") is not None):
            return None if exchange.node == self.coordinator else ErrorCode.NOT_COORDINATOR
        if api not in LEADER_APIS:
            return None
        for topic, part in self._partitions(body):
            index = next(
                getattr(part, name) for name in ("index", "partition", "partition_index") if hasattr(part, name)
            )
            if self.leader(topic, index) != exchange.node:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            epoch, known = getattr(part, "current_leader_epoch", -1), self.epochs.get((topic, index))
            if known is not None and epoch >= 0 and epoch != known:
                return ErrorCode.FENCED_LEADER_EPOCH if epoch < known else ErrorCode.UNKNOWN_LEADER_EPOCH
        return None

    def _partitions(self, body: Any) -> Iterator[tuple[str, Any]]:
        topics: list[Any] = getattr(body, "topic_data", None) or getattr(body, "topics", None) or []
        for topic in topics:
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            name: Any = self.topic_ids.get(topic_id) or getattr(topic, "name", "") or getattr(topic, "topic", "")
            parts: list[Any] = getattr(topic, "partition_data", None) or getattr(topic, "partitions", None) or []
            for part in parts:
                yield name, part

    def forwarded(self, exchange: Exchange) -> bytes:
        """Return the frame that the broker gets: without node ids and leader epochs that only this cluster has."""
        request, body = exchange.request, exchange.body
        assert request is not None
        changed: list[tuple[Any, str, int]] = []
        if exchange.api == "ApiVersions":  # version 5 names the node that the client expects
            if body is not None and body.node_id != ANY_NODE:
                changed = [(body, "node_id", BROKER if body.node_id == exchange.node else NO_NODE)]
        elif self.epochs:
            parts = [part for _, part in self._partitions(body) if getattr(part, "current_leader_epoch", -1) >= 0]
            changed = [(part, "current_leader_epoch", -1) for part in parts]
        if not changed:
            return exchange.frame
        kept = [(owner, name, getattr(owner, name)) for owner, name, _ in changed]
        try:
            for owner, name, value in changed:
                setattr(owner, name, value)
            return request_codec(request.api_key, request.version).encode((request.header, body))
        finally:
            for owner, name, value in kept:
                setattr(owner, name, value)

    # Responses

    def rewrite(self, exchange: Exchange, body: Any) -> None:
        """Name this cluster's nodes in a response."""
        if exchange.api == "Metadata":
            self._metadata(body)
        elif exchange.api == "FindCoordinator":
            self._coordinator(body)
        elif exchange.api == "DescribeCluster":
            body.brokers = [
                type(body).DescribeClusterBroker(broker_id=node, host=LOCALHOST, port=self.ports[node])
                for node in self.nodes
            ]

    def _metadata(self, body: Any) -> None:
        body.brokers = [
            type(body).MetadataResponseBroker(node_id=node, host=LOCALHOST, port=self.ports[node])
            for node in self.nodes
            if node not in self.gone
        ]
        body.controller_id = 1
        body.topics = [topic for topic in body.topics if topic.name in self.topics or topic.error_code]
        for topic in body.topics:
            for part in topic.partitions:
                key = (topic.name, part.partition_index)
                part.leader_id = self.leaders.get(key, 1)
                part.leader_epoch = self.epochs.get(key, part.leader_epoch)
                part.replica_nodes, part.isr_nodes = list(self.nodes), list(self.nodes)
                if part.leader_id < 0:
                    part.error_code = ErrorCode.LEADER_NOT_AVAILABLE

    def _coordinator(self, body: Any) -> None:
        for each in [body, *body.coordinators]:
            if not each.error_code and (each is not body or not body.coordinators):
                each.node_id, each.host, each.port = self.coordinator, LOCALHOST, self.ports[self.coordinator]
