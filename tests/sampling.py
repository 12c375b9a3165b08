"""Cases of a parametrized test: a few in every run, the others where there is time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["mostly_slow"]


def mostly_slow(cases: Sequence[Any], quick: int = 1) -> list[Any]:
    """Return the cases with all but the first ones marked slow: ./dev test runs those, ./dev interop the others.

    cases: values, or tuples where a test takes several arguments.
    """
    slow = (case if isinstance(case, tuple) else (case,) for case in cases[quick:])
    return [*cases[:quick], *(pytest.param(*each, marks=pytest.mark.slow) for each in slow)]
