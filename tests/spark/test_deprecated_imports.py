"""Former modules of the documentation."""

from __future__ import annotations

import importlib
import sys

import pytest

pytest.importorskip("pyspark.sql.datasource")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("kwire.spark.capture_source", "KafkaCaptureSource"),
        ("kwire.spark.internal_source", "KafkaInternalSource"),
        ("kwire.spark.live_source", "KafkaLiveSource"),
        ("kwire.spark.log_source", "KafkaLogSource"),
    ],
)
def test_a_former_module_warns_and_has_the_same_class(module: str, name: str) -> None:
    sys.modules.pop(module, None)
    with pytest.warns(DeprecationWarning, match=f"{module} is deprecated; use 'from kwire.spark import {name}'"):
        former = importlib.import_module(module)
    assert getattr(former, name) is getattr(importlib.import_module("kwire.spark"), name)
