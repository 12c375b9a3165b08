"""Generate docs/requirements.md: every requirement and rule, with the tests that prove it.

Ids and texts come from docs/spec/: requirements.md (the KIPs, sentence by sentence), messages.md and records.md. A test
names the ids it proves with @pytest.mark.requirement("R-21", "S31-05"). An id without a test has a reason in
WITHOUT_TEST.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUTPUT = ROOT / "docs" / "requirements.md"
ID = re.compile(r"^(S482D?|S625|SDEF|S31|[A-Z])-\d+$")
GROUPS = {
    "S482": "KIP-482: tagged fields and flexible versions",
    "S482D": "KIP-482, superseded lines of the draft (rejected or absent)",
    "S625": "KIP-625: integer encodings per version",
    "SDEF": "Message definitions",
    "S31": "KIP-31: relative offsets",
    "E": "Definition errors",
    "W": "Wire format of messages",
    "J": "JSON form of messages",
    "V": "Evolution of definitions",
    "I": "Integer encodings",
    "T": "Traps",
    "R": "Record formats",
    "C": "Compression",
    "U": "Conversion",
    "A": "Append validation",
    "P": "Producer state",
    "F": "Files of a log directory",
    "G": "Loading and recovery",
    "X": "Compaction",
    "D": "Consumer side",
}
# Ids without a test, with the reason. Background (B) needs none.
WITHOUT_TEST = {
    "W-71": "Java only: message objects are mutable here and have no hash",
    "W-74": "Java only: here an element may be in any number of lists",
    "SDEF-77": "for callers; values that a version cannot carry are rejected (SDEF-108)",
}


def known_ids() -> dict[str, str]:
    """Return id -> text. Requirements are rows of `| id | kind | text | rule |`, rules are list items or table rows."""
    found: dict[str, str] = {}
    for line in (ROOT / "docs" / "spec" / "requirements.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and ID.match(cells[0]):
            found[cells[0]] = f"{cells[2]} ({cells[1]})"
    for name in ("messages.md", "records.md"):
        text = (ROOT / "docs" / "spec" / name).read_text().replace("\n  ", " ")  # joins list items of several lines
        for line in text.splitlines():
            listed = re.match(r"^[*|] ([A-Z]-\d+):? (.*)", line)
            if listed:
                cells = listed[2].strip("| ").split(" | ")
                found.setdefault(listed[1], cells[-1] if listed[1][0] == "E" else ": ".join(cells[:2]))
    return found


def named_in_tests() -> dict[str, set[str]]:
    """Return id -> the test modules whose requirement markers name it."""
    tests: dict[str, set[str]] = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        tests[argument.value].add(path.relative_to(ROOT).as_posix())
    return tests


def render() -> str:
    """Return the page. Raises ValueError if a test names an unknown id, or an id has neither a test nor a reason."""
    ids, tests = known_ids(), named_in_tests()
    unknown = sorted(set(tests) - set(ids))
    if unknown:
        raise ValueError(f"tests name ids that are missing in docs/spec: {', '.join(unknown)}")
    unproven = sorted(name for name in ids.keys() - tests.keys() - WITHOUT_TEST.keys() if not ids[name].endswith("(B)"))
    if unproven:
        raise ValueError(f"ids without a test, and without a reason in WITHOUT_TEST: {', '.join(unproven)}")
    groups: dict[str, list[str]] = defaultdict(list)
    for name in ids:
        groups[name.rpartition("-")[0]].append(name)
    out = [
        "# Requirements and the tests that prove them",
        "Every requirement and rule of [spec/](spec/), with the tests that prove it. `./dev generate` makes this page",
        "from the tests' markers. In brackets: N normative, C compatibility or process rule, B background.",
        "",
        "| group | ids | with tests |",
        "| --- | ---: | ---: |",
    ]
    ordered = [g for g in GROUPS if g in groups]
    out += [f"| {g}: {GROUPS[g]} | {len(groups[g])} | {sum(n in tests for n in groups[g])} |" for g in ordered]
    for group in ordered:
        out += ["", f"## {group}: {GROUPS[group]}", "| id | text | tests |", "| --- | --- | --- |"]
        for name in sorted(groups[group], key=lambda n: int(n.rpartition("-")[2])):
            where = ", ".join(f"[{Path(t).stem}](../{t})" for t in sorted(tests.get(name, ())))
            where = where or WITHOUT_TEST.get(name, "-")
            text = ids[name].replace("|", "\\|")
            out.append(f"| {name} | {text if len(text) <= 200 else text[:197] + '...'} | {where} |")
    return "\n".join(out) + "\n"


def main(*, check: bool) -> bool:
    """Write the page, or with check only compare it. Returns whether it is up to date."""
    fresh = render()
    if check:
        return OUTPUT.exists() and OUTPUT.read_text() == fresh
    OUTPUT.write_text(fresh)
    return True
