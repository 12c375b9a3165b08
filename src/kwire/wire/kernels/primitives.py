"""What kernels are made of: for the compiler, or for Python where compiled code is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.wire.kernels.compiler import is_compiling

if TYPE_CHECKING or not is_compiling():
    from kwire.wire.kernels.interpreted import *  # noqa: F403
else:
    from kwire.wire.kernels.intrinsics import *  # noqa: F403
