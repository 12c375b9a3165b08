"""A changed kernel source empties the cache of compiled kernels; an unchanged one leaves it."""

from __future__ import annotations

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
