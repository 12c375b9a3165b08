"""docs/quickstart.md: commands and programs run and print the output that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.conftest import need_java
from tests.waiting import HANG_S

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

COMMANDS = Path(sys.executable).parent
# Java and Spark's launcher write to standard error; standard output is compared.
ENVIRONMENT = {
    **os.environ,
    "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
    "SPARK_LOCAL_IP": "127.0.0.1",
}
# As where the environment is not activated: the programs are run by its Python, and python3 is another one.
NOT_ACTIVATED = {
    **{name: value for name, value in ENVIRONMENT.items() if not name.startswith("PYSPARK")},
    "PATH": os.pathsep.join(path for path in os.environ["PATH"].split(os.pathsep) if Path(path) != COMMANDS),
}


def steps() -> list[tuple[str, str, str | None]]:
    """Return (language, source, documented output or None) of each executable block."""
    found: list[tuple[str, str, str | None]] = []
    end = -1
    text = PAGE.read_text("utf-8")
    for match in BLOCK.finditer(text):
        language, source = match.groups()
        if language != "text":
            found.append((language, source, None))
        elif match.start() == end + 1:  # right below the block that prints it
            found[-1] = (*found[-1][:2], source)
        end = match.end()
    return found


def run(arguments: list[str], folder: Path, environment: dict[str, str] = ENVIRONMENT, **options: str) -> str:
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False, **options
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a checkout that the page uses."""
    folder = tmp_path_factory.mktemp("quickstart")
    (folder / "tests").symlink_to(ROOT / "tests")
    language, source, _ = steps()[0]  # writes the folder `data`
    assert language == "python"
    run([sys.executable, "-c", source], folder, NOT_ACTIVATED)
    return folder


def test_the_commands_run_and_print_what_the_page_shows(folder: Path) -> None:
    commands = [step for step in steps() if step[0] == "sh"]
    assert len(commands) >= 5
    for _, source, shown in commands:
        printed = run(["sh", "-eu"], folder, input=source)
        assert shown is None or printed.strip() == shown.strip()
    assert (folder / "last-second.jsonl").stat().st_size > 1000
    assert (folder / "ids-0.txt").read_text().startswith("Dumping logs/data/ids-0/")
    assert (folder / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.spark
def test_the_programs_run_in_order_and_print_what_the_page_shows(folder: Path) -> None:
    need_java()
    if not (folder / "logs").exists():
        run(["sh", "-eu"], folder, input=next(source for _, source, _ in steps() if "tar -xzf" in source))
    programs = [step for step in steps()[1:] if step[0] == "python"]
    program = "\n".join(source for _, source, _ in programs)
    printed = run([sys.executable, "-c", program], folder, NOT_ACTIVATED)
    assert printed.strip() == "".join(shown or "" for _, _, shown in programs).strip()
