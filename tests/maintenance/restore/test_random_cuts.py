"""A thousand random cuts of a busy directory and of a copy: no half transaction, no offset beyond its log."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from tests.maintenance.restore.busy import check_cut
from tests.maintenance.restore.test_run import copy, cut, drawn_point, source  # noqa: F401 (fixtures)

CUTS = 1000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_random_cuts(source: Path, copy: Path, tmp_path: Path) -> None:  # noqa: F811
    divided = moved = 0
    for number in range(CUTS):
        of = copy if number % 3 == 0 else source
        target = tmp_path / "new"
        result = cut(of, target, drawn_point(of, random.Random(1000 + number)))
        check_cut(of, target, result)
        divided, moved = divided + len(result.transactions), moved + len(result.offsets)
        shutil.rmtree(target)
    print(f"{CUTS} cuts: {divided} transactions ended, {moved} offsets moved")
    assert divided > CUTS
    assert moved > CUTS / 10
