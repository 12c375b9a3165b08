"""Dead letter queues of share groups: a real Kafka 4.4.0 writes the letters that tests/broker expects of ours."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.broker.shares.dead_letter_cases import CASES, KAFKA, observe
from tests.broker.test_feature_updates import SHARE, features
from tests.broker.wire import RawClient
from tools import kafka

from kwire.internal_topics.metadata_versions import RELEASES

pytestmark = [pytest.mark.jvm, pytest.mark.slow]

RELEASE = "4.4.0"


def real_kafka(directory: Path) -> kafka.KafkaBroker:
    """Return a Kafka that has not started."""
    return kafka.KafkaBroker(directory, version=RELEASE, heap="384m", **KAFKA)  # type: ignore[arg-type]


def test_letters_are_those_of_kafka(tmp_path: Path) -> None:
    with real_kafka(tmp_path) as real, RawClient(real) as client:  # type: ignore[arg-type]
        seen = {case.name: observe(client, case, lambda ms: time.sleep(ms / 1000)) for case in CASES}
        assert features(client)[1][SHARE] == RELEASES["4.4"].features[SHARE] == 2
    assert seen == {case.name: case.letters for case in CASES}
