"""The compiled kernels, as Python calls them: `from kwire import native`, then `native.scan_batches(...)`.

The extension module `_kernels` has them for the levels of processors that `kwire.native.build` lists, and uses the best
level of this processor. Without this module (a wheel for any platform), messages are read and written by the plain
Python of `kwire.plan`, and records by the kernels' own source, which is Python: the results are the same, a hundred
times slower.

    KWIRE_KERNEL=0              do not use compiled code
    KWIRE_KERNEL=x86-64-v2      use the code of this level, e.g. to reproduce a problem of another machine

LEVEL           the level in use; None without compiled code
HAS_CRC32C      whether the CRC-32C kernels may be called: on ARM, not every processor has the instruction
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kwire.errors import OptionError

__all__ = ["EXPORTS", "HAS_CRC32C", "LEVEL"]

VARIABLE = "KWIRE_KERNEL"
EXPORTS: dict[str, str] = {}
"""The kernels that Python calls, and the modules that define them."""

BUFFERS = (bytes, bytearray, memoryview)
WRITABLE = "Writable"
"""How the names of the types of parameters begin that a kernel writes to (`kwire.wire.kernels.arrays`)."""
LEVEL: str | None = None
HAS_CRC32C = False

if TYPE_CHECKING:
    from kwire.native._kernels import *  # noqa: F403
elif os.environ.get(VARIABLE) != "0":
    try:
        from kwire.native import _kernels
    except ImportError:
        pass
    else:
        if (wanted := os.environ.get(VARIABLE, "1")) != "1":
            try:
                _kernels.use_level(wanted)
            except ValueError as error:
                raise OptionError(f"{VARIABLE}={wanted}: {error}") from None
        LEVEL = _kernels.level_in_use()
        globals().update((name, value) for name, value in vars(_kernels).items() if not name.startswith("_"))


def _interpreted(kernel: Callable[..., object]) -> Callable[..., object]:
    """Return an exported kernel as Python runs it: integers of numpy wrap, as compiled ones do.

    Arrays are writable only if the kernel's signature says so.
    """
    import numpy as np

    types = [str(type) for name, type in kernel.__annotations__.items() if name != "return"]

    def converted(index: int, argument: Any) -> Any:
        array = np.frombuffer(argument, np.uint8) if isinstance(argument, BUFFERS) else argument
        if not isinstance(array, np.ndarray):
            return array
        if not types[index].startswith(WRITABLE):
            array = array.view()
            array.flags.writeable = False
        elif not array.flags.writeable:
            name = kernel.__name__
            raise ValueError(f"argument {index + 1} of {name}(): the kernel writes to it, but it is read-only")
        return array

    @functools.wraps(kernel)
    def call(*arguments: Any) -> object:
        with np.errstate(over="ignore"):
            return kernel(*(converted(index, each) for index, each in enumerate(arguments)))

    return call


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return an exported kernel as Python runs it, without compiled code. Called once for each: it is kept."""
        if LEVEL is None and name in EXPORTS:
            kernel = _interpreted(getattr(importlib.import_module(EXPORTS[name]), name))
            return globals().setdefault(name, kernel)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
