"""Tests of compiled code, and tests that compare it with plain Python."""

import pytest

from kwire import native

needs_compiled_code = pytest.mark.skipif(
    native.LEVEL is None, reason="needs compiled code, which KWIRE_KERNEL=0 switches off"
)
