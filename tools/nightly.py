"""Run what a change does not run, keep its logs, and write the newest results to docs/nightly.md.

    ./dev nightly [--only WORD ...] [--minutes N] [--inputs N] [--folder DIRECTORY]

Each part has a log in the folder, build/nightly/TIME by default. A failing part does not end the run; the exit code is
1 if one failed. Results are kept by part in tools/nightly.json, so that a run of some parts leaves the others' results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Part", "Result", "figures", "main", "page", "parts", "run"]

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "tools" / "nightly.json"
PAGE = ROOT / "docs" / "nightly.md"
PYTEST = ("-m", "pytest", "-n", "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A command of the nightly run. command: arguments of Python. variables: more of the environment."""

    name: str
    proves: str
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def line(self) -> str:
        """What to type to repeat it."""
        return " ".join([*(f"{name}={value}" for name, value in self.variables), "python", *map(quoted, self.command)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The newest run of a part. commit: with "+" if the checkout had changes."""

    date: str
    commit: str
    command: str
    passed: bool
    seconds: int
    figures: str


def quoted(word: str) -> str:
    return f'"{word}"' if " " in word else word


def parts(minutes: float, inputs: int | None) -> list[Part]:
    """Return all parts. minutes: of each soak. inputs: of each fuzzer; each has its own number by default."""
    slow = ("-m", "jvm or slow")
    strict = (("KWIRE_NO_SKIPS", "1"),)
    fuzz = ("-m", "tests.fuzz", "--sanitize", *(("--inputs", f"{inputs}") if inputs else ()))
    soaks = {
        "clients": "a broker is killed while clients produce, consume and commit",
        "streams": "streaming queries are killed, on kwire's broker and on Kafka",
        "tables": "streams into Iceberg and Delta tables are killed",
        "commands": "`kwire lake` and `jobs.table` are killed at one of their writes",
        "pulls": "copies of a cluster are killed, from kwire's broker and from Kafka",
    }
    return [
        Part(name="interop", proves="real Kafka, Spark's JARs and other clients",
             command=(*PYTEST, *slow, "tests/interop"), variables=strict),
        Part(name="slow", proves="slow tests, and those that need a JVM, of all other folders",
             command=(*PYTEST, *slow, "tests", "--ignore=tests/interop"), variables=strict),
        Part(name="schedules", proves="2,000 schedules of writers of a table",
             command=(*PYTEST, "tests/lake/test_schedules.py"), variables=(("KWIRE_SCHEDULES", "2000"),)),
        *(Part(name=f"soak-{what}", proves=proves, command=("-m", "tests.soak", what, "--minutes", f"{minutes:g}"))
          for what, proves in soaks.items()),
        Part(name="fuzz", proves="every reader on mutated input, C code with sanitizers", command=fuzz),
    ]  # fmt: skip


def run(part: Part, log: Path, commit: str) -> Result:
    """Run a part to its end, with its output in a log."""
    started = time.monotonic()
    now = datetime.datetime.now(datetime.UTC)
    environment = {**os.environ, **dict(part.variables), "PYTHONUNBUFFERED": "1"}
    with log.open("wb") as output:
        done = subprocess.run(
            [sys.executable, *part.command], cwd=ROOT, env=environment, stdout=output, stderr=output, check=False
        )
    return Result(
        date=f"{now:%Y-%m-%d}",
        commit=commit,
        command=part.line,
        passed=done.returncode == 0,
        seconds=round(time.monotonic() - started),
        figures=figures(log.read_text("utf-8", errors="replace")),
    )


def current_commit() -> str:
    words = ["git", "describe", "--always", "--abbrev=8", "--exclude=*", "--dirty=+"]
    return subprocess.run(words, cwd=ROOT, check=False, capture_output=True, text=True).stdout.strip() or "unknown"


def figures(log: str) -> str:
    """Return the figures of a log: pytest's counts, a soak's sums, each fuzzer's number of inputs."""
    if counts := re.findall(r"^=*\s?((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s", log, re.MULTILINE):
        return str(counts[-1])
    if fuzzers := re.findall(r"^# ([\w-]+): run\((\d+)", log, re.MULTILINE):
        return ", ".join(f"{name} {int(inputs):,}" for name, inputs in fuzzers)
    sums: Counter[str] = Counter()
    for name, value in re.findall(r"^(\w+) +(\d+)$", log, re.MULTILINE):
        if name != "seed":
            sums[name] += int(value)
    return ", ".join(f"{name.replace('_', ' ')} {value:,}" for name, value in sums.items())


def read() -> dict[str, Result]:
    """Return the kept results by part."""
    return {name: Result(**found) for name, found in json.loads(RESULTS.read_text("utf-8")).items()}


def page() -> str:
    """Return the text of docs/nightly.md."""
    kept = read()
    named = {part.name: part for part in parts(30, None)}
    newest = max((found.date for found in kept.values()), default="none")
    missing = ", ".join(f"`{name}`" for name in named if name not in kept)
    lines = [
        "# What runs at night",
        "`./dev nightly` runs what `.ci/run` leaves out of each change. It writes this page, which has the",
        "newest result of each part. A commit with `+` had changes that were not committed.",
        "",
        f"Newest run: {newest}. " + (f"Parts without a result: {missing}." if missing else "Every part has a result."),
        "",
        "| part | tests | date | commit | result | time | figures |",
        "| --- | --- | --- | --- | --- | ---: | --- |",
    ]
    commands = []
    for name, part in named.items():
        if name not in kept:
            lines.append(f"| `{name}` | {part.proves} | | | not run | | |")
            continue
        found = kept[name]
        result = "passed" if found.passed else "**failed**"
        took = f"{found.seconds // 60}:{found.seconds % 60:02}"
        lines.append(
            f"| `{name}` | {part.proves} | {found.date} | {found.commit} | {result} | {took} | {found.figures} |"
        )
        commands.append(found.command)
    lines += [
        "",
        "Times are in minutes and seconds. The commands, in the order of the table:",
        "",
        "```sh",
        *commands,
        "```",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run the parts whose name contains one of the words; exit code 1 if one failed."""
    parser = argparse.ArgumentParser(prog="./dev nightly", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--only", nargs="+", action="extend", metavar="WORD", help="parts whose name contains a word")
    parser.add_argument("--minutes", type=float, default=30.0, help="of each soak")
    parser.add_argument("--inputs", type=int, help="of each fuzzer, instead of its own number")
    parser.add_argument("--folder", type=Path, help="for logs")
    asked = parser.parse_args(arguments)
    known = parts(asked.minutes, asked.inputs)
    words = asked.only or [""]
    chosen = [part for part in known if any(word in part.name for word in words)]
    if unknown := [word for word in words if not any(word in part.name for part in known)]:
        parser.error(f"no part is named {' or '.join(unknown)}; there are {', '.join(part.name for part in known)}")
    folder = asked.folder or ROOT / "build" / "nightly" / f"{datetime.datetime.now(datetime.UTC):%Y-%m-%dT%H%M%S}"
    folder.mkdir(parents=True, exist_ok=True)
    failed, commit = [], current_commit()
    for part in chosen:
        log = folder / f"{part.name}.log"
        print(f"{part.name}: {part.line}\n    log: {log}", flush=True)
        found = run(part, log, commit)
        print(f"    {'passed' if found.passed else 'FAILED'} in {found.seconds} s: {found.figures}", flush=True)
        failed += [] if found.passed else [part.name]
        kept = {**read(), part.name: found}  # after each part: a run that is ended keeps what it has
        RESULTS.write_text(json.dumps({name: asdict(kept[name]) for name in sorted(kept)}, indent=1) + "\n", "utf-8")
        PAGE.write_text(page(), "utf-8")
    print(f"failed: {', '.join(failed)}" if failed else "all passed", f"\nresults: {PAGE}, logs: {folder}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
