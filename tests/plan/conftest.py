"""Both interpreters, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kwire import plan

CodecOf = Callable[[Any, int], plan.Codec]


@pytest.fixture(params=["walker", "kernel"])
def codec_of(request: pytest.FixtureRequest) -> CodecOf:
    """codec_of(cls, version): the codec of a message class on one of the two interpreters."""

    def make(cls: Any, version: int) -> plan.Codec:
        return plan.codec(cls.SPEC, version, cls, kernels=request.param == "kernel")

    return make
