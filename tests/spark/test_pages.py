"""Examples of the documentation that need Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from tests.docs.examples import ON_SPARK, blocks, fill, in_place, names_of, needs_spark

from kwire.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("page", ON_SPARK)
def test_examples_run(page: str, kafka_logs: dict[str, Path], tmp_path: Path, spark: SparkSession) -> None:
    data = fill(page, tmp_path, kafka_logs)
    names = names_of(page, data) | {"spark": spark, "Producer": Producer}
    with Broker() as broker:
        for source in filter(needs_spark, blocks(page, "python")):
            source = in_place(source, data, tmp_path).replace("broker:9092", broker.bootstrap_servers)
            exec(compile(source, page, "exec"), names)
