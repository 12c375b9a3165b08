"""Definitions out of Kafka's jars, kept as facts, and read back release by release.

A catalogue is a directory with one folder a release, in it one folder a module, in it one file a message:

    definitions/kafka-3.9.1/clients/FetchRequest.json

Kafka's own jars carry their definitions (kafka-clients: common/message/*.json, and so on). What is kept of them is what
`render` writes: names, types, versions, tags, defaults; neither comments nor prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kwire.errors import KwireError, OptionError, SchemaError
from kwire.schema.language import StrPath, check, check_together, definition_files, parse
from kwire.schema.merging import Conflict, merge
from kwire.schema.model import Message
from kwire.schema.rendering import render
from kwire.target_paths import path_inside

MAX_DEFINITION_BYTES = 8 << 20
"""Size of an entry of a jar that is still read; real definitions have up to 30 KB."""

_JAR = re.compile(r"(?:kafka-)?(.+?)-([0-9]+(?:\.[0-9]+)+[^/]*)\.jar\Z")


def import_definitions(jar_or_dir: StrPath, into: StrPath) -> list[Path]:
    """Write the definitions in a jar, or below a directory of sources, to into/NAME.json, facts only.

    Other JSON files are passed over. Returns the files written, sorted. Raises ExceptionGroup of SchemaError, before
    anything is written, if a definition is wrong or two have one name; SchemaError if the source cannot be read;
    OptionError if a file cannot be written.
    """
    messages: dict[str, Message] = {}
    errors: list[SchemaError] = []
    for file, text in _texts(Path(jar_or_dir)):
        if '"validVersions"' not in text:
            continue
        message, found = check(text, file, dialect="kafka")
        errors += found
        if message is None:
            continue
        if message.name in messages:
            errors.append(
                SchemaError(f"{messages[message.name].file} has this name already", "T-09", file, message.name)
            )
        messages[message.name] = message
    if errors:
        raise ExceptionGroup(f"errors in the definitions of {jar_or_dir}", errors)
    written = []
    for name, message in sorted(messages.items()):
        path = Path(path_inside(into, f"{name}.json"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(message), encoding="utf-8")
        except OSError as error:
            raise OptionError(f"{path}: cannot be written: {error.strerror or error}") from error
        written.append(path)
    return written


def module_name(source: StrPath) -> str:
    """What a catalogue calls the module of a jar or directory: kafka-clients-3.9.1.jar is `clients`."""
    name = Path(source).name
    match = _JAR.match(name)
    module = match[1] if match else name.removesuffix(".jar")
    return "core" if module.startswith("kafka_") else module  # kafka_2.13: the broker itself, by Scala version


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    """(name for errors, text) of every JSON file in a jar or below a directory."""
    if not source.is_dir():
        yield from jar_texts(source)
        return
    for path in definition_files([source]):
        try:
            yield str(path), path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"cannot be read: {error}", "E-01", str(path)) from error


def jar_texts(jar: Path) -> Iterator[tuple[str, str]]:
    """(name, text) of each definition in a jar, by name. Raises SchemaError where the jar cannot be read."""
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(jar) as archive:
            for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
                if not entry.filename.endswith(".json") or entry.file_size > MAX_DEFINITION_BYTES:
                    continue
                yield f"{jar}!{entry.filename}", archive.read(entry).decode()
    except (OSError, zipfile.BadZipFile, zlib.error, UnicodeDecodeError, NotImplementedError, RuntimeError) as error:
        if isinstance(error, KwireError):
            raise
        raise SchemaError(f"is neither a directory nor a jar that can be read: {error}", "E-01", str(jar)) from error


@dataclass(frozen=True, slots=True)
class Merged:
    """A message of the catalogue: merged, and as each release has it, newest first.

    module: the folder it is in, by the newest release: record type numbers are unique within a module alone.
    """

    message: Message
    module: str
    releases: dict[str, Message]
    conflicts: list[Conflict]

    @property
    def differing(self) -> dict[str, Message]:
        """The releases whose definition is not the merged one, word for word."""
        text = render(self.message)
        return {release: message for release, message in self.releases.items() if render(message) != text}


def read_catalogue(directory: StrPath) -> dict[str, Merged]:
    """The messages of a catalogue by name, sorted. Raises ExceptionGroup of SchemaError."""
    releases: dict[str, dict[str, Message]] = {}
    modules: dict[str, str] = {}
    errors: list[SchemaError] = []
    for folder in sorted(Path(directory).glob("kafka-*"), key=lambda path: release_order(path.name), reverse=True):
        release = folder.name.removeprefix("kafka-")
        messages: dict[str, Message] = {}
        for module in sorted(path for path in folder.iterdir() if path.is_dir()):
            found = _read_module(module, errors)
            errors += check_together(found)
            for message in found:
                if message.name in messages:
                    errors.append(SchemaError("two modules have this name", "T-09", message.file, message.name))
                messages[message.name] = message
                modules.setdefault(message.name, module.name)
        releases[release] = messages
    if errors:
        raise ExceptionGroup(f"errors in the catalogue {directory}", errors)
    return {name: _merged(name, modules[name], releases) for name in sorted(modules)}


def _read_module(module: Path, errors: list[SchemaError]) -> list[Message]:
    messages: list[Message] = []
    for path in definition_files([module]):
        message, found = check(path.read_text(encoding="utf-8"), str(path))
        errors += found
        if message is not None:
            messages.append(message)
    return messages


def _merged(name: str, module: str, releases: dict[str, dict[str, Message]]) -> Merged:
    definitions = [(release, messages[name]) for release, messages in releases.items() if name in messages]
    message, conflicts = merge(definitions)
    # Read again: what is generated and shipped is the text, so the text is what must be right.
    return Merged(parse(render(message), f"{name}.json"), module, dict(definitions), conflicts)


def release_order(release: str) -> tuple[int, ...]:
    """A key by which 3.10.0 sorts behind 3.9.1."""
    return tuple(int(number) for number in re.findall(r"[0-9]+", release))


def conflicts(merged: Iterable[Merged]) -> list[Conflict]:
    """Everything that releases disagree on, in the messages' order."""
    return [conflict for message in merged for conflict in message.conflicts]
