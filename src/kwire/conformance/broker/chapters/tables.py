"""What the tables of checks share: the versions of each API by release, as words."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

__all__ = ["api_versions", "code_of", "released"]

FILE = "api_versions.json"


@functools.cache
def _table() -> dict[str, dict[str, list[int]]]:
    table: dict[str, dict[str, list[int]]] = json.loads(
        resources.files("kwire.conformance.broker").joinpath(FILE).read_text("utf-8")
    )
    return table


def api_versions(api: str) -> range:
    """Return every version of an API that any release since 2.0 has, without unstable ones."""
    ranges = _table()[api].values()
    return range(min(low for low, _ in ranges), max(high for _, high in ranges) + 1)


def released(api: str, version: int) -> dict[str, Any]:
    """Return the fields since and until of a check of one version: minor releases; None is open.

    since is None for what the oldest known release has, until for what the newest has.
    """
    table = _table()
    known = sorted({release for ranges in table.values() for release in ranges}, key=_order)
    having = [name for name, (low, high) in sorted(table[api].items(), key=_by_release) if low <= version <= high]
    since, until = having[0], having[-1]
    return {
        "since": None if since == known[0] else since,
        "until": None if until == known[-1] else until,
    }


def _order(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def _by_release(item: tuple[str, list[int]]) -> tuple[int, ...]:
    return _order(item[0])


def code_of(api: str) -> str:
    """Return the name of an API in ids: DESCRIBE-GROUPS for DescribeGroups."""
    return "".join(f"-{c}" if c.isupper() and i else c for i, c in enumerate(api)).upper()
