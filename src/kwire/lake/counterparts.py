"""Tables that another one knows: those of its dead letters, and for an index the tables by record type.

Each commit of such a table has a number that no other has, and the table keeps those of its last commits. The table
that knows it has the number of the last one that it has seen, in its own commits. Without this number, the other one
was dropped, or has gone to another version: offsets of rows that it then lacks are given up, and read again.
"""

from __future__ import annotations

from dataclasses import dataclass

from kwire.lake.offset_ranges import Spans, subtract
from kwire.lake.state import TableState

__all__ = ["Counterpart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterpart:
    """What another table says of itself. name: of its number, in the table that knows it.

    numbers: of its last commits, the newest first. spans: offsets that it is complete up to its last commit with.
    """

    name: str
    numbers: tuple[int, ...]
    spans: Spans

    def is_known(self, state: TableState) -> bool:
        """Return whether it has what a table knows of it. state: of that table."""
        known = state.records.get(self.name, 0)
        return not known or known in self.numbers

    def lacks(self, spans: Spans) -> Spans:
        """Return those of some offsets that it is not complete with."""
        found = {key: subtract(ranges, self.spans.get(key, ())) for key, ranges in spans.items()}
        return {key: ranges for key, ranges in found.items() if ranges}
