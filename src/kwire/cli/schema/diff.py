"""`kwire schema diff`: whether definitions may change from old to new."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

import typer

from kwire.cli import terminal
from kwire.cli.command import FINE, FOUND
from kwire.cli.options import Dialect, DialectOption
from kwire.cli.schema.findings import FindingFormat, write_findings
from kwire.errors import OptionError, SchemaError, counted

if TYPE_CHECKING:
    from kwire.schema.evolution import Located, Source

__all__ = ["diff"]

SOURCE = "file, directory, jar, or REV:path of this git repository"
Old = Annotated[str, typer.Argument(metavar="OLD", help=f"Released definitions: {SOURCE}.")]
New = Annotated[str, typer.Argument(metavar="NEW", help="New definitions: the same forms.")]
History = Annotated[
    list[str] | None,
    typer.Option(
        "--history",
        metavar="OLD",
        help="Older definitions, whose tags stay reserved; REV:path: its history. Repeatable.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="RULE[:WHERE]", help="Rule reported as a note, optionally at WHERE (with *). Repeatable."
    ),
]
LikeKafka = Annotated[
    bool, typer.Option("--like-kafka", help="Rules of Kafka 4.0's own checker: some are stricter, some more lenient.")
]
FormatOption = Annotated[FindingFormat, typer.Option("--format", help="Output format; github prints annotations.")]


def diff(
    old: Old,
    new: New,
    history: History = None,
    allow: Allow = None,
    like_kafka: LikeKafka = False,
    dialect: DialectOption = Dialect.STRICT,
    format: FormatOption = FindingFormat.TEXT,
) -> int:
    """Compare definitions and report changes that break peers or stored data.

    Exit code 1 if there are any.
    """
    from kwire.schema.evolution import RULES, compare_sources, read_history

    allowed = [_Allowance.parse(text, RULES) for text in allow or ()]
    if like_kafka and history:
        raise OptionError("--history and --like-kafka are mutually exclusive: Kafka's checker has no history")
    broken: list[Located] = []
    before = _read(old, dialect, broken)
    after = _read(new, dialect, broken)
    if before is None or after is None:
        write_findings(broken, format, RULES)
        terminal.warn(f"{counted(len(broken), 'error')} in definitions; fix them to compare")
        return FOUND
    located = compare_sources(before, after, history=read_history(history or ()), like_kafka=like_kafka)
    shown = [_allow(item, allowed) for item in located]
    write_findings(shown, format, RULES)
    violations = sum(item.finding.kind == "violation" for item in shown)
    if format is FindingFormat.TEXT:
        counts = {"violation": violations, "note": len(shown) - violations, "definition": len(after.definitions)}
        terminal.warn(", ".join(counted(number, what) for what, number in counts.items()))
    return FOUND if violations else FINE


def _read(source: str, dialect: Dialect, broken: list[Located]) -> Source | None:
    """Return the definitions of a source; None if some are broken, after adding their errors to broken."""
    from kwire.schema.evolution import read_source

    try:
        return read_source(source, dialect=dialect.value)
    except* SchemaError as errors:
        broken += [_invalid(error) for error in errors.exceptions if isinstance(error, SchemaError)]
    return None


@dataclass(frozen=True, slots=True)
class _Allowance:
    """`V-53` or `V-53:Metadata*`."""

    rule: str
    where: str

    @classmethod
    def parse(cls, text: str, rules: Mapping[str, str]) -> _Allowance:
        rule, _, where = text.partition(":")
        if rule not in rules:
            raise OptionError(
                f"--allow {text}: unknown rule {rule!r}; expected for example V-53 or V-53:MetadataRequest"
            )
        return cls(rule, where or "*")

    def covers(self, item: Located) -> bool:
        return item.finding.rule == self.rule and fnmatchcase(item.finding.where, self.where)


def _allow(item: Located, allowances: Sequence[_Allowance]) -> Located:
    """Return a finding, as a note if it is allowed."""
    from kwire.schema.evolution import Note

    if not any(allowance.covers(item) for allowance in allowances):
        return item
    return replace(item, finding=Note(**asdict(item.finding)))


def _invalid(error: SchemaError) -> Located:
    from kwire.schema.evolution import Invalid, Located

    line = re.search(r"\(line ([0-9]+)\)$", error.what)
    where = ".".join(part for part in (error.struct, error.field) if part)
    finding = Invalid(rule=error.rule, where=where, message=error.what)
    return Located(finding=finding, file=error.file or "", line=int(line[1]) if line else 0)
