"""The examples of README.md, run as a reader runs them: in their order, in one folder, with one environment.

    python -m tools.readme PYTHON FOLDER

It prints the seconds that each took, with the heading above it. A block `sh` runs in a shell, without its `pip install`
lines; a block `python` runs as a program, or with pytest if it defines a test. A block `text` is what the block before
it prints.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Example", "ExampleFailed", "examples", "requirements", "run", "run_all"]

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
KEPT = ("JAVA_HOME", "LANG", "TZ")
TIMEOUT_S = 600
SHOWN_CHARACTERS = 3000


class ExampleFailed(Exception):
    """An example ended with an error, or printed something else than the README shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A block of code. heading: above it; output: what the README says that it prints, empty if it shows nothing."""

    heading: str
    language: str
    source: str
    output: str

    @property
    def needs_spark(self) -> bool:
        """Whether it runs Spark, which needs Java."""
        return "pyspark" in self.source

    @property
    def is_test(self) -> bool:
        """Whether pytest runs it."""
        return re.search(r"^def test_", self.source, re.MULTILINE) is not None


def examples() -> Iterator[Example]:
    """Return the README's blocks that a reader runs."""
    text = README.read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    followers = [each.groups() for each in blocks[1:]]
    for block, (following, output) in zip(blocks, [*followers, ("", "")], strict=True):
        language, source = block.groups()
        heading = HEADING.findall(text, 0, block.start())
        if language == "sh":
            source = "".join(line for line in source.splitlines(keepends=True) if not line.startswith("pip install"))
        if language in ("python", "sh") and source.strip():
            yield Example(
                heading=heading[-1] if heading else "",
                language=language,
                source=source,
                output=output if following == "text" else "",
            )


def requirements() -> list[str]:
    """Return what the README's `pip install` lines install."""
    lines = [line for _, source in BLOCK.findall(README.read_text("utf-8")) for line in source.splitlines()]
    found = [shlex.split(line)[2:] for line in lines if line.startswith("pip install ")]
    return [word for words in found for word in words]


def run(example: Example, python: Path, folder: Path) -> str:
    """Run an example and return what it printed; raises ExampleFailed.

    python: of the environment where kwire is installed; its scripts are on the path. folder: the current directory,
    where examples find the files of those before them, and home.
    """
    if example.language == "sh":
        words = ["sh", "-eu", "-c", example.source]
    elif example.is_test:
        (folder / "test_readme.py").write_text(example.source, "utf-8")
        words = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_readme.py"]
    else:
        (folder / "example.py").write_text(example.source, "utf-8")
        words = [str(python), "example.py"]
    environment = {name: os.environ[name] for name in KEPT if name in os.environ} | {
        "PATH": os.pathsep.join([str(python.parent), "/usr/local/bin", "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        printed = done.stdout[-SHOWN_CHARACTERS:] + done.stderr[-SHOWN_CHARACTERS:]
        raise ExampleFailed(f"README.md: exit code {done.returncode} of\n{example.source}\n{printed}")
    if example.output and [*map(str.rstrip, done.stdout.strip().splitlines())] != example.output.rstrip().splitlines():
        raise ExampleFailed(f"README.md: printed\n{done.stdout}\ninstead of\n{example.output}")
    return done.stdout


def run_all(python: Path, folder: Path) -> Iterator[tuple[Example, float]]:
    """Run all examples, and return each with the seconds that it took; raises ExampleFailed."""
    for example in examples():
        started = time.monotonic()
        run(example, python, folder)
        yield example, time.monotonic() - started


def main() -> None:
    """Run the examples with an environment."""
    python, folder = map(Path, sys.argv[1:])
    try:
        for example, seconds in run_all(python, folder):
            print(f"{seconds:6.1f} s  {example.heading}", flush=True)
    except ExampleFailed as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
