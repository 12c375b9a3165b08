"""Findings about batches that no broker would have written: listed up to a limit, further ones are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.log import LogDirectory
from kwire.log.files.damage import Kind
from kwire.maintenance.verify import batch_findings
from tests.records.building import batch, record


@pytest.mark.parametrize(("count", "more"), [(2, []), (3, ["1 more batch of this kind"])])
def test_suspect_batches_above_a_limit_are_one_finding(
    count: int, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_findings, "MAX_SUSPECT_FINDINGS", 2)
    folder = tmp_path / "t-0"
    folder.mkdir()
    wrong = [batch(record(), base_offset=offset, max_timestamp=2000) for offset in range(count)]
    (folder / f"{0:020d}.log").write_bytes(b"".join(wrong))
    found = [each for each in LogDirectory(folder)["t", 0].verify() if each.kind is Kind.TIMESTAMPS]
    assert [each.offsets for each in found if each.position is not None] == [(0, 0), (1, 1)]
    assert [each.cause for each in found if each.position is None] == more
