"""The checks, a module a chapter."""

from __future__ import annotations

from kwire.conformance.broker.chapters import (
    acls,
    admin,
    denied,
    error_paths,
    fetch,
    framing,
    groups,
    metadata,
    offsets,
    produce,
    quotas,
    sasl,
    tags,
    telemetry,
    transactions,
    versions,
)
from kwire.conformance.broker.checks import BrokerCheck, Chapter

__all__ = ["CHAPTERS", "all_checks"]

CHAPTERS: tuple[Chapter, ...] = (
    framing.chapter,
    versions.chapter,
    metadata.chapter,
    produce.chapter,
    fetch.chapter,
    offsets.chapter,
    groups.chapter,
    transactions.chapter,
    admin.chapter,
    sasl.chapter,
    acls.chapter,
    denied.chapter,
    quotas.chapter,
    telemetry.chapter,
    error_paths.chapter,
    tags.chapter,
)
"""In the order in which they run."""


def all_checks() -> list[BrokerCheck]:
    """Return every check, by chapter."""
    return [check for chapter in CHAPTERS for check in chapter.checks]
