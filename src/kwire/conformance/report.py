"""The outcome of a run: results with their evidence, as Python objects and as JSON.

The JSON has the format number REPORT_FORMAT; `Report.from_json` reads what `Report.to_json` writes.
"""

from __future__ import annotations

import datetime
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kwire.conformance.check import Check, Verdict
from kwire.errors import OptionError

__all__ = ["MAX_EVIDENCE_BYTES", "REPORT_FORMAT", "Evidence", "Report", "Result"]

REPORT_FORMAT = 1
MAX_EVIDENCE_BYTES = 2048
"""Bytes of one message that a report keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Bytes of a message.

    label: what they are, such as "request 1". message, version: the name of the message and its version, None if the
    bytes are not one. is_framed: whether a length and a header precede the body. size_bytes: the size before the bytes
    were cut to MAX_EVIDENCE_BYTES.
    """

    label: str
    data: bytes
    message: str | None = None
    version: int | None = None
    is_framed: bool = True
    size_bytes: int = -1

    def __post_init__(self) -> None:
        if self.size_bytes < 0:
            object.__setattr__(self, "size_bytes", len(self.data))
            object.__setattr__(self, "data", bytes(self.data[:MAX_EVIDENCE_BYTES]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of one check.

    reason: a sentence; empty for a pass. expected, observed: values of JSON, None if there are none.
    """

    check: Check
    verdict: Verdict
    reason: str = ""
    expected: Any = None
    observed: Any = None
    evidence: tuple[Evidence, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of a run.

    kind: what was tested: broker, client or codec. subject: its address or command. release: of the baseline. notes:
    sentences about the whole run. facts: what is known of the subject, such as a version.
    """

    kind: str
    subject: str
    release: str
    made_at: datetime.datetime
    seconds: float
    results: tuple[Result, ...]
    notes: tuple[str, ...] = ()
    was_interrupted: bool = False
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def totals(self) -> dict[Verdict, int]:
        """The number of results with each verdict."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in Verdict}

    def findings(self, *, strict: bool = False) -> list[Result]:
        """Return the results because of which the exit code is 1."""
        return [result for result in self.results if result.verdict.is_finding(strict=strict)]

    def to_json(self) -> str:
        """Return the report as JSON, a result a line."""
        head = {
            "format": REPORT_FORMAT,
            "kind": self.kind,
            "subject": self.subject,
            "release": self.release,
            "made_at": self.made_at.astimezone(datetime.UTC).isoformat(timespec="seconds"),
            "seconds": round(self.seconds, 3),
            "totals": {verdict.value: count for verdict, count in self.totals.items()},
            "notes": list(self.notes),
            "interrupted": self.was_interrupted,
            "facts": self.facts,
        }
        lines = ",\n".join(json.dumps(_result_json(result)) for result in self.results)
        return json.dumps(head)[:-1] + f', "results": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str | bytes, name: str = "report") -> Report:
        """Read a report. name: for errors. Raises OptionError for JSON that is not a report."""
        try:
            obj = json.loads(text)
            if obj["format"] != REPORT_FORMAT:
                raise OptionError(f"{name}: report format {obj['format']!r}, expected {REPORT_FORMAT}")
            return cls(
                kind=str(obj["kind"]),
                subject=str(obj["subject"]),
                release=str(obj["release"]),
                made_at=datetime.datetime.fromisoformat(obj["made_at"]),
                seconds=float(obj["seconds"]),
                results=tuple(map(_result, obj["results"])),
                notes=tuple(obj["notes"]),
                was_interrupted=bool(obj["interrupted"]),
                facts=dict(obj["facts"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise OptionError(f"{name}: not a report of kwire conformance ({error!r})") from None


def _result_json(result: Result) -> dict[str, Any]:
    check = result.check
    return {
        "id": check.id,
        "chapter": check.chapter,
        "title": check.title,
        "source": check.source,
        "since": check.since,
        "until": check.until,
        "steps": list(check.steps),
        "verdict": result.verdict.value,
        "reason": result.reason,
        "expected": result.expected,
        "observed": result.observed,
        "seconds": round(result.seconds, 4),
        "evidence": [
            {
                "label": each.label,
                "message": each.message,
                "version": each.version,
                "framed": each.is_framed,
                "size": each.size_bytes,
                "hex": each.data.hex(),
            }
            for each in result.evidence
        ],
    }


def _result(obj: dict[str, Any]) -> Result:
    check = Check(
        id=str(obj["id"]),
        chapter=str(obj["chapter"]),
        title=str(obj["title"]),
        source=str(obj["source"]),
        since=obj["since"],
        until=obj["until"],
        steps=tuple(obj["steps"]),
    )
    evidence = tuple(
        Evidence(
            label=str(each["label"]),
            data=bytes.fromhex(each["hex"]),
            message=each["message"],
            version=each["version"],
            is_framed=bool(each["framed"]),
            size_bytes=int(each["size"]),
        )
        for each in obj["evidence"]
    )
    return Result(
        check=check,
        verdict=Verdict(obj["verdict"]),
        reason=str(obj["reason"]),
        expected=obj["expected"],
        observed=obj["observed"],
        evidence=evidence,
        seconds=float(obj["seconds"]),
    )
