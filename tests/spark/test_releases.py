"""Releases of Spark that the formats reject."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql.datasource")

import pyspark

from kwire.errors import OptionError
from kwire.spark.releases import is_supported, unsupported_source


def test_spark_4_1_is_the_first_release() -> None:
    assert [is_supported(version) for version in ("3.5.9", "4.0.5", "4.1.0", "4.3.0.dev1", "4.10.0", "5.0.0")] == [
        False, False, True, True, True, True,
    ]  # fmt: skip
    assert is_supported()


def test_a_rejected_format_gives_the_reason() -> None:
    source = unsupported_source("kafka-log")
    assert source.name() == "kafka-log"
    with pytest.raises(
        OptionError, match=rf"kafka-log requires Spark 4\.1 or later; this is Spark {pyspark.__version__}"
    ):
        source({})
