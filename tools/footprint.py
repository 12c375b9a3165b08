"""Write the tables of docs/install.md: what each extra installs, and what imports cost.

    python tools/footprint.py

Sizes are those of the files that the distributions of this environment have installed, without bytecode; that of kwire
itself is its wheel's. An import takes the CPU time of a process that does it, less that of a process that does nothing:
the least of RUNS each.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.interop import installed  # noqa: E402

PAGE = ROOT / "docs" / "install.md"
RUNS = 15
MEGABYTE = 1_000_000
IMPORTS = {
    "import kwire": "import kwire",
    "a message": "from kwire.messages import MetadataResponse",
    "records as objects": "from kwire.records import read_batches",
    "records as Arrow columns": "from kwire.records import ColumnReader; ColumnReader()",
    "logs": "from kwire.log import LogDirectory",
    "the client": "from kwire.client import Client",
    "the broker": "from kwire.broker import Broker",
    "the pytest plugin, after pytest": "import pytest, kwire.pytest_plugin",
    "the command line": "from kwire.cli.main import build; build('serve')",
    "Spark's planner of kafka-log": "import pyspark_kwire_log",
}
BEFORE = {"the pytest plugin, after pytest": "import pytest", "Spark's planner of kafka-log": "import pyspark.sql"}
"""What is imported anyway, and so not counted."""
LIBRARIES = ("cramjam", "google_crc32c", "isal", "msgspec", "numpy", "pyarrow", "rich", "typer")
NOT_MEASURED = ("kerberos", "sail")
"""Not in this environment: compiled with headers of the system; cannot be installed beside the others."""


@dataclass(frozen=True)
class Import:
    """What an import loads: its time, the number of modules, and the libraries."""

    ms: float
    modules: int
    libraries: tuple[str, ...]


def requirements(extra: str) -> list[str]:
    """Return what an extra requires, "" for the base."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [*project["dependencies"], *(project["optional-dependencies"][extra] if extra else ())]


def extras() -> list[str]:
    """Return the names of the measured extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [name for name in project["optional-dependencies"] if name not in NOT_MEASURED]


def sizes(wheel_bytes: int) -> dict[str, int]:
    """Return the bytes that a base install ("") and one with each extra have. wheel_bytes: of kwire itself."""
    found = {}
    for extra in ("", *extras()):
        distributions = installed.closure(requirements(extra)).values()
        files = [file for each in distributions for file in each.files or () if file.suffix != ".pyc"]
        found[extra] = wheel_bytes + sum(
            path.stat().st_size for file in files if (path := Path(file.locate())).exists()
        )
    return found


def wheel_size() -> int:
    """Return the bytes of kwire when it is installed."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(installed.build_wheel(Path(folder))) as archive:
        return sum(each.file_size for each in archive.infolist())


def loaded(statement: str) -> dict[str, list[str]]:
    """Return the modules and libraries that a process has after a statement."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps([*sys.modules]))"
    modules = json.loads(installed.run([sys.executable, "-c", program]).splitlines()[-1])
    return {"modules": modules, "libraries": [name for name in LIBRARIES if name in modules]}


def seconds(statement: str) -> float:
    """Return the least CPU time of a process."""
    spent = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", statement], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent)


def imports(*, timed: bool = True) -> dict[str, Import]:
    """Measure IMPORTS. timed: False leaves the times out."""
    found = {}
    for name, statement in IMPORTS.items():
        before = BEFORE.get(name, "pass")
        base, full = loaded(before), loaded(f"{before}\n{statement}")
        spent = seconds(f"{before}\n{statement}") - seconds(before) if timed else 0.0
        spent = max(spent, 0.0)  # less than what the machine lets one measure
        found[name] = Import(spent * 1000, len(full["modules"]) - len(base["modules"]), tuple(full["libraries"]))
    return found


def rendered(found: Mapping[str, int], times: Mapping[str, Import]) -> dict[str, str]:
    """Return the tables by the name of their section in the page."""
    rows = [f"| {f'`{extra}`' if extra else 'none'} | {size / MEGABYTE:,.0f} |" for extra, size in found.items()]
    lines = [
        f"| {name} | `{IMPORTS[name]}` | {each.ms:.0f} | {each.modules} | {', '.join(each.libraries) or 'none'} |"
        for name, each in times.items()
    ]
    return {
        "sizes": "\n".join(["| extra | MB installed |", "| --- | ---: |", *rows]),
        "imports": "\n".join(
            ["| for | statement | ms | modules | libraries |", "| --- | --- | ---: | ---: | --- |", *lines]
        ),
    }


def section(text: str, name: str) -> re.Match[str]:
    """Return the match of a section: its first group is the table."""
    found = re.search(rf"(?<=<!-- {name} -->\n)(.*?)(?=\n<!-- end -->)", text, re.DOTALL)
    assert found, f"{PAGE}: has no section {name}"
    return found


def table(name: str) -> dict[str, list[str]]:
    """Return the rows of a table of the page, by their first cell."""
    lines = section(PAGE.read_text("utf-8"), name)[0].splitlines()[2:]
    cells = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


def main() -> None:
    """Measure, and write the page."""
    text = PAGE.read_text("utf-8")
    for name, made in rendered(sizes(wheel_size()), imports()).items():
        found = section(text, name)
        text = text[: found.start()] + made + text[found.end() :]
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
