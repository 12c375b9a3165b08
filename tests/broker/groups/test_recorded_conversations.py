"""Recorded group requests of real clients, replayed to our broker.

With 3.9.1: Java's consumers of both protocols and its transactional producer, librdkafka, kafka-python, aiokafka. With
2.8: Java's of 0.9, 0.10 and 3.9, librdkafka.

The broker generates member ids and topic ids: requests are sent with ours instead of the recorded ones, which are
restored before responses are compared.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
from collections import Counter, deque
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.broker.node import Node
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol import request_codec, response_codec
from tests.waiting import HANG_S

GROUP_APIS = {8, 9, 10, 11, 12, 13, 14, 68}
NOT_YET = {14, 15, 16}
"""COORDINATOR_LOAD_IN_PROGRESS and its like: what a broker says while it makes or reads __consumer_offsets."""
DIFFERENT = {"host", "port", "nodeId", "throttleTimeMs"}

Exchange = tuple[dict[str, Any], bytes, dict[str, Any]]


def exchanges(folder: Path, name: str) -> list[Exchange]:
    """Return (request decoded by Kafka, its bytes, response decoded by Kafka) of groups, in order of requests."""
    found: list[list[Any]] = []
    open_requests: dict[int, deque[list[Any] | None]] = {}
    with (
        gzip.open(folder / f"{name}.frames.jsonl.gz", "rt") as wire,
        gzip.open(folder / f"{name}.decoded.jsonl.gz", "rt") as decoded,
    ):
        for raw, text in zip(wire, decoded, strict=True):
            frame = json.loads(text)
            waiting = open_requests.setdefault(frame["conn"], deque())
            if frame["dir"] == "c2s":
                about_groups = frame["apiKey"] in GROUP_APIS and frame["body"].get("keyType", 0) == 0
                waiting.append([frame, base64.b64decode(json.loads(raw)["b64"])] if about_groups else None)
                if about_groups:
                    found.append(waiting[-1])  # type: ignore[arg-type]
            elif waiting and (exchange := waiting.popleft()) is not None:
                exchange.append(frame)
    return [tuple(exchange) for exchange in found if len(exchange) == 3]  # type: ignore[misc]


def values(value: Any, key: str) -> list[Any]:
    """Return all values of a key at any depth."""
    if isinstance(value, list):
        return [found for each in value for found in values(each, key)]
    if isinstance(value, dict):
        return [found for name, each in value.items() for found in ([each] if name == key else values(each, key))]
    return []


def exchanged(value: Any, table: dict[str, str]) -> Any:
    """Return JSON with some strings replaced."""
    if isinstance(value, list):
        return [exchanged(each, table) for each in value]
    if isinstance(value, dict):
        return {name: exchanged(each, table) for name, each in value.items() if name not in DIFFERENT}
    return table.get(value, value) if isinstance(value, str) else value


def topics_of(exchange: Exchange) -> dict[str, int]:
    """Return the topics whose offsets are committed or fetched, with the number of partitions required."""
    counts: Counter[str] = Counter()
    for request_topics in values(exchange[0]["body"], "topics"):
        for topic in request_topics or ():
            numbers = values(topic, "partitionIndex") + [n for ns in values(topic, "partitionIndexes") for n in ns]
            counts[topic["name"]] = max([counts[topic["name"]], *(n + 1 for n in numbers)])
    return counts


class Conversation:
    """Connections to our broker that stand for the recorded ones."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.sockets: dict[int, socket.socket] = {}
        self.ours: dict[str, str] = {}  # what their broker made up -> what ours did

    def ask(self, request: dict[str, Any], wire: bytes, response: dict[str, Any]) -> tuple[Any, Any]:
        """Send a request and return comparable (recorded response, our response)."""
        conn, api_key, version = request["conn"], request["apiKey"], request["apiVersion"]
        if conn not in self.sockets:
            self.sockets[conn] = socket.create_connection(self.address, timeout=HANG_S)
        codec = request_codec(api_key, version)
        header, body = codec.decode(wire)
        cls: type[Message] = registry.request(api_key)
        as_json = body.to_json(version=version)
        mine = json.loads(json.dumps(as_json))
        for theirs, ours in self.ours.items():
            mine = json.loads(json.dumps(mine).replace(json.dumps(theirs), json.dumps(ours)))
        self.sockets[conn].sendall(codec.encode((header, cls.from_json(mine, version=version))))
        head = self.sockets[conn].recv(4, socket.MSG_WAITALL)
        frame = head + self.sockets[conn].recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
        answer = response_codec(api_key, version).decode(frame)[1].to_json(version=version)
        for key in ("memberId", "topicId"):
            for theirs, ours in zip(values(response["body"], key), values(answer, key), strict=False):
                if theirs:
                    self.ours.setdefault(theirs, ours)
        back = {ours: theirs for theirs, ours in self.ours.items()}
        return exchanged(response["body"], {}), exchanged(answer, back)

    def close(self) -> None:
        for sock in self.sockets.values():
            sock.close()


@pytest.mark.parametrize(("name", "least"), [("k391", 35), ("k282", 20)])
def test_recorded_group_requests_get_the_recorded_responses(name: str, least: int, kafka_logs: dict[str, Path]) -> None:
    folder = next(kafka_logs["wire"].rglob(f"{name}.frames.jsonl.gz")).parent
    recorded = exchanges(folder, name)
    topics: Counter[str] = Counter()
    for exchange in recorded:
        for topic, count in topics_of(exchange).items():
            topics[topic] = max(topics[topic], count)

    def make_topics(node: Node) -> None:
        for topic, count in topics.items():
            node.controller.create_topic(topic, count)

    compared: Counter[str] = Counter()
    with Broker(offsets_topic_num_partitions=3, group_consumer_heartbeat_interval_ms=5000) as broker:
        broker.call(make_topics)
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with contextlib.closing(Conversation((host, int(port)))) as conversation:
            for request, wire, response in recorded:
                if NOT_YET & set(values(response["body"], "errorCode")):
                    continue
                theirs, ours = conversation.ask(request, wire, response)
                assert ours == theirs, (request["api"], request["apiVersion"], request["conn"], request["i"])
                compared[request["api"]] += 1
    assert sum(compared.values()) >= least, compared
    assert set(compared) >= {"JoinGroup", "SyncGroup", "LeaveGroup", "OffsetCommit", "OffsetFetch", "FindCoordinator"}
