"""How long does a process take to its first message, with walker and kernels, and to import the messages?

Minimum CPU ms of several new processes.
"""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.messages.timing import line

FIRST = """
from kwire.messages import MetadataRequest
wire = MetadataRequest().encode(version=9)
assert MetadataRequest.decode(wire, version=9) == MetadataRequest()
"""
PROGRAMS = {
    "python": ("pass", {}),
    "import_msgspec": ("import msgspec", {}),
    "import_one_message": ("from kwire.messages import MetadataRequest", {}),
    "import_all_messages": ("from kwire.messages import registry\nfor n in registry.names(): registry.get(n)", {}),
    "all_definitions": ("from kwire.messages import registry\nfor n in registry.names(): registry.get(n).SPEC", {}),
    "first_message.walker": (FIRST, {"KWIRE_KERNEL": "0"}),
    "first_message.kernel": (FIRST, {"KWIRE_KERNEL": "1"}),
}
REPORT = "\nimport resource\nu = resource.getrusage(resource.RUSAGE_SELF)\nprint((u.ru_utime + u.ru_stime) * 1000)"


def cpu_ms(program: str, environment: dict[str, str], times: int) -> float:
    """Return the minimum CPU ms of processes that run a program."""
    found = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", program + REPORT],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append(float(done.stdout.split()[-1]))
    return min(found)


def main() -> None:
    """Print the figures."""
    best = {name: cpu_ms(program, environment, 5) for name, (program, environment) in PROGRAMS.items()}
    for name, value in best.items():
        print(line(f"messages.startup.{name}", value, "ms", best["python"], "bare-python"))


if __name__ == "__main__":
    main()
