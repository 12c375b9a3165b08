"""Definitions of files and directories, and the rules that several definitions break together.

Rules across files (E-50 to E-54, E-62) apply within one directory, because Kafka has a directory for each module and
reuses record type numbers between modules. A file that is given by itself may lack its partner, such as the request of
a response: that is a note.
Source: org.apache.kafka.message.MessageGenerator, ApiMessageTypeGenerator, MetadataRecordTypeGenerator,
CoordinatorRecordTypeGenerator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from kwire.errors import SchemaError
from kwire.schema.attributes import Dialect
from kwire.schema.language import StrPath, check, read_text
from kwire.schema.model import Message

__all__ = ["Checked", "check_all", "check_files", "check_together", "definition_files", "load_all"]


class Checked(NamedTuple):
    """The messages of files and directories, what is wrong with them, and what may be wrong with single files."""

    messages: list[Message]
    errors: list[SchemaError]
    notes: list[SchemaError]


def load_all(paths: StrPath | Iterable[StrPath], *, dialect: Dialect = "strict") -> list[Message]:
    """Load files and directories (searched recursively for .json files), in the order of their paths.

    Raises ExceptionGroup of SchemaError with every error of every file.
    """
    messages, errors = check_all(paths, dialect=dialect)
    if errors:
        count = f"{len(errors)} errors" if len(errors) > 1 else "1 error"
        raise ExceptionGroup(f"{count} in message definitions", errors)
    return messages


def check_all(
    paths: StrPath | Iterable[StrPath], *, dialect: Dialect = "strict"
) -> tuple[list[Message], list[SchemaError]]:
    """Return the messages and all errors of files and directories."""
    messages, errors, _ = check_files(paths, dialect=dialect)
    return messages, errors


def check_files(paths: StrPath | Iterable[StrPath], *, dialect: Dialect = "strict") -> Checked:
    """Check files and directories: as check_all, with notes."""
    errors: list[SchemaError] = []
    notes: list[SchemaError] = []
    directories: dict[Path, list[Message]] = {}
    messages: list[Message] = []
    given = [*map(Path, [paths] if isinstance(paths, str | PathLike) else paths)]
    for path in definition_files(given):
        try:
            message, faults = check(read_text(path), str(path), dialect=dialect)
        except SchemaError as error:
            errors.append(error)
            continue
        errors += faults
        if message is not None:
            directories.setdefault(path.parent, []).append(message)
            messages.append(message)
    alone = {str(path) for path in given if not path.is_dir()}
    for together in directories.values():
        errors += _check_keys(together)
        for each in _missing_partners(together):
            (notes if each.file in alone else errors).append(each)
    return Checked(messages, errors, notes)


def definition_files(paths: Iterable[StrPath]) -> list[Path]:
    """List the files, and the .json files in the directories, sorted within each directory. Raises SchemaError."""
    files: list[Path] = []
    for path in map(Path, paths):
        try:
            files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
        except OSError as error:  # another program removes directories
            raise SchemaError(f"cannot be listed: {error.filename}: {error.strerror}", "E-01", str(path)) from error
    return files


def check_together(messages: Sequence[Message]) -> list[SchemaError]:
    """Check the rules that several definitions break together (rules A of part 2)."""
    return [*_check_keys(messages), *_missing_partners(messages)]


def _check_keys(messages: Sequence[Message]) -> list[SchemaError]:
    errors: list[SchemaError] = []

    def problem(rule: str, what: str, message: Message) -> None:
        errors.append(SchemaError(what, rule, message.file, message.name))

    seen: dict[tuple[str, int], Message] = {}
    for message in messages:
        if message.kind not in _KEYED_KINDS:
            continue
        if message.api_key is None:
            if message.kind in ("request", "response", "metadata"):
                problem("E-51", f"apiKey is missing; a {message.kind} needs one", message)
            continue
        other = seen.setdefault((message.kind, message.api_key), message)
        if other is not message:
            rule = _KEYED_KINDS[message.kind]
            problem(rule, f"apiKey {message.api_key} is already used by the {message.kind} {other.name}", message)
    for message in seen.values():
        if message.kind == "request" and not message.name.endswith("Request"):
            problem("E-52", "the name of a request must end in Request", message)
        if message.kind == "response" and not message.name.endswith("Response"):
            problem("E-52", "the name of a response must end in Response", message)
    return errors


def _missing_partners(messages: Sequence[Message]) -> list[SchemaError]:
    keyed: dict[tuple[str, int], Message] = {}
    for message in messages:
        if message.api_key is not None:
            keyed.setdefault((message.kind, message.api_key), message)
    errors = []
    for (kind, key), message in keyed.items():
        if kind in _PARTNERS and (_PARTNERS[kind], key) not in keyed:
            rule = "E-62" if kind.startswith("coordinator") else "E-53"
            errors.append(SchemaError(f"no {_PARTNERS[kind]} with apiKey {key}", rule, message.file, message.name))
    return errors


_KEYED_KINDS = {
    "request": "E-50",
    "response": "E-50",
    "metadata": "E-54",
    "coordinator-key": "E-62",
    "coordinator-value": "E-62",
}
_PARTNERS = {
    "request": "response",
    "response": "request",
    "coordinator-key": "coordinator-value",
    "coordinator-value": "coordinator-key",
}
