"""Reports as JSON, JUnit and HTML."""

from __future__ import annotations

import dataclasses
import datetime
from xml.etree import ElementTree

import pytest

from kwire.conformance import Check, Evidence, Report, Result, Verdict, compare
from kwire.conformance.annotation import annotated
from kwire.conformance.check import in_range, select
from kwire.conformance.folding import FOLD_ABOVE
from kwire.conformance.junit import junit
from kwire.errors import OptionError
from kwire.messages import MetadataRequest
from kwire.pages.conformance_report import render_conformance
from kwire.pages.quantities import plural
from kwire.protocol import write_request

CHECK = Check(id="FETCH-001", chapter="Fetch", title="One <batch> & more", steps=("Fetch.", "Look."), source="KIP-74")
FRAME, _ = write_request(MetadataRequest(topics=None), 9, correlation_id=7, client_id="c")


def report(verdict: Verdict = Verdict.FAIL) -> Report:
    evidence = Evidence(label="request 1", data=FRAME, message="MetadataRequest", version=9)
    other = Evidence(label="response 1", data=b"\x00\x01junk")
    first = Result(
        check=CHECK,
        verdict=verdict,
        reason="error_code is 3",
        expected={"error": "NONE", "same": 1},
        observed={"error": "UNKNOWN_TOPIC_OR_PARTITION", "same": 1},
        evidence=(evidence, other),
        seconds=0.25,
    )
    second = Result(check=Check(id="META-001", chapter="Metadata", title="All topics"), verdict=Verdict.PASS)
    third = Result(
        check=Check(id="META-002", chapter="Metadata", title="Ids"), verdict=Verdict.UNSUPPORTED, reason="not listed"
    )
    now = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    return Report(
        kind="broker", subject="kafka://h:1", release="4.4.0", made_at=now, seconds=2.5, results=(first, second, third)
    )


def test_json_both_ways() -> None:
    assert Report.from_json(report().to_json()) == report()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', '{"format": 1}', "null"])
def test_other_json_is_not_a_report(text: str) -> None:
    with pytest.raises(OptionError):
        Report.from_json(text)


def test_strict_counts_what_is_not_supported() -> None:
    assert [each.check.id for each in report().findings()] == ["FETCH-001"]
    assert [each.check.id for each in report().findings(strict=True)] == ["FETCH-001", "META-002"]
    assert report(Verdict.DEVIATION).findings() == []


def test_junit() -> None:
    root = ElementTree.fromstring(junit(report()))
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("skipped")) for s in root] == [
        ("Fetch", "1", "1", "0"),
        ("Metadata", "2", "0", "1"),
    ]
    assert [each.get("message") for each in root.iter("failure")] == ["error_code is 3"]


def test_html_has_every_check_and_annotated_bytes() -> None:
    page = render_conformance(report())
    ElementTree.fromstring(page.partition("\n")[2])
    for text in ("FETCH-001", "META-002", "One &lt;batch&gt; &amp; more", "request_api_key", "KIP-74"):
        assert text in page
    assert "\\x0a" not in page


def test_evidence_is_annotated_to_its_last_byte() -> None:
    lines = annotated(report().results[0].evidence[0])
    assert b"".join(line.data for line in lines) == FRAME
    cut = annotated(Evidence(label="cut", data=FRAME[:-2], message="MetadataRequest", version=9))
    assert cut[-1].value  # the error


def test_long_evidence_is_cut() -> None:
    evidence = Evidence(label="long", data=bytes(5000))
    assert (len(evidence.data), evidence.size_bytes) == (2048, 5000)
    assert "bytes" in annotated(evidence)[-1].value


def test_comparison() -> None:
    rows = compare(report(), report(Verdict.PASS))
    assert [(row.check.id, row.differs) for row in rows] == [
        ("FETCH-001", True),
        ("META-001", False),
        ("META-002", False),
    ]


def test_selection() -> None:
    checks = [each.check for each in report().results]
    assert [each.id for each in select(checks, ["fetch"], [])] == ["FETCH-001"]
    assert [each.id for each in select(checks, ["Metadata"], ["META-002"])] == ["META-001"]
    with pytest.raises(OptionError, match="FETCH"):
        select(checks, ["FETSH-001"], [])


@pytest.mark.parametrize(
    ("since", "until", "release", "expected"),
    [
        (None, None, "4.4.0", True),
        ("2.8", None, "2.8.2", True),
        ("3.0", None, "2.8.2", False),
        (None, "3.9", "3.9.1", True),
        (None, "3.9", "4.0.0", False),
        ("4.4", "4.4", "4.4.0", True),
    ],
)
def test_releases_of_a_check(since: str | None, until: str | None, release: str, expected: bool) -> None:
    assert in_range(Check(id="A-1", chapter="A", title="t", since=since, until=until), release) is expected


def large(count: int) -> Report:
    """Return a report of a codec: `count` results, the last of which failed, and one before it is not supported."""

    def result(number: int) -> Result:
        verdict = {count - 1: Verdict.FAIL, count - 2: Verdict.UNSUPPORTED}.get(number, Verdict.PASS)
        check = Check(id=f"messages/Request{number % 2}/0/case-{number}", chapter="messages", title="A case")
        return Result(check=check, verdict=verdict, reason="" if verdict is Verdict.PASS else "why", seconds=0.5)

    return dataclasses.replace(report(), kind="codec", results=tuple(map(result, range(count))))


def test_a_large_report_counts_passes_by_message_and_keeps_failures() -> None:
    few, many = large(FOLD_ABOVE), large(FOLD_ABOVE + 1)
    assert len(ElementTree.fromstring(junit(few)).findall(".//testcase")) == FOLD_ABOVE
    assert render_conformance(few).count('class="check"') == FOLD_ABOVE
    suite = ElementTree.fromstring(junit(many))[0]
    assert [case.get("name") for case in suite] == [
        "messages/Request0: 1000 x pass",
        "messages/Request1: 999 x pass",
        "messages/Request1: 1 x not supported",
        "messages/Request0/0/case-2000 A case",
    ]
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped", "time")} == {
        "tests": "4",
        "failures": "1",
        "skipped": "1",
        "time": "1000.500",
    }
    page = render_conformance(many)
    assert page.count('class="check"') == 4
    assert plural(1000, "check") in page
    assert 'id="messages/Request0/0/case-2000"' in page
    assert len(Report.from_json(many.to_json()).results) == FOLD_ABOVE + 1


def test_strict_keeps_what_is_not_supported() -> None:
    names = [case.get("name") for case in ElementTree.fromstring(junit(large(FOLD_ABOVE + 1), strict=True))[0]]
    assert "messages/Request1/0/case-1999 A case" in names
