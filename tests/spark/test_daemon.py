"""The daemon that forks warm Python workers: its protocol with Spark, and the modules of its workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.daemon")

PROGRAM = """
import gc, os, sys
from kwire.spark.process.daemon import load
load()
assert {"pyarrow", "pyspark.worker"} <= set(sys.modules)
assert "pandas" not in sys.modules and gc.get_freeze_count() > 1000
loaded = set(sys.modules)
if os.fork() == 0:
    from kwire.spark.log.reading import read_partition
    from kwire.spark.log.options import parse_options
    from kwire.spark.log.planning import plan_batch

    options = parse_options({"path": sys.argv[1]})
    columns = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    tasks = plan_batch(options)
    rows = sum(len(batch) for task in tasks for batch in read_partition(task, columns, options))
    late = sorted(name for name in set(sys.modules) - loaded if "kernels" in name or name.startswith("kwire.records"))
    assert "pandas" not in sys.modules
    print(rows, late, flush=True)
    os._exit(0)
assert os.wait()[1] == 0
"""


def test_a_forked_worker_uses_the_modules_of_the_daemon(kafka_logs: dict[str, Path]) -> None:
    words = [sys.executable, "-c", PROGRAM, str(kafka_logs["modern"] / "data" / "txn-0")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "626 []\n"


def test_the_daemon_speaks_the_protocol_of_sparks_daemon() -> None:
    # Its port first on standard output, and nothing else; it ends when standard input does.
    words = [sys.executable, "-m", "kwire.spark.process.daemon", "pyspark.worker"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (done.stderr, len(done.stdout)) == (b"", 4)
    assert 0 < int.from_bytes(done.stdout, "big") < 1 << 16
