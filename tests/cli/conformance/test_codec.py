"""The options of `kwire conformance codec`."""

from __future__ import annotations

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--skip", "primitive"],
            "--skip: no chapter 'primitive' (did you mean 'primitives'?); known: primitives, mess",
        ),
        (["--only", "frames", "--only", "nope"], "--only: no chapter 'nope'; known: primitives, messages"),
        (["--only", "primitives", "--only", "primitives/NOPE"], "no case is or begins with 'primitives/NOPE'"),
        (["--only", "primitives", "--skip", "primitives/BOOL"], "no case is or begins with 'primitives/BOOL'"),
    ],
)
def test_words_that_no_case_has_are_errors(words: list[str], message: str, kwire: Callable) -> None:
    """Beside words that cases have, and after --skip, they were ignored."""
    result = kwire("conformance", "codec", *words, "--", "true")
    assert result.code == 2
    assert message in result.err
