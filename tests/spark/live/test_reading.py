"""Tasks of `kafka-live`: connections are reused, and closed when the process exits."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark.sql.datasource")

from tests.spark.live.test_source import Cluster

from kwire.broker import Broker

READ_TWICE = """
import sys
from kwire.spark.live import reading
from kwire.spark.offsets import OffsetRange

for _ in range(2):
    for rows in reading.read_range(
        OffsetRange("t", 0, 0, 3), ("offset",), {"bootstrap.servers": sys.argv[1]}, "read_uncommitted",
        fail_on_data_loss=True,
    ):
        print(rows.column("offset").to_pylist(), len(reading._clients))
"""


def test_a_process_reuses_its_connections_and_exits_without_a_warning() -> None:
    with Broker() as broker:
        cluster = Cluster(broker.bootstrap_servers)
        cluster.create("t")
        cluster.write("t", 0, ["a", "b", "c"])
        cluster.client.close()
        done = subprocess.run(
            [sys.executable, "-W", "always::ResourceWarning", "-c", READ_TWICE, broker.bootstrap_servers],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout == "[0, 1, 2] 1\n" * 2
    assert done.stderr == ""
