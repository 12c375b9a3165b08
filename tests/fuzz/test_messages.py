"""A short run of the message fuzzers; `./dev fuzz` runs them for long."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.fuzz import encodings, messages
from tests.waiting import HANG_S


def test_kernel_and_walker_agree_on_mutated_messages() -> None:
    messages.run(6_000, seed=20_260_102)


@pytest.mark.slow
def test_random_definitions_and_encodings_match_the_specification() -> None:
    encodings.run(3_000, seed=625)


@pytest.mark.slow
def test_kernels_stay_within_their_buffers() -> None:
    """In a separate process, since an access past the end of a buffer kills it."""
    command = [sys.executable, "-m", "tests.fuzz.guarded_messages", "1500", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}"
