"""Recorded requests of real clients, replayed to our broker, get the recorded responses."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from pathlib import Path
from typing import Any

import pytest

from kwire.broker import Broker
from tests.broker.replay import Replay, frames

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE, DELETE, GROW, ALTER = 0, 1, 2, 3, 18, 19, 20, 37, 44
WITHOUT_SESSIONS_OF_OTHERS = {PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS, CREATE, DELETE, GROW, ALTER}
"""What can be asked without what the recorded broker has made up: members of groups, producer ids."""
TRANSACTIONAL_TOPIC = "wtx"
LIMITED_IN_KAFKA_4 = "message.timestamp.after.max.ms"
SETTINGS = {
    "k391": {"log_retention_ms": -1},
    "k282": {"log_retention_ms": -1, "node_id": 0},
}
"""Create the state that the recorded brokers had."""


def is_replayed(name: str, decoded: dict[str, Any]) -> bool:
    """Return whether a recorded request is replayed."""
    body, api_key = decoded["body"], decoded["apiKey"]
    if api_key not in WITHOUT_SESSIONS_OF_OTHERS or TRANSACTIONAL_TOPIC in str(body.get("topicData")):
        return False
    if api_key == ALTER:  # a setting of Kafka's cleaner threads, which ours does not have
        return "log.cleaner.threads" not in str(body)
    return name != "k282" or api_key != API_VERSIONS  # 2.8 refuses versions that we have


def without_settings(response: dict[str, Any]) -> dict[str, Any]:
    """Return CreateTopics responses without configs, which depend on the release."""
    for topic in response["topics"]:
        topic.pop("configs", None)
    return response


def with_shared_settings(theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return CreateTopics responses with the configs that both releases have, with the same default."""
    for mine, other in zip(ours["topics"], theirs["topics"], strict=True):
        for one, another in ((mine, other), (other, mine)):
            known = {config["name"] for config in another.get("configs") or ()} - {LIMITED_IN_KAFKA_4}
            if one.get("configs"):
                one["configs"] = [config for config in one["configs"] if config["name"] in known]
    return theirs, ours


@pytest.mark.requirement("W-80", "W-85", "U-01", "U-02", "D-01", "D-08", "A-22")
@pytest.mark.parametrize(("name", "least"), [("k391", 120), ("k282", 60)])
def test_recorded_requests_get_the_recorded_responses(name: str, least: int, kafka_logs: dict[str, Path]) -> None:
    folder = next(kafka_logs["wire"].rglob(f"{name}.frames.jsonl.gz")).parent
    waiting: dict[int, deque[bool]] = defaultdict(deque)
    compared: Counter[str] = Counter()
    with Broker(**SETTINGS[name]) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with Replay((host, int(port))) as replay:
            for decoded, wire in frames(folder, name):
                if decoded["dir"] == "c2s":
                    waiting[decoded["conn"]].append(is_replayed(name, decoded))
                    if waiting[decoded["conn"]][-1]:
                        replay.send(decoded, wire)
                elif waiting[decoded["conn"]].popleft():
                    theirs, ours = replay.receive(decoded, wire)
                    if decoded["apiKey"] == CREATE and name == "k282":
                        theirs, ours = without_settings(theirs), without_settings(ours)
                    elif decoded["apiKey"] == CREATE:
                        theirs, ours = with_shared_settings(theirs, ours)
                    assert ours == theirs, (decoded["api"], decoded["apiVersion"], decoded["conn"], decoded["i"])
                    compared[decoded["api"]] += 1
    assert sum(compared.values()) >= least
    assert set(compared) >= {"Metadata", "Produce", "Fetch", "ListOffsets", "CreateTopics"}
