"""Names that moved to other packages still import from their former module, with a warning."""

from __future__ import annotations

import importlib
import sys

import pytest

from kwire.log import open_tiered
from kwire.maintenance.convert import convert_directory


def test_conversion_names_still_import_from_the_log_package() -> None:
    with pytest.warns(DeprecationWarning, match="moved to kwire.maintenance.convert"):
        from kwire.log.convert import convert_directory as old
    assert old is convert_directory


def test_tiered_storage_names_still_import_from_the_log_package() -> None:
    sys.modules.pop("kwire.log.tiered", None)
    with pytest.warns(DeprecationWarning, match="moved to kwire.log and kwire.storage.tiered"):
        old = importlib.import_module("kwire.log.tiered")
    assert old.open_tiered is open_tiered
