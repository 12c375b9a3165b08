"""Dead letter queues of share groups: a real Kafka 4.4.0 writes the letters and states that ours does.

A directory with them is taken over in both directions.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.broker.shares.dead_letter_cases import (
    CASES,
    CLIENT,
    COUNT,
    ENABLED,
    KAFKA,
    OURS,
    Case,
    acknowledge,
    archiving,
    ask_all,
    joined,
    lag,
    letters_of,
    observe,
    topic_id_of,
)
from tests.broker.shares.harness import acquired
from tests.broker.test_feature_updates import SHARE, UP, features, update
from tests.broker.wire import RawClient
from tests.waiting import until
from tools import kafka

from kwire.broker import Broker
from kwire.internal_topics.coordinator_records import decode_share_state
from kwire.internal_topics.metadata_versions import RELEASES
from kwire.internal_topics.names import SHARE_STATE_TOPIC
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.topics.history import read_history

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

RELEASE = "4.4.0"
COPIED = next(case for case in CASES if case.name == "copied")


def real_kafka(directory: Path) -> kafka.KafkaBroker:
    """Return a Kafka that has not started."""
    return kafka.KafkaBroker(directory, version=RELEASE, heap="384m", **KAFKA)  # type: ignore[arg-type]


def states(directory: Path) -> dict[tuple[str, int], list[Any]]:
    """Return the records of each group and partition in the topic for states, less ids and times."""
    log, found = LogDirectory(directory), {}
    for topic, index in log:
        for record in read_history(log[topic, index], decode_share_state) if topic == SHARE_STATE_TOPIC else ():
            value = record.value
            batches = sorted(
                (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in value.state_batches
            )
            shown = record.kind, value.start_offset, value.delivery_complete_count, batches
            found.setdefault((record.key.group_id, record.key.partition), []).append(shown)
    return found


def test_letters_and_states_are_those_of_kafka(tmp_path: Path) -> None:
    """Of states, Kafka joins or exchanges writes that are under way at once: two cases have more than one."""
    with real_kafka(tmp_path) as real, RawClient(real) as client:  # type: ignore[arg-type]
        seen = {case.name: observe(client, case, lambda ms: time.sleep(ms / 1000)) for case in CASES}
        assert features(client)[1][SHARE] == RELEASES["4.4"].features[SHARE] == 2
    assert seen == {case.name: case.letters for case in CASES}
    with Broker(tmp_path / "ours", **OURS) as broker, RawClient(broker) as client:
        for case in CASES:
            observe(client, case, broker.advance)
    theirs, ours = states(tmp_path / "data"), states(tmp_path / "ours")
    assert theirs.keys() == ours.keys()
    joined_writes = [("expired", 0), ("released", 0)]
    assert {key: each for key, each in ours.items() if each != theirs[key] and key not in joined_writes} == {}


CASE = Case(
    name="moved",
    steps=[],
    letters=[(0, b"k", b"a", 0, 3, CLIENT), (0, b"k", b"b", 1, 5, COUNT), (0, b"k", b"c", 2, 1, CLIENT)],
    group=COPIED.group,
    queue=ENABLED,
)


def begin(client: RawClient) -> None:
    """Leave two records that are being copied, and one that was not delivered."""
    ask_all(client, CASE)
    joined(client, CASE.name, topic_id_of(client, CASE.name)).heartbeat(-1)
    archiving(client, CASE, 3, 5)


def go_on(client: RawClient) -> None:
    """Reject the last record, and expect the letters of all three."""
    member = joined(client, CASE.name, topic_id_of(client, CASE.name))
    found: list[tuple[int, int, int]] = []

    def fetched() -> bool:
        found.extend(acquired(member.fetch(partitions=[] if member.epoch else [0], max_wait_ms=200)))
        return bool(found)

    until(fetched)
    assert found == [(2, 2, 1)]
    assert acknowledge(member, [(2, 2, [3])]) == (0, None)
    until(lambda: lag(client, CASE.name) == 0)
    assert letters_of(client, CASE) == CASE.letters


def test_kafka_copies_what_ours_was_copying(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", **OURS) as broker, RawClient(broker) as client:
        assert update(client, 2, [(SHARE, 2, UP)])[0] == 0
        begin(client)
    with real_kafka(tmp_path) as real, RawClient(real) as client:  # type: ignore[arg-type]
        assert features(client)[1][SHARE] == 2
        go_on(client)
    with Broker(tmp_path / "data", **OURS) as broker, RawClient(broker) as client:
        assert letters_of(client, CASE) == CASE.letters
        again = replace(COPIED, name="again", letters=COPIED.letters)
        assert observe(client, again, broker.advance) == COPIED.letters


def test_ours_copies_what_kafka_was_copying(tmp_path: Path) -> None:
    with real_kafka(tmp_path) as real, RawClient(real) as client:  # type: ignore[arg-type]
        begin(client)
    with Broker(tmp_path / "data", **OURS) as broker, RawClient(broker) as client:
        assert features(client)[1][SHARE] == 2
        go_on(client)
    with real_kafka(tmp_path) as real, RawClient(real) as client:  # type: ignore[arg-type]
        assert letters_of(client, CASE) == CASE.letters
