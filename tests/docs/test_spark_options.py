"""The option tables of the Spark pages, which tools/generate.py generates from the parsed options."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("pyarrow")

from tools import spark_options

from kwire.client.unused_configs import REFUSED
from kwire.spark.capture import options as capture
from kwire.spark.functions import OPTIONS as FUNCTION_OPTIONS
from kwire.spark.internal import options as internal
from kwire.spark.lake import options as lake
from kwire.spark.lake import parquet_sink
from kwire.spark.live import options as live
from kwire.spark.live import write_options as live_writing
from kwire.spark.log import options as log
from kwire.spark.log import write_options as log_writing
from kwire.spark.options import decoding

TABLES = {
    "spark.md": (log.OPTIONS, log_writing.WRITE_OPTIONS),
    "live.md": (live.OPTIONS, live_writing.WRITE_OPTIONS),
    "capture.md": (capture.OPTIONS,),
    "internal.md": (internal.OPTIONS,),
    "functions.md": (FUNCTION_OPTIONS,),
    "schemas.md": (decoding.VALUE_OPTIONS,),
    "table-options.md": (lake.ICEBERG_OPTIONS, lake.DELTA_OPTIONS),
    "table-streams.md": (parquet_sink.PARQUET_OPTIONS,),
}


@pytest.mark.parametrize("page", TABLES)
def test_option_tables_are_complete_and_up_to_date(page: str) -> None:
    text = (spark_options.DOCS / page).read_text(encoding="utf-8")
    for options in TABLES[page]:
        assert spark_options.table(options) in text
    assert spark_options.filled(text) == text


def test_every_client_config_of_kafka_is_on_the_page() -> None:
    text = (spark_options.DOCS / "client-settings.md").read_text(encoding="utf-8")
    assert spark_options.filled(text) == text
    names = [line.split("\t")[0] for line in spark_options.JAVA_CONFIGS.read_text().splitlines()[1:]]
    assert len(names) > 140
    prefixes = [name[:-1] for name in REFUSED if name.endswith("*")]
    missing = [name for name in names if f"`{name}`" not in text and not name.startswith(tuple(prefixes))]
    assert missing == ["transaction.two.phase.commit.enable"]  # in a sentence, with its value
    rows = [line for line in text.splitlines() if line.startswith("| `compression.lz4.level`")]
    assert rows == ["| `compression.lz4.level` | a number from 1 to 17 |  | producer |"]


def test_an_option_without_a_description_fails() -> None:
    nothing = replace(log.OPTIONS[0], meaning="")
    with pytest.raises(ValueError, match="option 'path' lacks a description"):
        spark_options.table([nothing])
