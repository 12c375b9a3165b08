"""Recorded conversations of real clients with real brokers, replayed to ours.

Requests are sent in the order of the capture, each on a connection that stands for the recorded one, with generated
values of the recorded broker (topic ids, fetch session ids) replaced by ours. Responses are compared as JSON, without
values that differ between brokers: ids, addresses, times.
"""

from __future__ import annotations

import base64
import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kwire import records
from kwire.messages import registry
from kwire.protocol import request_codec, response_codec
from tests.waiting import HANG_S

API_VERSIONS, FETCH, METADATA, CREATE_TOPICS = 18, 1, 3, 19
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
SELDOM_EQUAL = {"clusterId", "host", "port", "controllerId", "apiKeys", "throttleTimeMs"}
FEATURES = {"supportedFeatures", "finalizedFeatures", "finalizedFeaturesEpoch"}


def frames(folder: Path, name: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Return (decoded by Kafka, bytes) of every frame, in the order of the capture."""
    with (
        gzip.open(folder / f"{name}.frames.jsonl.gz", "rt") as wire,
        gzip.open(folder / f"{name}.decoded.jsonl.gz", "rt") as decoded,
    ):
        for raw, read in zip(wire, decoded, strict=True):
            yield json.loads(read), base64.b64decode(json.loads(raw)["b64"])


def read_frame(sock: socket.socket) -> bytes:
    """Read one frame with its length."""
    head = sock.recv(4, socket.MSG_WAITALL)
    assert len(head) == 4, "the broker closed the connection"
    return head + sock.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)


class Replay:
    """A conversation with the broker at an address. skip: predicate of decoded requests that are not sent."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.sockets: dict[int, socket.socket] = {}
        self.theirs_by_id: dict[str, str] = {}  # topic id of the recorded broker -> name
        self.ours_by_name: dict[str, str] = {}
        self.sessions: dict[int, int] = {}  # recorded fetch session -> ours

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self.sockets.values():
            sock.close()

    def send(self, decoded: dict[str, Any], wire: bytes) -> None:
        """Send a recorded request."""
        conn = decoded["conn"]
        if conn not in self.sockets:
            self.sockets[conn] = socket.create_connection(self.address, timeout=HANG_S)
        if decoded["apiKey"] == FETCH:
            wire = self._own_fetch(decoded, wire)
        self.sockets[conn].sendall(wire)

    def _own_fetch(self, decoded: dict[str, Any], wire: bytes) -> bytes:
        codec = request_codec(FETCH, decoded["apiVersion"])
        header, body = codec.decode(wire)
        body.session_id = self.sessions.get(body.session_id, body.session_id)
        cls = registry.request(FETCH)
        as_json = body.to_json(version=decoded["apiVersion"])
        for topic in as_json["topics"] + as_json.get("forgottenTopicsData", []):
            if topic.get("topicId", NO_ID) != NO_ID:
                topic["topicId"] = self.ours_by_name[self.theirs_by_id[topic["topicId"]]]
        return codec.encode((header, cls.from_json(as_json, version=decoded["apiVersion"])))

    def receive(self, decoded: dict[str, Any], wire: bytes) -> tuple[Any, Any]:
        """Return (recorded response, our response) as JSON."""
        api_key, version = decoded["apiKey"], decoded["apiVersion"]
        if api_key == API_VERSIONS and decoded["body"]["errorCode"] == 35:
            version = 0
        codec = response_codec(api_key, version)
        theirs = codec.decode(wire)[1].to_json(version=version)
        ours = codec.decode(read_frame(self.sockets[decoded["conn"]]))[1].to_json(version=version)
        if api_key in (METADATA, CREATE_TOPICS):
            self._learn(theirs, self.theirs_by_id, by_id=True)
            self._learn(ours, self.ours_by_name, by_id=False)
        if api_key == FETCH:
            self.sessions[theirs.get("sessionId", 0)] = ours.get("sessionId", 0)
        names = {topic_id: name for name, topic_id in self.ours_by_name.items()}
        return comparable(theirs, self.theirs_by_id), comparable(ours, names)

    @staticmethod
    def _learn(response: dict[str, Any], into: dict[str, str], *, by_id: bool) -> None:
        for topic in response["topics"]:
            topic_id = topic.get("topicId", NO_ID)
            if topic_id != NO_ID:
                into.update({topic_id: topic["name"]} if by_id else {topic["name"]: topic_id})


def comparable(value: Any, names: dict[str, str]) -> Any:
    """Return JSON without values that differ between brokers; topic ids become names, session ids become flags."""
    if isinstance(value, list):
        found = [comparable(each, names) for each in value]
        for key in ("partitionIndex", "index"):  # some responses have the order of a Java map
            if found and isinstance(found[0], dict) and key in found[0]:
                found.sort(key=lambda each: each[key])
        return found
    if not isinstance(value, dict):
        return value
    found = {key: comparable(each, names) for key, each in value.items() if key not in SELDOM_EQUAL | FEATURES}
    if "topicId" in found:
        found["topicId"] = names.get(found["topicId"], found["topicId"])
    if "sessionId" in found:
        found["sessionId"] = found["sessionId"] != 0
    if found.get("records"):
        found["records"] = as_converted(base64.b64decode(found["records"])) or found["records"]
    if found.get("logAppendTimeMs", -1) > 0:
        found["logAppendTimeMs"] = "a time"
    return found


def as_converted(data: bytes) -> list[Any]:
    """Return the contents of records that a broker compressed, since the bytes differ, or an empty list.

    The list includes the total size, which is announced before anything is compressed (U-15).
    """
    batches = list(records.read_batches(data))
    if all(batch.magic == 2 or not batch.compression for batch in batches):
        return []
    found: list[Any] = [len(data)]
    for batch in batches:
        found.append((batch.base_offset, batch.last_offset, batch.magic, batch.compression.name))
        found += [(record.offset, record.timestamp, record.key, record.value) for record in batch.records()]
    return found
