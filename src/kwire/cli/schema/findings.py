"""Findings about definitions as text, JSON, GitHub annotations and SARIF.

Sources: https://docs.github.com/actions/reference/workflow-commands-for-github-actions ("Setting an error message");
SARIF 2.1.0 (OASIS).
"""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import kwire
from kwire.cli import terminal
from kwire.cli.rows import Format, write_rows
from kwire.pages.escaping import printable

__all__ = ["FindingFormat", "ShownFinding", "write_findings"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class FindingFormat(enum.StrEnum):
    """Values of --format."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFinding:
    """A finding for output. kind: error (an invalid definition), violation or note.

    where: message and field path. file: of the definition, also `REV:path`, `x.jar!entry`. line: from 1; 0 is unknown.
    """

    kind: Literal["error", "violation", "note"]
    rule: str
    where: str
    message: str
    advice: str
    versions: str
    file: str
    line: int

    @property
    def sentence(self) -> str:
        """Problem and remedy."""
        return f"{self.message}; {self.advice}" if self.advice else self.message

    @property
    def repository_path(self) -> str:
        """The file for CI systems: relative, with slashes, without revision or jar."""
        path = self.file.partition("!")[0]
        if not os.path.exists(path):
            path = path.partition(":")[2] or path
        relative = os.path.relpath(path) if os.path.isabs(path) else path
        return (path if relative.startswith("..") else relative).replace(os.sep, "/")


def write_findings(findings: Sequence[ShownFinding], format: FindingFormat, rules: Mapping[str, str]) -> None:
    """Print findings, grouped by message. rules: texts by rule id, for SARIF."""
    if format is FindingFormat.TEXT:
        _write_text(findings)
    elif format is FindingFormat.JSON:
        write_rows(map(_row, findings), (), Format.JSON)
    elif format is FindingFormat.GITHUB:
        for finding in findings:
            print(_annotation(finding))
    else:
        # ASCII only: nothing for a terminal to interpret
        json.dump(_sarif(findings, rules), sys.stdout, indent=1)
        print()


def _write_text(findings: Sequence[ShownFinding]) -> None:
    for message, group in groupby(findings, key=lambda finding: finding.where.partition(".")[0] or finding.file):
        print(terminal.bold(printable(message)))
        for finding in group:
            note = "note: " if finding.kind == "note" else ""
            line = f":{finding.line}" if finding.line else ""
            text = f"{finding.file}{line}: {note}{finding.where or finding.file}: {finding.sentence} [{finding.rule}]"
            print(f"  {printable(text)}")


def _row(finding: ShownFinding) -> dict[str, Any]:
    return {name: getattr(finding, name) for name in ShownFinding.__dataclass_fields__}


def _annotation(finding: ShownFinding) -> str:
    command = "notice" if finding.kind == "note" else "error"
    values = {"file": finding.repository_path, "line": finding.line or 1, "title": f"{finding.rule} {finding.where}"}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in values.items())
    return f"::{command} {properties}::{_data(finding.sentence)}"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(findings: Iterable[ShownFinding], rules: Mapping[str, str]) -> dict[str, Any]:
    found = list(findings)
    ids = sorted({finding.rule for finding in found})
    driver = {
        "name": "kwire",
        "version": kwire.__version__,
        "rules": [
            {"id": rule, **({"shortDescription": {"text": rules[rule]}} if rule in rules else {})} for rule in ids
        ],
    }
    results = [_result(finding, ids.index(finding.rule)) for finding in found]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(finding: ShownFinding, rule_index: int) -> dict[str, Any]:
    from urllib.parse import quote

    physical = {
        "artifactLocation": {"uri": quote(finding.repository_path)},
        "region": {"startLine": finding.line or 1},
    }
    location: dict[str, Any] = {"physicalLocation": physical}
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": "note" if finding.kind == "note" else "error",
        "message": {"text": f"{finding.where}: {finding.sentence}" if finding.where else finding.sentence},
        "locations": [location],
    }
