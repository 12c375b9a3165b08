"""Every documentation page: Python examples run, commands and options exist, links resolve."""

from __future__ import annotations

import ast
import functools
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.docs.examples import BLOCK, ON_SPARK, PAGES, ROOT, blocks, fill, in_place, names_of, needs_spark

from kwire.cli.main import build

# Pages whose examples are run by another test, in another order or with additions.
RUN_ELSEWHERE = {
    "cluster.md": "tests/docs/test_cluster_page.py",
    "clusters.md": "tests/docs/test_clusters_page.py",
    "README.md": "tests/docs/test_readme.py",
    "deployment.md": "tests/interop/test_spark_deployment.py",
    "evolution.md": "tests/docs/test_evolution.py",
    "functions.md": "tests/spark/test_functions.py",
    "jobs.md": "tests/spark/jobs/test_jobs_on_spark.py",
    "live.md": "tests/spark/live/test_page.py",
    "plan.md": "tests/plan/test_pages.py",
    "protocol.md": "tests/plan/test_pages.py",
    "quickstart.md": "tests/docs/test_quickstart.py",
    "restore.md": "tests/docs/test_restore_page.py",
    "sail.md": "tests/spark/test_sail.py",
    "schemas.md": "tests/spark/test_registry_functions.py",
    "security.md": "tests/docs/test_broker_pages.py",
    "table-append.md": "tests/spark/lake/test_page.py",
    "table-changes.md": "tests/spark/lake/test_page.py",
    "table-dead-letters.md": "tests/spark/lake/test_page.py",
    "table-record-types.md": "tests/spark/lake/test_page.py",
    "table-streams.md": "tests/spark/lake/test_page.py",
    "table-verify.md": "tests/spark/lake/test_page.py",
    "tables.md": "tests/spark/lake/test_page.py",
    "testing.md": "tests/spark/test_kafka_spark.py",
    "transactions.md": "tests/docs/test_broker_pages.py",
}


PLAIN = (
    "adopt.md", "avro.md", "broker.md", "capture.md", "compaction.md", "conversion.md", "convert.md", "faults.md",
    "internal.md", "log.md", "messages.md", "records.md", "repair.md", "sql.md", "tap.md", "tiered.md",
    "writing-logs.md",
)  # fmt: skip


@pytest.mark.parametrize("page", PLAIN)
def test_examples_run(page: str, kafka_logs: dict[str, Path], tmp_path: Path) -> None:
    data = fill(page, tmp_path, kafka_logs)
    names = names_of(page, data)
    examples = [source for source in blocks(page, "python") if not needs_spark(source)]
    assert examples
    for source in examples:
        exec(compile(in_place(source, data, tmp_path), page, "exec"), names)


def test_every_page_with_an_example_has_a_test_that_runs_it() -> None:
    with_examples = {page for page in PAGES if blocks(page, "python")}
    assert with_examples == {*PLAIN, *ON_SPARK, *RUN_ELSEWHERE}
    for page, test in RUN_ELSEWHERE.items():
        assert page.removesuffix(".md") in (ROOT / test).read_text("utf-8"), f"{test} does not run {page}"


# Documented by the protocol site instead.
MESSAGE_MODULES = {"kwire.messages", "kwire.messages.metadata_response"}


# ---- commands


@functools.cache
def command_line() -> Any:
    """Return the command `kwire`, as click has it."""
    return typer.main.get_command(build())


def find_command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command of a command line and the remaining words."""
    command = command_line()
    while words and hasattr(command, "commands"):
        assert words[0] in command.commands, f"kwire has no command {words[0]!r}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def command_lines(page: str) -> list[str]:
    """Return the `kwire ...` lines of blocks that are not Python, without comments."""
    lines = []
    for language, source in BLOCK.findall(PAGES[page].read_text("utf-8")):
        if language != "python":
            for line in source.replace("\\\n", " ").splitlines():
                line = re.sub(r"^\s*\$ ", "", line)
                if line.startswith("kwire "):
                    lines.append(re.split(r"\s#|\s{3,}|\s[|>&]\s|\s*[|>]\s|$", line.removeprefix("kwire "))[0])
    return lines


@pytest.mark.parametrize("page", sorted(PAGES))
def test_commands_exist_with_their_options(page: str) -> None:
    for line in command_lines(page):
        command, words = find_command(shlex.split(line))
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for word in words:
            option = re.fullmatch(r"(--?[A-Za-z][\w-]*)(=.*)?", word)
            if option is not None:
                assert option[1] in {*known, "--help", "-h"}, f"{page}: `kwire {line}` has no option {option[1]}"


def test_the_page_of_the_command_line_names_every_command() -> None:
    text = PAGES["cli.md"].read_text("utf-8")
    assert [name for name in command_line().commands if f"`kwire {name}" not in text] == []


# ---- links


def anchors(page: Path) -> set[str]:
    """Return the ids of a page's headings, as GitHub generates them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    texts = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in texts}


