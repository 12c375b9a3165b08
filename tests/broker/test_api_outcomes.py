"""Requests of all APIs have the outcomes that are recorded of Kafka 4.4.0, and the same APIs are listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kwire.broker import Broker
from kwire.broker.apis import SERVED
from kwire.messages import registry
from tests.broker.api_requests import CASES, CLOSED, KAFKA, OLD_FEATURES, outcomes, read_recorded

TELEMETRY = {71, 72}
DIFFERENT = {
    "Fetch 18: some": "Kafka lists a topic again for each run of its partitions with errors and without",
    "ListConfigResources 1: topics": "internal topics are created by the first record, in Kafka by the first client",
}
"""Cases with other outcomes, and why."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, Any]]:
    return read_recorded()


@pytest.fixture(scope="module")
def ours() -> Iterator[dict[str, Any]]:
    with Broker() as broker:
        yield outcomes(broker)


def test_every_request_has_the_outcome_of_kafka(ours: dict[str, Any], recorded: dict[str, dict[str, Any]]) -> None:
    """That of Kafka with the features of a new cluster, or with those that a new broker of ours has."""
    theirs = {name: [recorded[features][name] for features in (KAFKA, OLD_FEATURES)] for name in ours}
    listed = {each.name for each in CASES if each.api == "ApiVersions"}
    differing = {name: each for name, each in ours.items() if name not in listed and each not in theirs[name]}
    assert {name: each for name, each in differing.items() if name not in DIFFERENT} == {}
    assert differing.keys() == DIFFERENT.keys()
    assert recorded[KAFKA].keys() == ours.keys()


def test_the_listed_apis_are_those_of_kafka(ours: dict[str, Any], recorded: dict[str, dict[str, Any]]) -> None:
    name = "ApiVersions 5: no expectation"

    def versions(outcome: dict[str, Any]) -> dict[int, tuple[int, int]]:
        return {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in outcome["apiKeys"]}

    of_kafka, own = versions(recorded[KAFKA][name]), versions(ours[name])
    assert {key: highest for key, (_, highest) in own.items()} == {key: each[1] for key, each in of_kafka.items()}
    assert own == {key: (api.lowest, api.highest) for key, api in SERVED.items() if key not in TELEMETRY}
    for key, (lowest, _) in of_kafka.items():
        assert own[key][0] == (lowest if lowest == own[key][0] else 0)  # versions that Kafka 4 removed


def test_every_version_response_has_the_error_of_kafka(
    ours: dict[str, Any], recorded: dict[str, dict[str, Any]]
) -> None:
    for each in CASES:
        if each.api == "ApiVersions":
            own, theirs = ours[each.name], recorded[KAFKA][each.name]
            assert own["errorCode"] == theirs["errorCode"], each.name
            assert bool(own["apiKeys"]) == bool(theirs["apiKeys"]), each.name


def test_every_api_is_asked_for(recorded: dict[str, dict[str, Any]]) -> None:
    asked = {registry.get(f"{each.api}Request").API_KEY for each in CASES}
    shares = {79, 83, 84, 85, 86, 87, 91}  # tests/interop/test_share_groups.py
    assert SERVED.keys() - asked <= shares | TELEMETRY
    assert CLOSED in recorded[KAFKA].values()
