"""A changed kernel source empties the cache of compiled kernels; an unchanged one leaves it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kwire.warm import drop_stale_kernels


def test_compiled_kernels_go_when_a_kernel_source_changes_and_stay_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    kernels = tmp_path / "records" / "kernels"
    compiled = kernels / "__pycache__" / "table.scan-1.py311.nbi"
    compiled.parent.mkdir(parents=True)
    (kernels / "memory.py").write_text("one = 1")
    drop_stale_kernels(tmp_path)
    compiled.write_bytes(b"code")
    drop_stale_kernels(tmp_path)
    assert compiled.exists()
    (kernels / "memory.py").write_text("one = 2")
    drop_stale_kernels(tmp_path)
    assert not compiled.exists()


def test_modules_beside_compiled_loops_count_as_their_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    cleaner = tmp_path / "log" / "cleaner"
    compiled = cleaner / "__pycache__" / "kernels.scan-1.py311.nbi"
    compiled.parent.mkdir(parents=True)
    for name in ("kernels.py", "offset_map.py"):
        (cleaner / name).write_text("one = 1")
    drop_stale_kernels(tmp_path)
    compiled.write_bytes(b"code")
    (cleaner / "offset_map.py").write_text("one = 2")
    drop_stale_kernels(tmp_path)
    assert not compiled.exists()


PROGRAM = """
from kwire.log.cleaner import kernels
from kwire.warm import WARMERS
from importlib import import_module
for module, function in WARMERS:
    getattr(import_module(module), function)()
for kernel in (kernels.map_batches, kernels.weigh_batches, kernels.write_batches, kernels.write_kept):
    assert kernel.signatures, kernel
"""


def test_the_loops_of_compaction_are_warmed_too() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
