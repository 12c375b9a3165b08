"""A report as JUnit XML: a test suite a chapter, a test case a check, or in a large report a fold of checks."""

from __future__ import annotations

from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kwire.conformance.check import Verdict
from kwire.conformance.folding import Fold, folded
from kwire.conformance.report import Report, Result

__all__ = ["junit"]

SKIPPED = (Verdict.UNSUPPORTED, Verdict.NOT_APPLICABLE)


def junit(report: Report, *, strict: bool = False) -> str:
    """Return the report as JUnit XML. strict: allowed deviations and unsupported features are failures."""
    root = Element("testsuites", name=f"kwire conformance {report.kind}", time=f"{report.seconds:.3f}")
    for chapter, group in groupby(report.results, key=lambda result: result.check.chapter):
        results = folded(list(group), total=len(report.results), strict=strict)
        failures = sum(each.verdict.is_finding(strict=strict) for each in results)
        skipped = sum(each.verdict in SKIPPED and not each.verdict.is_finding(strict=strict) for each in results)
        suite = SubElement(
            root,
            "testsuite",
            name=chapter,
            tests=str(len(results)),
            failures=str(failures),
            skipped=str(skipped),
            time=f"{sum(each.seconds for each in results):.3f}",
        )
        for each in results:
            if isinstance(each, Fold):
                _fold(suite, each)
            else:
                _case(suite, each, is_failure=each.verdict.is_finding(strict=strict))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _fold(suite: Element, fold: Fold) -> None:
    name = f"{fold.subject}: {fold.count} x {fold.verdict.value}"
    case = SubElement(
        suite, "testcase", classname=_xml(suite.get("name", "")), name=_xml(name), time=f"{fold.seconds:.3f}"
    )
    if fold.verdict in SKIPPED:
        SubElement(case, "skipped", message=_xml(f"{fold.verdict.value}: {fold.reason}"))


def _case(suite: Element, result: Result, *, is_failure: bool) -> None:
    check = result.check
    name = f"{check.id} {check.title}"
    case = SubElement(suite, "testcase", classname=_xml(check.chapter), name=_xml(name), time=f"{result.seconds:.3f}")
    if is_failure:
        SubElement(case, "failure", message=_xml(result.reason), type=result.verdict.value).text = _details(result)
    elif result.verdict in SKIPPED:
        SubElement(case, "skipped", message=_xml(f"{result.verdict.value}: {result.reason}"))
    elif result.reason:
        SubElement(case, "system-out").text = _xml(f"{result.verdict.value}: {result.reason}")


def _details(result: Result) -> str:
    lines = [*result.check.steps, f"expected {result.expected}", f"observed {result.observed}"]
    lines += [f"{each.label}: {each.data.hex(' ')}" for each in result.evidence]
    return _xml("\n".join(lines))


def _xml(text: str) -> str:
    """Return text without characters that XML cannot hold."""
    return "".join(c if c in "\t\n" or " " <= c < "\ud800" or "\ue000" <= c <= "\ufffd" else "?" for c in text)
