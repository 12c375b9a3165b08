"""`kwire schema diff`: exit codes, the four output formats, --allow, real releases."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.schema.writing import field, message, tagged

import kwire as package

ROOT = Path(__file__).parents[3]
A, B = field(name="A"), field(name="B")


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """sources(old, new) writes old/Order.json and new/Order.json into the working directory."""
    monkeypatch.chdir(tmp_path)

    def write(old: str, new: str) -> None:
        for folder, text in (("old", old), ("new", new)):
            (tmp_path / folder).mkdir(exist_ok=True)
            (tmp_path / folder / "Order.json").write_text(text)

    return write


def test_no_findings_print_nothing_with_exit_code_0(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A, validVersions="0-4"))
    result = kwire("schema", "diff", "old", "new")
    assert (result.code, result.out) == (0, "")
    assert result.err == "kwire: 0 violations, 0 notes, 1 definition\n"


def test_violations_are_listed_under_their_message(kwire: Callable, sources: Callable) -> None:
    sources(message(A, B), message(field(name="Renamed"), tagged(0)))
    result = kwire("schema", "diff", "old", "new")
    assert result.code == 1
    assert result.out.splitlines() == [
        "Order",
        "  new/Order.json:7: note: Order.Renamed: renamed from A; the bytes are the same [V-25]",
        "  new/Order.json:1: Order.B: removed, but versions 0-3 are still valid;"
        ' keep it; a new version may omit it ("versions": "0-3") [V-23]',
        "  new/Order.json:12: note: Order.Tagged0: tag 0 added to versions 1-3; old readers skip it [V-40]",
    ]
    assert result.err == "kwire: 1 violation, 2 notes, 1 definition\n"


def test_notes_alone_have_exit_code_0(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A, tagged(0)))
    assert kwire("schema", "diff", "old", "new").code == 0


def test_json_has_every_entry(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(field("int64", "A")))
    result = kwire("schema", "diff", "old", "new", "--format", "json")
    assert result.code == 1
    assert json.loads(result.out) == [
        {
            "kind": "violation",
            "rule": "V-51",
            "where": "Order.A",
            "message": "type int32 becomes int64",
            "advice": "keep int32, or give released versions the encoding fixed32",
            "versions": "0-3",
            "file": "new/Order.json",
            "line": 7,
        }
    ]
    sources(message(A), message(A))
    assert json.loads(kwire("schema", "diff", "old", "new", "--format", "json").out) == []


def test_github_format_prints_annotations(kwire: Callable, sources: Callable) -> None:
    sources(message(A | {"default": "1"}), message(A, tagged(0)))
    result = kwire("schema", "diff", "old", "new", "--format", "github")
    assert result.out.splitlines() == [
        "::error file=new/Order.json,line=7,title=V-50 Order.A::default 1 becomes 0; keep it: all released versions"
        " send it, but code that does not set it would send another value",
        "::notice file=new/Order.json,line=12,title=V-40 Order.Tagged0::tag 0 added to versions 1-3; "
        "old readers skip it",
    ]


def test_annotations_escape_their_text(kwire: Callable, sources: Callable) -> None:
    """Texts of a definition are part of GitHub's workflow commands: line ends, percent signs, commas, colons."""
    text = "50%\r\n::stop-commands::x\x1b[31m"
    sources(message(field("string", "A")), message(field("string", "A", default=text)))
    [line] = kwire("schema", "diff", "old", "new", "--format", "github").out.splitlines()
    assert "50%25\\r\\n::stop-commands::x" in line
    assert "\x1b" not in line
    sources(message(A), message(A))
    Path("old/Order.json").rename("old/a,b:c%.json")
    Path("new/Order.json").unlink()
    Path("new/x.json").write_text(message(A, name="Other"))
    [line, _] = kwire("schema", "diff", "old", "new", "--format", "github").out.splitlines()
    assert line.startswith("::error file=old/a%2Cb%3Ac%25.json,line=1,title=V-04 Order::")


def test_sarif_has_rules_results_and_locations(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A | {"default": "1"}, tagged(0)))
    log = json.loads(kwire("schema", "diff", "old", "new", "--format", "sarif").out)
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("kwire", package.__version__)
    assert [rule["id"] for rule in driver["rules"]] == ["V-40", "V-50"]
    assert driver["rules"][1]["shortDescription"] == {"text": "a default never changes"}
    violation, note = run["results"]
    assert (violation["ruleId"], violation["level"], note["ruleId"], note["level"]) == ("V-50", "error", "V-40", "note")
    assert driver["rules"][violation["ruleIndex"]]["id"] == "V-50"
    assert violation["locations"] == [
        {
            "physicalLocation": {"artifactLocation": {"uri": "new/Order.json"}, "region": {"startLine": 7}},
            "logicalLocations": [{"fullyQualifiedName": "Order.A"}],
        }
    ]
    assert violation["message"]["text"].startswith("Order.A: default 0 becomes 1; ")


def test_sarif_without_findings_is_an_empty_run(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A))
    [run] = json.loads(kwire("schema", "diff", "old", "new", "--format", "sarif").out)["runs"]
    assert run["results"] == run["tool"]["driver"]["rules"] == []


@pytest.mark.parametrize("shape", ["text", "json", "github", "sarif"])
def test_invalid_definitions_are_errors_in_every_format(kwire: Callable, sources: Callable, shape: str) -> None:
    sources(message(A, field("nosuch", "X")), message(A, tagged(3)))
    result = kwire("schema", "diff", "old", "new", "--format", shape)
    assert result.code == 1
    assert "E-10" in result.out
    assert "E-27" in result.out
    assert "2 errors" in result.err


