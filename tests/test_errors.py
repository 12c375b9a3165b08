"""Suggestions in error messages."""

from __future__ import annotations

import pytest

from kwire.errors import did_you_mean


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("order", " (did you mean 'orders'?)"),
        ("ORDERS", " (did you mean 'orders'?)"),
        ("subscribepattern", " (did you mean 'subscribePattern'?)"),
        ("x", ""),
    ],
)
def test_a_close_name_is_suggested_in_its_own_spelling(name: str, suggestion: str) -> None:
    assert did_you_mean(name, ["payments", "orders", "subscribePattern"]) == suggestion


def test_long_names_are_not_compared() -> None:
    for length, suggestion in ((200, True), (201, False)):
        assert bool(did_you_mean("x" * length, ["x" * (length - 1) + "y"])) == suggestion
    assert did_you_mean("orders", ["x" * 1000, "order"]) == " (did you mean 'order'?)"
    assert not did_you_mean("ab" * 500_000, ["ba" * 500_000])  # hours
