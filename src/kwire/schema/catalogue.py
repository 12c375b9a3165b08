"""Catalogue of the definitions in Kafka's jars, by release.

A catalogue is a directory with a folder per release, a subfolder per module and a file per message:

    definitions/kafka-3.9.1/clients/FetchRequest.json

A release may be stored as its differences from another one. Its `base.txt` names the folder of that base and lists, one
per line, the definitions of the base that it lacks:

    kafka-3.9.1
    - group-coordinator/ShareGroupPartitionMetadataKey

Kafka's own jars carry their definitions (kafka-clients: common/message/*.json, and so on). The catalogue keeps
what `render` writes: names, types, versions, tags and defaults, without comments or prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kwire.errors import KwireError, OptionError, SchemaError
from kwire.schema.definition_files import check_together, definition_files
from kwire.schema.former_names import FormerName, former_names
from kwire.schema.language import StrPath, check, read_text
from kwire.schema.merging import Conflict, merge
from kwire.schema.model import Message
from kwire.schema.rendering import render
from kwire.target_paths import path_inside, write_whole

MAX_DEFINITION_BYTES = 8 << 20
"""Size of an entry of a jar that is still read; real definitions have up to 30 KB."""

BASE = "base.txt"
"""File in a release's folder: the base release, and the definitions of it that this release lacks."""

_JAR = re.compile(r"(?:kafka-)?(.+?)-([0-9]+(?:\.[0-9]+)+[^/]*)\.jar\Z")


def import_definitions(jar_or_dir: StrPath, into: StrPath) -> list[Path]:
    """Write the definitions in a jar, or below a directory of sources, to into/NAME.json, facts only.

    Other JSON files are ignored. Returns the files written, sorted. Raises ExceptionGroup of SchemaError, before
    anything is written, if a definition is wrong or two have one name; SchemaError if the source cannot be read;
    OptionError if a file cannot be written.
    """
    messages: dict[str, Message] = {}
    errors: list[SchemaError] = []
    for file, text in _texts(Path(jar_or_dir)):
        if '"validVersions"' not in text:
            continue
        message, faults = check(text, file, dialect="kafka")
        errors += faults
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
            write_whole(path, render(message).encode())
        except OSError as error:
            raise OptionError(f"{path}: cannot be written: {error.strerror or error}") from error
        written.append(path)
    return written


def keep_differences(folder: StrPath, base: StrPath) -> list[Path]:
    """Remove the definitions of a release that its base has as well, and write `base.txt`.

    folder, base: folders of releases in one catalogue; folder has every definition of the release.
    Returns the remaining files. Raises SchemaError if the base cannot be read or is in another directory.
    """
    release, other = Path(folder), Path(base)
    if release.resolve().parent != other.resolve().parent:
        raise SchemaError(f"not in the same folder as {release}", "E-01", str(other))
    own, known = release_files(release), release_files(other)
    for name in own.keys() & known.keys():
        if own[name].read_bytes() == known[name].read_bytes():
            own[name].unlink()
    missing = [f"- {name}\n" for name in sorted(known.keys() - own.keys())]
    write_whole(release / BASE, "".join([f"{other.name}\n", *missing]).encode())
    return sorted(path for path in own.values() if path.exists())


def release_files(folder: StrPath) -> dict[str, Path]:
    """Return MODULE/NAME -> file for every definition of a release, its base's included, sorted.

    Raises SchemaError if `base.txt` does not name a release of the same catalogue, or the bases form a cycle.
    """
    return dict(sorted(_release_files(Path(folder), ()).items()))


