"""The folder of numba's cache for compiled kernels.

numba compiles a kernel once (seconds of CPU) and caches it next to the sources or in the user's cache folder. It uses a
folder only if it is writable, and raises RuntimeError if none is: with a read-only package, kernels compiled at
installation are ignored, and without a writable home nothing works. Such processes get a private folder with a copy of
the kernels. NUMBA_CACHE_DIR takes precedence.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import kwire
from kwire.errors import KwireError

__all__ = ["prepare_kernel_cache"]

VARIABLE = "NUMBA_CACHE_DIR"
# numba's file names: an index and the compiled code it names.
INDEX, CODE = ".nbi", ".nbc"


def prepare_kernel_cache(package: Path = Path(kwire.__file__).parent) -> None:
    """Make sure that numba, imported after this, finds a writable cache folder; sets NUMBA_CACHE_DIR if needed.

    The packages with kernels call it before they import numba. Does nothing after numba is imported, which
    reads the variable only once. Raises KwireError if no folder is writable.
    """
    if os.environ.get(VARIABLE) or "numba" in sys.modules:
        return
    folders = list(_kernel_folders(package))
    if all(_is_writable(folder / "__pycache__") for folder in folders):
        return
    for candidate in (Path("~/.cache/kwire/kernels"), Path(tempfile.gettempdir()) / f"kwire-kernels-{os.getuid()}"):
        try:
            cache = candidate.expanduser()
            _make_private(cache)
        except (OSError, RuntimeError):
            continue
        for folder in folders:
            _copy_kernels(folder / "__pycache__", cache / _numba_folder_name(folder))
        os.environ[VARIABLE] = str(cache)
        return
    raise KwireError(
        f"no writable folder for compiled kernels: {package}, ~/.cache and {tempfile.gettempdir()} are read-only; "
        f"set {VARIABLE} to a writable folder"
    )


def _kernel_folders(package: Path) -> Iterator[Path]:
    """Yield the package's folders with kernels; none for a zip file, which numba handles."""
    for found in sorted(package.rglob("kernels*")):
        if found.is_dir():
            yield found
        elif found.suffix == ".py":
            yield found.parent


def _is_writable(folder: Path) -> bool:
    """Whether a file can be created in the folder, which is numba's own test."""
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _make_private(folder: Path) -> None:
    """Create a folder that only this user can write to; raises OSError if others can.

    numba unpickles the files in its cache, so a folder prepared by another user must not be used.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(f"{folder} is writable by others")
    tempfile.TemporaryFile(dir=folder).close()


def _numba_folder_name(folder: Path) -> str:
    """Return numba's name for a source folder in NUMBA_CACHE_DIR (numba.core.caching, get_suitable_cache_subpath)."""
    return f"{folder.name}_{hashlib.sha1(str(folder.absolute()).encode()).hexdigest()}"


def _copy_kernels(source: Path, target: Path) -> None:
    """Copy missing compiled kernels, the code before the index that names it.

    Several workers may copy concurrently, so files are created atomically.
    """
    if not source.is_dir():
        return
    target.mkdir(mode=0o700, exist_ok=True)
    for suffix in (CODE, INDEX):
        for file in source.glob(f"*{suffix}"):
            if (target / file.name).exists():
                continue
            with tempfile.NamedTemporaryFile(dir=target, delete=False) as staged, file.open("rb") as original:
                shutil.copyfileobj(original, staged)
            os.replace(staged.name, target / file.name)
