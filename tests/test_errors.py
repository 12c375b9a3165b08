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
