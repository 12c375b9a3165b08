"""`kwire conformance explain`: what a check does, and what real Kafka did in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE
from kwire.cli.options import FormatOption
from kwire.cli.rows import Format
from kwire.errors import OptionError, did_you_mean
from kwire.pages.escaping import json_line, printable

if TYPE_CHECKING:
    from kwire.conformance import Check

__all__ = ["explain"]


def explain(
    check_id: Annotated[str, typer.Argument(metavar="CHECK", help="Id of a check, such as ERROR-FETCH-12.")],
    format: FormatOption = Format.TABLE,
) -> int:
    """Explain a check: its steps, its source, and what real Kafka of each recorded release did."""
    from kwire.conformance.broker import all_checks, read_baseline
    from kwire.conformance.broker.differences import difference
    from kwire.conformance.client import all_scenarios

    checks = {check.id: check for check in all_checks()}
    scenarios = {scenario.id: scenario for scenario in all_scenarios()}
    scenario = scenarios.get(check_id.upper())
    if scenario is not None:
        _print(scenario, format, {})
        return FINE
    check = checks.get(check_id.upper())
    if check is None:
        hint = did_you_mean(check_id, {**checks, **scenarios})
        raise OptionError(f"no check {check_id!r}{hint}; `kwire conformance list` has all")
    recorded = read_baseline("4.4").recorded.get(check.id, {})
    differs = any(value != next(iter(recorded.values())) for value in recorded.values())
    why = difference(check.id) if differs else None
    _print(check, format, {"difference": why, "recorded": recorded})
    if format is not Format.TABLE:
        return FINE
    for release, value in recorded.items():
        print(f"Kafka {release}:")
        text = value if isinstance(value, str) else json.dumps(value, indent=2)
        print("\n".join(f"  {printable(line)}" for line in text.splitlines()))
    if why is not None:
        print(printable(f"Difference: {why}"))
    for allowed in check.allowed:
        print(printable(f"Allowed: {allowed.path}: {allowed.reason}"))
    return FINE


def _print(check: Check, format: Format, more: dict[str, Any]) -> None:
    """Print what every check has; as JSON, with more fields."""
    if format is not Format.TABLE:
        fields = {"id": check.id, "chapter": check.chapter, "title": check.title, "source": check.source}
        print(json_line({**fields, "since": check.since, "until": check.until, "steps": check.steps, **more}))
        return
    print(terminal.bold(printable(f"{check.id}  {check.title}")))
    print(printable(f"{check.chapter}; {check.source}"))
    if check.since or check.until:
        print(f"Kafka {check.since or 'any'} to {check.until or 'now'}")
    for number, step in enumerate(check.steps, 1):
        print(printable(f"  {number}. {step}"))
