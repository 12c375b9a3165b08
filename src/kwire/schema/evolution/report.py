"""Collects the findings of a comparison, with the affected versions as text."""

from __future__ import annotations

from kwire.schema.evolution.findings import Finding, Note, Violation
from kwire.schema.evolution.released import Released
from kwire.schema.model import Field
from kwire.schema.versions import Versions


class Report:
    """The findings of one comparison, each once: a common struct used in two places breaks a rule once.

    scope: the pair of structs that is being compared. Of equal findings about a field in it, only the first is kept.
    """

    def __init__(self, released: Released) -> None:
        self.released = released
        self.findings: list[Finding] = []
        self.scope: object = None
        self._reported: set[tuple[object, str, str, str]] = set()

    def violation(self, rule: str, where: str, message: str, advice: str = "", mask: int = 0) -> None:
        """Add a violation. mask: the affected released versions."""
        if self._is_new(rule, where, message):
            versions = self.released.text(mask)
            self.findings.append(Violation(rule=rule, where=where, message=message, advice=advice, versions=versions))

    def note(self, rule: str, where: str, message: str, advice: str = "", mask: int = 0) -> None:
        """Add a note; arguments as in `violation`."""
        if self._is_new(rule, where, message):
            versions = self.released.text(mask)
            self.findings.append(Note(rule=rule, where=where, message=message, advice=advice, versions=versions))

    def _is_new(self, rule: str, where: str, message: str) -> bool:
        key = (self.scope, rule, where.rpartition(".")[2] if self.scope else where, message)
        new = key not in self._reported
        self._reported.add(key)
        return new

    def ranges(self, mask: int) -> str:
        """Name versions: `version 3`, `versions 0-2`."""
        text = self.released.text(mask)
        return f"version {text}" if text.isdigit() else f"versions {text}"

    def of(self, mask: int) -> str:
        """Name versions with a verb: `version 3 is`, `versions 0-2 are`."""
        return f"{self.ranges(mask)} {'is' if self.released.text(mask).isdigit() else 'are'}"

    def encodings(self, field: Field, mask: int) -> str:
        """Name the encodings of a field in the versions of mask."""
        return ", ".join(dict.fromkeys(field.wire_type(version) for _, version in self.released.split(mask)))


def versions_are(versions: Versions) -> str:
    """Return `version 3 is`, or `versions 0-2 are`."""
    return f"version {versions} is" if len(versions) == 1 else f"versions {versions} are"
