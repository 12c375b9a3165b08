"""Fixtures of the cleaner's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.records.both_paths import without_compiled_code


@pytest.fixture(params=["compiled", "plain"], scope="module")
def path(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the tests of a module with and without compiled code."""
    if request.param == "compiled":
        yield
    else:
        with without_compiled_code():
            yield
