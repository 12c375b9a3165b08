"""The compiled kernels, as Python calls them: `from kwire import native`, then `native.scan_batches(...)`.

The extension module `_kernels` is compiled from the C files here. Without it (a wheel for any platform), plain Python
does the same, a hundred times slower: `kwire.plan` for messages, the modules named plain_... for records. The import
then warns, unless that was asked for.

    KWIRE_KERNEL=0    do not use compiled code

LEVEL           the processors that the code was compiled for; None without compiled code
HAS_CRC32C      whether the CRC-32C kernels may be called: not every processor has the instruction
"""

from __future__ import annotations

import os
import sys
import sysconfig
import warnings
from importlib import import_module
from typing import TYPE_CHECKING

import kwire
from kwire.errors import OptionError

__all__ = ["HAS_CRC32C", "LEVEL"]

VARIABLE = "KWIRE_KERNEL"
LEVEL: str | None = None
HAS_CRC32C = False
BUILD = "kwire.native.build"  # the command that compiles the module, which imports this package


def _age(module: str, version: str | None) -> str | None:
    """Return why the module at a path, of a version, was not compiled from these sources; None if it was.

    It may be a user's own, left behind by an upgrade. In a checkout, whoever changes or pulls sources compiles again.
    """
    if version != kwire.__version__:
        return f"{module} was compiled for {version or 'an earlier version'} of kwire, not {kwire.__version__}"
    folder = os.path.dirname(__file__)
    if os.path.exists(os.path.join(folder, "..", "..", "..", "pyproject.toml")):
        with os.scandir(folder) as entries:
            sources = [each for each in entries if each.name.endswith((".c", ".h", ".pyi"))]
        newest = max(sources, key=lambda each: each.stat().st_mtime_ns)
        if newest.stat().st_mtime_ns > os.stat(module).st_mtime_ns:
            return f"{module} was compiled before its source {newest.name} was changed"
    return None


def _remedy(error: ImportError) -> str:
    """Return why there is no compiled code, and the command that helps."""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "free-threaded Python does not load it; use a Python with the GIL"
    why = f"none was installed for {sysconfig.get_platform()}" if isinstance(error, ModuleNotFoundError) else str(error)
    return f"{why}; to compile it: pip install 'kwire[compiler]' && python -m {BUILD}"


if TYPE_CHECKING:
    from kwire.native._kernels import *  # noqa: F403
elif (chosen := os.environ.get(VARIABLE, "1")) not in ("0", "1"):
    raise OptionError(f"{VARIABLE}={chosen}: expected 0, for no compiled code, or 1")
elif chosen == "1":
    try:
        _kernels = import_module("kwire.native._kernels")
        if why := _age(_kernels.__file__, getattr(_kernels, "VERSION", None)):
            raise ImportError(why)
    except ImportError as error:
        if BUILD not in sys.orig_argv:
            warnings.warn(
                f"no compiled code, so plain Python does its work 10 to 100 times slower: {_remedy(error)}; "
                f"to accept it: {VARIABLE}=0",
                RuntimeWarning,
                stacklevel=1,
            )
    else:
        globals().update((name, value) for name, value in vars(_kernels).items() if not name.startswith("_"))
