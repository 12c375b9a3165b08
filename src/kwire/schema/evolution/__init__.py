"""Evolution of definitions: whether a change is compatible, and what to review in it.

    compare            two definitions -> violations
    review             violations and notes: renames, reserved tags and other allowed changes to review
    read_source        a file, directory, jar or `REV:path` of a git repository -> its definitions
    read_history       the history of a source -> older definitions, whose tags are reserved
    compare_sources    the definitions of two sources, matched -> findings with file and line

The rules are from docs/spec/messages.md, part 5; docs/evolution.md explains each.
"""

from kwire.schema.evolution.comparison import compare, review
from kwire.schema.evolution.findings import RULES, Finding, Invalid, Note, Violation
from kwire.schema.evolution.sources import Definition, Source, read_history, read_source
from kwire.schema.evolution.sources_compared import Located, compare_sources

__all__ = [
    "RULES",
    "Definition",
    "Finding",
    "Invalid",
    "Located",
    "Note",
    "Source",
    "Violation",
    "compare",
    "compare_sources",
    "read_history",
    "read_source",
    "review",
]
