"""How long do `kwire` commands that need no kernel take, and the imports of a program?

Minimum CPU ms of several new processes; the commands run on the smallest of data, a log of three records.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.messages.timing import line
from kwire import records

RUNS = 7
API_VERSIONS = "0b6c696272646b61666b6107322e31322e3100"


def cpu_ms(words: Sequence[str]) -> float:
    """Return the minimum CPU ms of new processes that run a command."""
    found = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found) * 1000


def main() -> None:
    """Print the figures."""
    python, kwire = sys.executable, str(Path(sys.executable).with_name("kwire"))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "orders-0")
        log.mkdir()
        rows = [
            records.Record(
                offset=n,
                timestamp=n,
                key=b"key",
                value=b"value",
                headers=[],
                timestamp_type=records.TimestampType.CREATE_TIME,
            )
            for n in range(3)
        ]
        Path(log, f"{0:020}.log").write_bytes(records.write_batch(rows))
        cases = {
            "kwire_log_ls": [kwire, "log", "ls", folder],
            "kwire_log_dump": [kwire, "log", "dump", str(log)],
            "kwire_decode": [kwire, "decode", "ApiVersionsRequest", "--version", "3", "--hex", API_VERSIONS],
            "import_kwire_log": [python, "-c", "from kwire.log import LogDirectory"],
            "import_kwire_client": [python, "-c", "import kwire.client"],
            "import_kwire_broker": [python, "-c", "import kwire.broker"],
        }
        bare = cpu_ms([python, "-c", "pass"])
        for name, words in cases.items():
            print(line(f"cli.startup.{name}", cpu_ms(words), "ms", bare, "bare-python"), flush=True)


if __name__ == "__main__":
    main()
