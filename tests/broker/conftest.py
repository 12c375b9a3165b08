"""Brokers for tests: one per module, stopped cleanly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kwire.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker on a temporary directory, with Kafka's defaults."""
    with Broker() as running:
        yield running
