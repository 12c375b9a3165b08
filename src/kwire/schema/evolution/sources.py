"""Sources of definitions to compare: a file, a directory, a jar, a revision of a git repository."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kwire.errors import OptionError, SchemaError
from kwire.schema.attributes import Dialect
from kwire.schema.catalogue import BASE, jar_texts, release_files
from kwire.schema.evolution.git_revisions import read_past_revisions, read_revision
from kwire.schema.language import check
from kwire.schema.model import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A definition. file: where it is, `REV:path` and `x.jar!entry` included."""

    message: Message
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Definitions by name. is_file: it is a single definition, so other messages do not count as removed."""

    name: str
    definitions: dict[str, Definition]
    is_file: bool


def read_source(source: str, *, dialect: Dialect = "strict") -> Source:
    """Read the definitions of a file, a directory, a jar or `REV:path`; other .json files are ignored.

    dialect: as in `load`; a jar is read as "kafka".
    Raises OptionError if the source is missing or has no definitions, ExceptionGroup of SchemaError with all errors.
    """
    texts, is_file, is_jar = _texts(source)
    definitions: dict[str, Definition] = {}
    errors: list[SchemaError] = []
    for file, text in texts:
        if not is_file and '"validVersions"' not in text:
            continue
        message, faults = check(text, file, dialect="kafka" if is_jar else dialect)
        errors += faults
        if message is None:
            continue
        known = definitions.setdefault(message.name, Definition(message=message, file=file))
        if known.message is not message:
            errors.append(SchemaError(f"name is already used by {known.file}", "T-09", file, message.name))
    if errors:
        count = f"{len(errors)} errors" if len(errors) > 1 else "1 error"
        raise ExceptionGroup(f"{count} in the definitions of {source}", errors)
    if not definitions:
        raise OptionError(f"{source}: no definitions found")
    return Source(name=source, definitions=definitions, is_file=is_file)


def read_history(sources: Iterable[str]) -> dict[str, list[Message]]:
    """Read older definitions by message name, for their tags; `REV:path` means its whole history.

    Of an invalid definition, the valid part counts, since history cannot be corrected.
    Raises OptionError if a source is missing.
    """
    history: dict[str, list[Message]] = {}
    for source in sources:
        texts = read_past_revisions(source) if _is_revision(source) else _texts(source)[0]
        for file, text in texts:
            message, _ = check(text, file, dialect="kafka")
            if message is not None:
                history.setdefault(message.name, []).append(message)
    return history


def _is_revision(source: str) -> bool:
    return ":" in source and not Path(source).exists()


def _texts(source: str) -> tuple[list[tuple[str, str]], bool, bool]:
    """Return ([(name, text), ...], whether it is one file, whether it is a jar)."""
    path = Path(source)
    if _is_revision(source):
        texts, is_file = read_revision(source)
        return texts, is_file, False
    if (path / BASE).exists():
        return [(str(file), _read(file)) for file in release_files(path).values()], False, False
    if path.is_dir():
        return [(str(file), _read(file)) for file in sorted(path.rglob("*.json"))], False, False
    if not path.exists():
        raise OptionError(f"{source}: no such file, directory, jar or REV:path")
    if path.suffix in (".jar", ".zip"):
        return list(jar_texts(path)), False, True
    return [(source, _read(path))], True, False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SchemaError(f"not valid UTF-8: {error.reason} at byte {error.start}", "E-01", str(path)) from error
