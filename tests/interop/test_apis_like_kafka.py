"""Every API of a running Kafka 4.4.0 responds as it is recorded, which tests/broker compares with ours.

`python -m tests.interop.test_apis_like_kafka` records them again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.broker.api_requests import KAFKA, OLD_FEATURES, outcomes, read_recorded, write_recorded
from tools import kafka

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

LEVELS = {KAFKA: {"streams.version": 0}, OLD_FEATURES: {"share.version": 1, "transaction.version": 2}}
"""Features that are changed: streams groups are off, and those of a new broker of ours on."""


def of_kafka(directory: Path, features: str) -> dict[str, Any]:
    """Return the outcomes of a new Kafka 4.4.0 with the features of a release."""
    settings: dict[str, str | int] = {
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
    }
    with kafka.KafkaBroker(directory, version=KAFKA, release=features, heap="384m", **settings) as broker:
        return outcomes(broker, LEVELS[features])


@pytest.mark.parametrize("features", LEVELS)
def test_kafka_responds_as_it_is_recorded(tmp_path: Path, features: str) -> None:
    seen, recorded = of_kafka(tmp_path, features), read_recorded()[features]
    assert {name: each for name, each in seen.items() if each != recorded.get(name)} == {}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        write_recorded({features: of_kafka(Path(directory) / features, features) for features in LEVELS})
