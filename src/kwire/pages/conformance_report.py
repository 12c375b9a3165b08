"""The conformance report: totals, a matrix of all checks, the findings, then each chapter with its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from kwire.conformance.annotation import annotated
from kwire.conformance.check import Verdict
from kwire.conformance.folding import FOLD_ABOVE, Fold, folded
from kwire.conformance.report import Evidence, Report, Result
from kwire.pages.document import document, made_by, page_head, tiles
from kwire.pages.markup import Child, Markup, element, join
from kwire.pages.quantities import bytes_text, count_text, plural

__all__ = ["render_conformance"]

CLASSES = {
    Verdict.PASS: "v-pass",
    Verdict.FAIL: "v-fail",
    Verdict.DEVIATION: "v-deviation",
    Verdict.UNSUPPORTED: "v-unsupported",
    Verdict.NOT_APPLICABLE: "v-na",
}
MEANINGS = {
    "broker": {
        Verdict.PASS: ("as real Kafka of this release", "The broker did what Kafka of the baseline release does."),
        Verdict.FAIL: (
            "different from real Kafka",
            "It did something else, did not respond, or its bytes could not be read.",
        ),
        Verdict.DEVIATION: (
            "different, and harmless to clients",
            "It did something else that the check allows, with the reason.",
        ),
        Verdict.UNSUPPORTED: (
            "not listed in ApiVersions",
            "It does not list the API or version that the check needs.",
        ),
    },
    "client": {
        Verdict.PASS: (
            "requests and results are right",
            "The requests fit their definitions and each other, and nothing was lost, doubled or reordered.",
        ),
        Verdict.FAIL: (
            "wrong requests or results",
            "A request was wrong, or what the program printed is not what the scenario has.",
        ),
        Verdict.DEVIATION: (
            "different, and nothing lost silently",
            "It did something else that the scenario allows, with the reason.",
        ),
        Verdict.UNSUPPORTED: (
            "the client cannot do the task",
            "The program says so, or the client refuses a version of the protocol.",
        ),
    },
    "codec": {
        Verdict.PASS: ("as Kafka's classes", "The codec read and wrote the bytes as Kafka's own classes do."),
        Verdict.FAIL: (
            "different from Kafka's classes",
            "It read or wrote something else, accepted what is invalid, or did not respond.",
        ),
        Verdict.DEVIATION: (
            "different, and harmless",
            "It did something else that the case allows, with the reason.",
        ),
        Verdict.UNSUPPORTED: (
            "not known to the codec",
            "It does not know the type or version of the case.",
        ),
    },
}
"""What a verdict means for what was tested: in a few words, and in a sentence."""
NOT_APPLICABLE = ("no sense in this run", "The check is about other releases, or this run lacks what it needs.")
MAX_LINES = {True: 150, False: 16}
"""Annotated lines of a message, of findings and of other results."""
BYTES_A_LINE = 12
BYTES_WIDTH = 3 * BYTES_A_LINE - 1
FIELD_WIDTH = 30
OPEN_MESSAGES = 4
SQUARE = "A square is a check; select one for its steps and bytes."
LARGE_SQUARE = (
    "A square is a failure or a deviation, or all checks of a message with one verdict; report.json has each check."
)
NEW_LINE = Markup("\n")


def render_conformance(report: Report) -> str:
    """Return a report as one HTML page, without scripts or external resources."""
    chapters = [(name, list(group)) for name, group in groupby(report.results, key=lambda each: each.check.chapter)]
    relation = "as a client of" if report.kind == "client" else "compared with"
    below = f"{relation} Kafka {report.release}, {made_by(report.made_at)}, in {report.seconds:.0f} s"
    meanings = {**MEANINGS[report.kind], Verdict.NOT_APPLICABLE: NOT_APPLICABLE}
    totals = [(verdict.value, count_text(count), meanings[verdict][0]) for verdict, count in report.totals.items()]
    body = element(
        "body",
        page_head(f"Kafka conformance: {report.kind}", report.subject, below),
        element(
            "main",
            _notes(report),
            tiles(totals),
            _matrix(chapters, len(report.results)),
            _findings(report),
            *(_chapter(name, results, len(report.results)) for name, results in chapters),
            _legend({verdict: sentence for verdict, (_, sentence) in meanings.items()}),
        ),
    )
    return document(f"Kafka conformance: {report.subject}", body)


def _notes(report: Report) -> Markup | None:
    if not report.notes:
        return None
    lines = [element("li", note) for note in report.notes]
    return element("section", element("h2", "This run"), element("ul", *lines), class_="damage")


def _matrix(chapters: list[tuple[str, list[Result]]], total: int) -> Markup:
    """Return a row for each chapter, with a square for each check, or fold of checks, that leads to it."""
    rows = [
        join(
            element("a", name, href=f"#{_anchor(name)}", class_="cells-name"),
            element("div", *map(_cell, folded(results, total=total)), class_="cells"),
            element("span", f"{_passed(results)} / {len(results)}", class_="cells-count"),
        )
        for name, results in chapters
    ]
    legend = [element("span", element("span", class_=f"key {CLASSES[verdict]}"), verdict.value) for verdict in Verdict]
    return element(
        "section",
        element("h2", "All checks"),
        element("p", SQUARE if total <= FOLD_ABOVE else LARGE_SQUARE, class_="sub"),
        element("div", *rows, class_="matrix"),
        element("div", *legend, class_="legend"),
    )


def _passed(results: list[Result]) -> int:
    return sum(each.verdict is Verdict.PASS for each in results)


def _cell(result: Result | Fold) -> Markup:
    if isinstance(result, Fold):
        label = f"{result.subject}: {count_text(result.count)} {result.verdict.value}"
        classes = f"cell {CLASSES[result.verdict]}"
        return element("a", "", href=f"#{result.id}", class_=classes, title=label, aria_label=label)
    check = result.check
    label = f"{check.id}: {result.verdict.value}"
    return element(
        "a",
        "",
        href=f"#{check.id}",
        class_=f"cell {CLASSES[result.verdict]}",
        title=f"{label}: {check.title}",
        aria_label=label,
    )


def _findings(report: Report) -> Markup:
    findings = report.findings()
    if not findings:
        text = "Nothing failed." if report.results else "No check was run."
        return element("section", element("div", element("p", text), class_="fine"))
    return element(
        "section",
        element("h2", f"{plural(len(findings), 'failure')}"),
        element("div", *(_finding(each) for each in findings), class_="findings"),
    )


def _finding(result: Result) -> Markup:
    check = result.check
    return element(
        "div",
        element("div", _badge(result), " ", element("a", check.id, href=f"#{check.id}"), " ", check.title),
        element("p", result.reason),
        class_="finding failed",
    )


def _chapter(name: str, results: list[Result], total: int) -> Markup:
    return element(
        "section",
        element("h2", name),
        element("p", _chapter_line(results), class_="sub"),
        element("div", *map(_check, folded(results, total=total)), class_="checks"),
        id=_anchor(name),
    )


def _chapter_line(results: list[Result]) -> str:
    counts = ((verdict, sum(each.verdict is verdict for each in results)) for verdict in Verdict)
    return ", ".join(f"{count_text(count)} {verdict.value}" for verdict, count in counts if count)


def _check(result: Result | Fold) -> Markup:
    if isinstance(result, Fold):
        return _fold(result)
    check = result.check
    is_failed = result.verdict is Verdict.FAIL
    facts = [
        check.source,
        f"since Kafka {check.since}" if check.since else "",
        f"until Kafka {check.until}" if check.until else "",
        f"{result.seconds * 1000:.0f} ms",
    ]
    return element(
        "details",
        element("summary", _badge(result), element("code", check.id), element("span", check.title)),
        element("ol", *(element("li", step) for step in check.steps)) if check.steps else None,
        element("p", " · ".join(filter(None, facts)), class_="quiet"),
        element("p", result.reason, class_="reason") if result.reason else None,
        _differences(result),
        *_messages(result.evidence, is_failed=is_failed),
        id=check.id,
        class_="check",
        open="open" if is_failed else None,
    )


def _fold(fold: Fold) -> Markup:
    title = element("span", plural(fold.count, "check"))
    return element(
        "details",
        element("summary", _badge(fold), element("code", fold.subject), title),
        element("p", fold.reason, class_="reason") if fold.reason else None,
        element("p", f"report.json has each of them · {fold.seconds * 1000:.0f} ms", class_="quiet"),
        id=fold.id,
        class_="check",
    )


def _differences(result: Result) -> Markup | None:
    """Return the values that differ; all values of a result without a baseline."""
    if result.observed is None or result.verdict is Verdict.PASS:
        return None
    expected, observed = result.expected, result.observed
    if not isinstance(expected, dict) or not isinstance(observed, dict):
        expected, observed = {"value": expected}, {"value": observed}
    names = [name for name in {**expected, **observed} if expected.get(name) != observed.get(name)]
    rows = [
        element(
            "tr",
            element("th", name),
            element("td", element("code", _value(expected, name))),
            element("td", element("code", _value(observed, name))),
        )
        for name in names
    ]
    head = element("tr", element("th", ""), element("th", "Kafka"), element("th", "observed"))
    return element("div", element("table", element("thead", head), element("tbody", *rows)), class_="scroll")


def _value(values: dict[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False) if name in values else "none"


def _messages(evidence: Sequence[Evidence], *, is_failed: bool) -> Iterator[Markup]:
    """Yield the messages; the last ones of a failure are open: those before them prepare the check."""
    for i, each in enumerate(evidence):
        yield _message(each, MAX_LINES[is_failed], is_open=is_failed and i >= len(evidence) - OPEN_MESSAGES)


def _message(evidence: Evidence, max_lines: int, *, is_open: bool) -> Markup:
    what = evidence.label
    if evidence.message is not None:
        what += f": {evidence.message}, version {evidence.version}"
    lines = join(*(_line(*line) for line in annotated(evidence, max_lines)))
    caption = element("summary", what, element("small", bytes_text(evidence.size_bytes)))
    shown = element("div", element("pre", lines), class_="scroll")
    return element("details", caption, shown, class_="hex", open="open" if is_open else None)


def _line(position: int, data: bytes, field: str, type_: str, value: str) -> Markup:
    shown = data[:BYTES_A_LINE].hex(" ") + (" …" if len(data) > BYTES_A_LINE else "")
    name: Child = element("b", f"{field:<{FIELD_WIDTH}}") if field else ""
    end = join("  ", element("i", type_), "  ", value) if type_ else (f"  {value}" if value else "")
    return join(element("i", f"{position:06x}"), f"  {shown:<{BYTES_WIDTH + 2}}  ", name, end, NEW_LINE)


def _badge(result: Result | Fold) -> Markup:
    return element("span", result.verdict.value, class_=f"badge {CLASSES[result.verdict]}")


def _anchor(chapter: str) -> str:
    return "chapter-" + "".join(c if c.isalnum() else "-" for c in chapter.lower())


def _legend(meanings: dict[Verdict, str]) -> Markup:
    strictly = {each for each in Verdict if each.is_finding(strict=True) and not each.is_finding(strict=False)}
    lines = [
        element(
            "li",
            element("span", verdict.value, class_=f"badge {CLASSES[verdict]}"),
            f" {text}{' --strict makes it a failure.' if verdict in strictly else ''}",
        )
        for verdict, text in meanings.items()
    ]
    return element("footer", element("h2", "How to read this"), element("ul", *lines))
