"""Cases of a parametrized test: a few in every run, the others where there is time.

mostly_slow(cases)          of one list of cases, as of a fixture
@pytest.mark.sampled(3)     of all lists of a test together
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["mark_sampled", "mostly_slow"]


def mostly_slow(cases: Sequence[Any], quick: int = 1) -> list[Any]:
    """Return the cases with all but the first ones marked slow: ./dev test runs those, ./dev interop the others.

    cases: values, or tuples where a test takes several arguments.
    """
    slow = (case if isinstance(case, tuple) else (case,) for case in cases[quick:])
    return [*cases[:quick], *(pytest.param(*each, marks=pytest.mark.slow) for each in slow)]


def mark_sampled(items: Sequence[pytest.Item]) -> None:
    """Mark the cases of sampled tests slow but the first ones."""
    seen = Counter[str]()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > (sampled.args[0] if sampled.args else 1):
                item.add_marker(pytest.mark.slow)
