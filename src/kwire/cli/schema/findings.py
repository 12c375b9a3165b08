"""Findings about definitions as text, JSON, GitHub annotations and SARIF.

Sources: https://docs.github.com/actions/reference/workflow-commands-for-github-actions ("Setting an error message");
SARIF 2.1.0 (OASIS).
"""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

import kwire
from kwire.cli import terminal
from kwire.cli.rows import Format, Row, write_rows
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.schema.evolution import Finding, Located

__all__ = ["FindingFormat", "write_findings"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class FindingFormat(enum.StrEnum):
    """Values of --format."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"


def _sentence(finding: Finding) -> str:
    """Return the problem and the remedy."""
    return f"{finding.message}; {finding.advice}" if finding.advice else finding.message


def _repository_path(file: str) -> str:
    """Return a file for CI systems: relative, with slashes, without revision or jar."""
    path = file.partition("!")[0]
    if not os.path.exists(path):
        path = path.partition(":")[2] or path
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return (path if relative.startswith("..") else relative).replace(os.sep, "/")


def write_findings(findings: Sequence[Located], format: FindingFormat, rules: Mapping[str, str]) -> None:
    """Print findings, grouped by message. rules: texts by rule id, for SARIF."""
    if format is FindingFormat.TEXT:
        _write_text(findings)
    elif format is FindingFormat.JSON:
        write_rows(map(_row, findings), (), Format.JSON)
    elif format is FindingFormat.GITHUB:
        for each in findings:
            print(_annotation(each))
    else:
        # ASCII only: nothing for a terminal to interpret
        json.dump(_sarif(findings, rules), sys.stdout, indent=1)
        print()


def _write_text(findings: Sequence[Located]) -> None:
    for message, group in groupby(findings, key=lambda each: each.finding.where.partition(".")[0] or each.file):
        print(terminal.bold(printable(message)))
        for each in group:
            finding = each.finding
            note = "note: " if finding.kind == "note" else ""
            line = f":{each.line}" if each.line else ""
            text = f"{each.file}{line}: {note}{finding.where or each.file}: {_sentence(finding)} [{finding.rule}]"
            print(f"  {printable(text)}")


def _row(each: Located) -> Row:
    return {"kind": each.finding.kind, **asdict(each.finding), "file": each.file, "line": each.line}


def _annotation(each: Located) -> str:
    finding = each.finding
    command = "notice" if finding.kind == "note" else "error"
    title = f"{finding.rule} {finding.where}"
    values = {"file": _repository_path(each.file), "line": each.line or 1, "title": title}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in values.items())
    return f"::{command} {properties}::{_data(_sentence(finding))}"


def _data(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _sarif(findings: Sequence[Located], rules: Mapping[str, str]) -> Row:
    ids = sorted({each.finding.rule for each in findings})
    driver = {
        "name": "kwire",
        "version": kwire.__version__,
        "rules": [
            {"id": rule, **({"shortDescription": {"text": rules[rule]}} if rule in rules else {})} for rule in ids
        ],
    }
    results = [_result(each, ids.index(each.finding.rule)) for each in findings]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(each: Located, rule_index: int) -> Row:
    from urllib.parse import quote

    finding = each.finding
    physical = {
        "artifactLocation": {"uri": quote(_repository_path(each.file))},
        "region": {"startLine": each.line or 1},
    }
    location: Row = {"physicalLocation": physical}
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule_index,
        "level": "note" if finding.kind == "note" else "error",
        "message": {"text": f"{finding.where}: {_sentence(finding)}" if finding.where else _sentence(finding)},
        "locations": [location],
    }
