"""Kafka's message definition language: parsing, checks, evolution and the catalogue of Kafka's definitions.

    load, parse          one definition -> Message, or the first SchemaError
    load_all             files and directories -> all messages, or ExceptionGroup with every error
    check, check_all     return the errors as a list
    compile              Message -> class with the interface of the generated ones
    render               Message -> text, facts only
    compare              old and new Message -> Violations of an incompatible change
    import_definitions   Kafka's jars or sources -> definition files, facts only

The rules (E-nn and T-nn in SchemaError.rule) are from docs/spec/messages.md, part 2. Every message class imports
this package for its version ranges alone, so the names here import their modules on first access.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kwire.schema.catalogue import import_definitions as import_definitions
    from kwire.schema.compiling import compile as compile
    from kwire.schema.definition_files import check_all as check_all
    from kwire.schema.definition_files import load_all as load_all
    from kwire.schema.evolution import Violation as Violation
    from kwire.schema.evolution import compare as compare
    from kwire.schema.language import check as check
    from kwire.schema.language import load as load
    from kwire.schema.language import parse as parse
    from kwire.schema.merging import Conflict as Conflict
    from kwire.schema.merging import merge as merge
    from kwire.schema.model import Field as Field
    from kwire.schema.model import Message as Message
    from kwire.schema.model import Struct as Struct
    from kwire.schema.rendering import render as render
    from kwire.schema.versions import Versions as Versions

_HOMES = {
    "Conflict": "merging",
    "Field": "model",
    "Message": "model",
    "Struct": "model",
    "Versions": "versions",
    "Violation": "evolution",
    "check": "language",
    "check_all": "definition_files",
    "compare": "evolution",
    "compile": "compiling",
    "import_definitions": "catalogue",
    "load": "language",
    "load_all": "definition_files",
    "parse": "language",
    "merge": "merging",
    "render": "rendering",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value