def test_an_invalid_definition_has_its_line_number(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A, field("nosuch", "X")))
    result = kwire("schema", "diff", "old", "new", "--format", "github")
    assert result.out.startswith("::error file=new/Order.json,line=12,title=E-10 Order.X::")


@pytest.mark.requirement("V-53")
def test_allowed_changes_are_notes(kwire: Callable, sources: Callable) -> None:
    sources(message(A, B), message(A, field(name="B", default="1"), validVersions="2-3"))
    assert kwire("schema", "diff", "old", "new", "--allow", "V-53").code == 1
    result = kwire("schema", "diff", "old", "new", "--allow", "V-53", "--allow", "V-50:Order.*")
    assert result.code == 0
    assert result.out.count("note: ") == 2
    assert kwire("schema", "diff", "old", "new", "--allow", "V-53:Bill", "--allow", "V-50").code == 1


@pytest.mark.requirement("V-27", "V-48")
def test_like_kafka_agrees_with_kafkas_checker(kwire: Callable, sources: Callable) -> None:
    sources(message(A, B), message(A, B, tagged(0)))
    assert "V-27" in kwire("schema", "diff", "old", "new", "--like-kafka").out
    sources(message(A, B), message(B, A))
    assert kwire("schema", "diff", "old", "new", "--like-kafka").code == 0
    assert kwire("schema", "diff", "old", "new").code == 1
    sources(message(A | {"default": "0x10"}), message(A | {"default": "16"}))
    assert "V-17" in kwire("schema", "diff", "old", "new", "--like-kafka").out


@pytest.mark.requirement("T-21")
def test_the_old_definition_is_first_with_like_kafka(kwire: Callable, sources: Callable) -> None:
    """Kafka's git command swaps new and old, so its results are those of the reverse change."""
    sources(message(A), message(A, field(name="B", versions="4+"), validVersions="0-4"))
    assert kwire("schema", "diff", "old", "new", "--like-kafka").code == 0
    assert kwire("schema", "diff", "new", "old", "--like-kafka").code == 1


@pytest.mark.requirement("V-43")
def test_history_finds_a_reused_tag(kwire: Callable, sources: Callable, tmp_path: Path) -> None:
    sources(message(A), message(A, tagged(0, type="string")))
    (tmp_path / "1.0").mkdir()
    (tmp_path / "1.0" / "Order.json").write_text(message(A, tagged(0)))
    assert kwire("schema", "diff", "old", "new").code == 0
    result = kwire("schema", "diff", "old", "new", "--history", "1.0")
    assert result.code == 1
    assert "tag 0 was used by Tagged0 (int32) in 1.0/Order.json" in result.out


def test_a_dialect_accepts_definitions_that_strict_mode_rejects(kwire: Callable, sources: Callable) -> None:
    sources(message(A, flexibleVersions=None), message(A, flexibleVersions="none"))
    assert kwire("schema", "diff", "old", "new").code == 1
    assert kwire("schema", "diff", "old", "new", "--dialect", "kafka").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("old",),
        ("old", "nowhere"),
        ("nosuch:definitions", "new"),
        ("old", "new", "--format", "xml"),
        ("old", "new", "--allow", "V-99"),
        ("old", "new", "--history", "nowhere"),
        ("old", "new", "--history", "old", "--like-kafka"),
        ("old", "empty"),
    ],
    ids=" ".join,
)
def test_wrong_usage_has_exit_code_2(kwire: Callable, sources: Callable, arguments: tuple[str, ...]) -> None:
    sources(message(A), message(A))
    Path("empty").mkdir()
    result = kwire("schema", "diff", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_an_invalid_jar_has_its_own_error(kwire: Callable, sources: Callable) -> None:
    sources(message(A), message(A))
    Path("broken.jar").write_bytes(b"not a zip")
    result = kwire("schema", "diff", "broken.jar", "new")
    assert result.code == 1
    assert "broken.jar" in result.out
    with zipfile.ZipFile("good.jar", "w") as archive:
        archive.writestr("common/message/Order.json", message(A))
    assert kwire("schema", "diff", "good.jar", "new").code == 0


# Kafka's own releases. Every violation found here is explained in docs/evolution.md, "Kafka's own releases".


@pytest.mark.parametrize(("old", "new"), [("2.8.2", "3.9.1"), ("3.9.1", "4.4.0")])
def test_every_violation_between_kafkas_releases_is_explained(kwire: Callable, old: str, new: str) -> None:
    catalogue = ROOT / "definitions"
    result = kwire("schema", "diff", catalogue / f"kafka-{old}", catalogue / f"kafka-{new}", "--format", "json")
    found = [finding for finding in json.loads(result.out) if finding["kind"] == "violation"]
    page = (ROOT / "docs" / "evolution.md").read_text()
    section = page[page.index(f"### {old} to {new}: {len(found)} violations") :].partition("\n#")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ")]
    for finding in found:
        name, _, path = finding["where"].partition(".")
        api = re.sub("(Request|Response|Key|Value)$", "", name)
        explained = [row for row in rows if (f"`{name}`" in row or f"`{api}`" in row) and finding["rule"] in row]
        assert explained, finding
        if finding["rule"] == "V-50":
            assert path in explained[0]


@pytest.mark.parametrize("release", ["2.8.2", "3.9.1", "4.4.0"])
def test_a_kafka_release_compared_with_itself_has_no_findings(kwire: Callable, release: str) -> None:
    catalogue = ROOT / "definitions" / f"kafka-{release}"
    result = kwire("schema", "diff", catalogue, catalogue)
    assert (result.code, result.out) == (0, "")
