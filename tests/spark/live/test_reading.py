"""Tasks of `kafka-live`: connections are reused, and closed when the process exits."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pyspark.sql.datasource")

import pyarrow as pa
from tests.spark.live.test_source import Cluster

from kwire.broker import Broker
from kwire.errors import OptionError
from kwire.spark.live import reading
from kwire.spark.live.write_options import parse_write_options
from kwire.spark.live.writing import write_task

READ_TWICE = """
import sys
from kwire.spark.live import reading
from kwire.spark.offsets import OffsetRange

for _ in range(2):
    for rows in reading.read_range(
        OffsetRange("t", 0, 0, 3), ("offset",), {"bootstrap.servers": sys.argv[1]}, "read_uncommitted",
        fail_on_data_loss=True,
    ):
        print(rows.column("offset").to_pylist())
    print(len(reading._idle))
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
    assert done.stdout == "[0, 1, 2]\n1\n" * 2
    assert done.stderr == ""


def test_tasks_that_run_at_a_time_have_clients_of_their_own() -> None:
    with Broker() as broker:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        with reading.borrow_client(settings) as first, reading.borrow_client(settings) as second:
            assert first is not second
        with reading.borrow_client(settings) as again:
            assert again in (first, second)
        with pytest.raises(ValueError, match="stop"), reading.borrow_client(settings) as broken:
            raise ValueError("stop")
        assert broken not in [client for _, client in reading._idle]
        reading.close_clients()


def test_writing_tasks_share_a_connection_until_one_fails() -> None:
    with Broker() as broker:
        cluster = Cluster(broker.bootstrap_servers)
        cluster.create("t")
        options = parse_write_options({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "t"})
        rows = pa.RecordBatch.from_pydict({"value": [b"one"]})
        try:
            opened = []
            for task in range(2):
                assert write_task([rows], ("value",), options, task=task).records == 1
                opened += [client for _, client in reading._idle]
            assert opened[0] is opened[1]
            wrong = pa.RecordBatch.from_pydict({"value": [b"two"], "partition": pa.array([7], pa.int32())})
            with pytest.raises(OptionError, match="no partition 7"):
                write_task([wrong], ("value", "partition"), options, task=2)
            assert not reading._idle
            assert write_task([rows], ("value",), options, task=3).records == 1
            assert cluster.client.list_offsets({("t", 0): -1})["t", 0].offset == 3
        finally:
            reading.close_clients()
            cluster.client.close()
