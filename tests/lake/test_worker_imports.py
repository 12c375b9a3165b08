"""What tasks import: PyIceberg and pandas take a process of Spark more than a second of CPU time."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from kwire.lake import Change, Layout
from tests.lake.tables import FORMATS, Tables

WRITE = """
import pickle, sys
import pyarrow as pa
from pathlib import Path
from kwire.lake import write_files
plan, rows = pickle.loads(sys.stdin.buffer.read())
files = write_files(rows.to_batches(), plan, task=3)
wrong = {"pandas", "pyiceberg", "pydantic"} & sys.modules.keys()
assert not wrong, wrong
sys.stdout.buffer.write(pickle.dumps(files))
"""


@pytest.mark.parametrize("format", FORMATS)
def test_a_task_writes_files_without_the_table_formats_library(format: str, tmp_path: Path) -> None:
    tables = Tables(format, tmp_path)
    rows = pa.table(
        {"id": [1, 2, None], "name": ["a", None, "c"], "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC"))}
    )
    with tables.open() as table:
        plan = table.prepare(rows.schema, Layout())
        done = subprocess.run(
            [sys.executable, "-c", WRITE], input=pickle.dumps((plan, rows)), capture_output=True, check=False
        )
        assert not done.returncode, done.stderr.decode()[-2000:]
        files = pickle.loads(done.stdout)
        table.commit(files.files, Change(id="one", spans={}), plan)
        assert tables.read().to_pylist() == rows.to_pylist()
