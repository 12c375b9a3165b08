"""Kafka's message definition language: definitions, checked; the catalogue of Kafka's own.

    load, parse          one definition -> Message, or the first SchemaError
    load_all             files and directories -> all messages, or ExceptionGroup with every error
    compile              Message -> class with the surface of the generated ones
    render               Message -> text, facts only
    import_definitions   Kafka's jars or sources -> definition files, facts only

The rules (E-nn and T-nn in SchemaError.rule) are those of docs/spec/messages.md, part 2.
"""

from kwire.schema.catalogue import import_definitions
from kwire.schema.compiling import compile  # the agreed name; `schema.compile` reads well
from kwire.schema.language import check, check_all, load, load_all, parse
from kwire.schema.merge import Conflict, merge
from kwire.schema.model import Field, Message, Struct
from kwire.schema.render import render
from kwire.schema.versions import Versions

__all__ = [
    "Conflict",
    "Field",
    "Message",
    "Struct",
    "Versions",
    "check",
    "check_all",
    "compile",
    "import_definitions",
    "load",
    "load_all",
    "merge",
    "parse",
    "render",
]