LINKED = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}


@pytest.mark.parametrize("page", sorted(LINKED), ids=lambda path: path.name)
def test_links_resolve(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", BLOCK.sub("", page.read_text("utf-8")))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name} links to {link}: {target.name} has no such heading"


SOURCE = ROOT / "src" / "kwire"
DESIGN = PAGES["design.md"].read_text("utf-8")
FOREIGN = {"Python.h", "breakpoint", "max_length", "pushFilters", "spark.python.worker.faulthandler.enabled"}
"""Names in the design document that kwire's code does not have: Python's, Spark's and isal's."""


def is_in_source(name: str, *folders: Path) -> bool:
    return any((folder / name).exists() for folder in (SOURCE, ROOT, *folders))


def test_files_named_in_design_exist() -> None:
    """A bare name, such as `runs.py`, is in the folder of a file that its line names."""
    named, missing = 0, []
    for line in DESIGN.splitlines():
        files = [Path(file) for file in re.findall(r"`([\w./-]+\.(?:py|c|h|md))`", line) if file not in FOREIGN]
        folders = [SOURCE / file.parent for file in files if file.parent.parts]
        named += len(files)
        missing += [str(file) for file in files if not is_in_source(str(file), *([] if file.parent.parts else folders))]
    assert missing == []
    assert named > 60


def test_modules_of_data_flow_in_design_exist() -> None:
    """Modules are named without their suffix there, in full or below their package."""
    flow = DESIGN.partition("## Data flow")[2].partition("\n## ")[0]
    modules = set(re.findall(r"(?<![\w./*`])((?:[a-z_]+/)+[a-z_]+)(?![\w/.*`])", flow))
    assert len(modules) > 20
    packages = [folder for folder in SOURCE.iterdir() if folder.is_dir()]
    assert {name for name in modules if not is_in_source(f"{name}.py", *packages)} == set()


def test_functions_and_classes_named_in_design_exist() -> None:
    source = "".join(path.read_text("utf-8") for suffix in ("py", "c", "h") for path in SOURCE.rglob(f"*.{suffix}"))
    words = {*re.findall(r"\w+", source), *(path.stem for path in SOURCE.rglob("*.py"))}
    named = set(re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", BLOCK.sub("", DESIGN)))
    named = {name for name in named - FOREIGN if not name.endswith((".md", ".lock"))}
    assert len(named) > 60
    assert {name for name in named if not words >= set(name.removesuffix(".py").split("."))} == set()


def test_modules_that_pages_import_are_in_the_reference() -> None:
    listed = set(re.findall(r'"(kwire[\w.]*)"', (ROOT / "tools" / "site_pages.py").read_text("utf-8")))
    imported: dict[str, set[str]] = {}
    for page in PAGES:
        for source in blocks(page, "python"):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kwire."):
                    imported.setdefault(node.module or "", set()).add(page)
    unlisted = {name: pages for name, pages in imported.items() if name not in listed | MESSAGE_MODULES}
    assert unlisted == {}


def test_every_kip_named_in_the_code_is_on_the_kips_page() -> None:
    source = "".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    page = PAGES["kips.md"].read_text("utf-8")
    missing = set(re.findall(r"KIP-\d+", source)) - set(re.findall(r"KIP-\d+", page))
    assert not missing


def test_contributing_lists_every_module_of_interop() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    listed = set(re.findall(r"`(test_\w+)`", text.partition("## What a change does not run")[2]))
    assert listed == {file.stem for file in (ROOT / "tests" / "interop").glob("test_*.py")}
