"""What the packages import: a process does not load what it may never use."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("cryptography", "fsspec", "numpy", "pandas", "pyarrow", "pyspark", "rich", "typer")


@pytest.mark.parametrize(
    ("statement", "unneeded"),
    [
        ("import kwire", ("msgspec", "kwire.errors")),
        ("import kwire.log, kwire.messages, kwire.records, kwire.schema", ("cramjam", "msgspec", "kwire.plan")),
        (
            "from kwire.log import LogDirectory",
            (
                "asyncio",
                "kwire.log.writing.log_manager",
                "kwire.log.writing.recovery",
                "kwire.plan",
                "kwire.records.append.validation",
            ),
        ),
        (
            "from kwire.client import Client",
            ("asyncio", "urllib.request", "kwire.broker", "kwire.log", "kwire.records.append.validation"),
        ),
        (
            "from kwire.broker import Broker",
            (
                "urllib.request",
                "kwire.broker.apis.produce",
                "kwire.client",
                "kwire.log.reading.log_directory",
                "kwire.log.reading.splits",
                "kwire.messages.produce_request",
                "kwire.records.columns.writer",
                "kwire.records.convert.conversion",
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_import_loads_only_what_it_needs(statement: str, unneeded: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print([name for name in sys.argv[1:] if name in sys.modules])"
    command = [sys.executable, "-c", code, *HEAVY, *unneeded]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
