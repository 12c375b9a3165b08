"""Kafka's own classes judge the data set of `kwire conformance`, and codecs of several languages run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools.vectors.build import build, contradictions, write
from tools.vectors.releases import JUDGES

from kwire.conformance.vectors import cases, manifest

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


@pytest.mark.gate
def test_the_newest_kafka_agrees_with_every_case() -> None:
    assert contradictions(cases(), JUDGES[-1:]) == []


def test_older_releases_of_kafka_agree_with_every_case() -> None:
    assert contradictions(cases(), JUDGES[:-1]) == []


@pytest.mark.timeout(3600)
def test_the_data_set_built_again_is_equal(tmp_path: Path) -> None:
    made, found = build()
    assert found == []
    write(made, tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest()  # with the digest of each chapter
