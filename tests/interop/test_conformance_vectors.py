"""Kafka's own classes judge the data set of `kwire conformance`, and codecs of several languages run it."""

from __future__ import annotations

import pytest
from tools.vectors.build import contradictions
from tools.vectors.releases import JUDGES

from kwire.conformance.vectors import cases

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


@pytest.mark.gate
def test_the_newest_kafka_agrees_with_every_case() -> None:
    assert contradictions(cases(), JUDGES[-1:]) == []


def test_older_releases_of_kafka_agree_with_every_case() -> None:
    assert contradictions(cases(), JUDGES[:-1]) == []