def _release_files(folder: Path, through: tuple[Path, ...]) -> dict[str, Path]:
    note = folder / BASE
    if not folder.is_dir() or folder in through:
        raise SchemaError(f"not a release: {folder.name}", "E-01", str(through[-1] / BASE if through else folder))
    files: dict[str, Path] = {}
    if note.exists():
        name, *missing = note.read_text(encoding="utf-8").splitlines() or [""]
        if not re.fullmatch(r"kafka-[0-9.]+", name):
            raise SchemaError(f"{name!r} is not the folder name of a release", "E-01", str(note))
        files = _release_files(folder.parent / name, (*through, folder))
        for line in missing:
            if files.pop(line.removeprefix("- "), None) is None:
                raise SchemaError(f"{name} has no {line.removeprefix('- ')}", "E-01", str(note))
    files |= {path.relative_to(folder).with_suffix("").as_posix(): path for path in definition_files([folder])}
    return files


def module_name(source: StrPath) -> str:
    """Return a catalogue's name for the module of a jar or directory: `clients` for kafka-clients-3.9.1.jar."""
    name = Path(source).name
    match = _JAR.match(name)
    module = match[1] if match else name.removesuffix(".jar")
    return "core" if module.startswith("kafka_") else module  # kafka_2.13: the broker itself, by Scala version


def _texts(source: Path) -> Iterator[tuple[str, str]]:
    """Yield (name for errors, text) of every JSON file in a jar or below a directory."""
    if not source.is_dir():
        yield from jar_texts(source)
        return
    for path in definition_files([source]):
        yield str(path), read_text(path)


def jar_texts(jar: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each JSON file in a jar, by name. Raises SchemaError if the jar cannot be read."""
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
        raise SchemaError(f"neither a directory nor a readable jar: {error}", "E-01", str(jar)) from error


@dataclass(frozen=True, slots=True)
class Merged:
    """A message of the catalogue: the merged definition, and the definitions of the releases, newest first.

    module: its folder in the newest release. Record type numbers are unique only within a module.
    """

    message: Message
    module: str
    releases: dict[str, Message]
    conflicts: list[Conflict]

    @property
    def differing(self) -> dict[str, Message]:
        """The releases whose definition is not, word for word, the merged one."""
        text = render(self.message)
        same = {message: render(message) == text for message in self.releases.values()}  # one object for many releases
        return {release: message for release, message in self.releases.items() if not same[message]}

    @property
    def former_names(self) -> dict[str, tuple[FormerName, ...]]:
        """Names of fields in other releases, by struct."""
        return former_names(self.message, dict.fromkeys(self.differing.values()))


def read_catalogue(directory: StrPath) -> dict[str, Merged]:
    """Read the messages of a catalogue, by name. Raises ExceptionGroup of SchemaError."""
    releases: dict[str, dict[str, Message]] = {}
    modules: dict[str, str] = {}
    errors: list[SchemaError] = []
    checked: dict[Path, Message | None] = {}
    for folder in sorted(Path(directory).glob("kafka-*"), key=lambda path: release_order(path.name), reverse=True):
        release = folder.name.removeprefix("kafka-")
        messages: dict[str, Message] = {}
        together: dict[str, list[Message]] = {}
        for name, path in release_files(folder).items():
            if path not in checked:
                checked[path], faults = check(path.read_text(encoding="utf-8"), str(path))
                errors += faults
            message = checked[path]
            if message is None:
                continue
            module = name.rpartition("/")[0]
            together.setdefault(module, []).append(message)
            if message.name in messages:
                errors.append(SchemaError("two modules have this name", "T-09", message.file, message.name))
            messages[message.name] = message
            modules.setdefault(message.name, module)
        for found_together in together.values():
            errors += check_together(found_together)
        releases[release] = messages
    if errors:
        raise ExceptionGroup(f"errors in the catalogue {directory}", errors)
    return {name: _merged(name, modules[name], releases) for name in sorted(modules)}


def _merged(name: str, module: str, releases: dict[str, dict[str, Message]]) -> Merged:
    definitions = [(release, messages[name]) for release, messages in releases.items() if name in messages]
    message, conflicts = merge(definitions)
    return Merged(message, module, dict(definitions), conflicts)


def release_order(release: str) -> tuple[int, ...]:
    """Return a sort key of a release: 3.10.0 comes after 3.9.1."""
    return tuple(int(number) for number in re.findall(r"[0-9]+", release))
