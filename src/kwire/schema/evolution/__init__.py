"""Evolution of definitions: may an old one become a new one, and what must a reviewer know.

    compare            two definitions -> violations
    review             the same with notes: renames, burnt tags, and what else is allowed and worth a look
    read_source        a file, directory, jar or `REV:path` of a git repository -> its definitions
    read_history       the same -> older definitions, whose tags are burnt
    compare_sources    the definitions of two sources, matched -> findings with file and line

The rules are those of docs/spec/messages.md, part 5; docs/evolution.md explains them to whoever meets one.
"""

from kwire.schema.evolution.comparison import compare, review
from kwire.schema.evolution.findings import RULES, Finding, Note, Violation
from kwire.schema.evolution.sources import Definition, Source, read_history, read_source
from kwire.schema.evolution.sources_compared import Located, compare_sources

__all__ = [
    "RULES",
    "Definition",
    "Finding",
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
