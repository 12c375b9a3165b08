"""The scenarios, a module a chapter."""

from __future__ import annotations

from kwire.conformance.client.chapters import (
    consumer,
    errors,
    fetching,
    formats,
    groups,
    moves,
    producer,
    security,
    transactions,
    versions,
)
from kwire.conformance.client.scenario import Chapter, Scenario

__all__ = ["CHAPTERS", "all_scenarios"]

CHAPTERS: tuple[Chapter, ...] = (
    versions.chapter,
    producer.chapter,
    consumer.chapter,
    fetching.chapter,
    formats.chapter,
    moves.chapter,
    groups.chapter,
    transactions.chapter,
    errors.chapter,
    security.chapter,
)
"""In the order in which they run."""


def all_scenarios() -> list[Scenario]:
    """Return every scenario, by chapter."""
    return [scenario for chapter in CHAPTERS for scenario in chapter.scenarios]
