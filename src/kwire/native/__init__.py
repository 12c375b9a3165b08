"""The compiled kernels, as Python calls them: `from kwire import native`, then `native.scan_batches(...)`.

The extension module `_kernels` is compiled from the C files here. Without it (a wheel for any platform), plain Python
does the same, a hundred times slower: `kwire.plan` for messages, the modules named plain_... for records.

    KWIRE_KERNEL=0    do not use compiled code

LEVEL           the processors that the code was compiled for; None without compiled code
HAS_CRC32C      whether the CRC-32C kernels may be called: not every processor has the instruction
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kwire.errors import OptionError

__all__ = ["HAS_CRC32C", "LEVEL"]

VARIABLE = "KWIRE_KERNEL"
LEVEL: str | None = None
HAS_CRC32C = False

if TYPE_CHECKING:
    from kwire.native._kernels import *  # noqa: F403
elif (chosen := os.environ.get(VARIABLE, "1")) not in ("0", "1"):
    raise OptionError(f"{VARIABLE}={chosen}: expected 0, for no compiled code, or 1")
elif chosen == "1":
    try:
        from kwire.native import _kernels
    except ImportError:
        pass
    else:
        globals().update((name, value) for name, value in vars(_kernels).items() if not name.startswith("_"))
