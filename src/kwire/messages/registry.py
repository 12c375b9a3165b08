"""Messages by name, api key and Kafka release, and the header versions of every API.

    registry.get("FetchRequest")                    the class, all versions of all releases in it
    registry.get("FetchRequest", kafka="3.9.1")     exactly as that release has it: versions, fields, defaults
    registry.request(1), registry.response(1)
    registry.find("coordinator-value", 1, module="group-coordinator")     what a record type number means
    registry.names(kafka="4.4.0"), registry.RELEASES
    registry.decode("VoteRequest", data, 1)         the message; if it does not decode, which releases it fits
    registry.load("kafka-clients-4.0.1.jar")        the classes of any release: jars, folders, a folder of the catalogue

A release is named in full, or by its minor version for the newest patch: "3.7" is "3.7.2". Wherever `kafka=` takes a
release, here and in `kwire.protocol`, it also takes the definitions of an own protocol, as `load` returns them.
Imports only the requested message.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib import resources
from typing import TYPE_CHECKING, Protocol

from kwire import messages
from kwire.errors import DecodeError, EncodeError, OptionError, UnsupportedVersion, did_you_mean
from kwire.messages.base import Buffer, Message
from kwire.messages.index import MESSAGES, RELEASES

if TYPE_CHECKING:
    from kwire.messages.loaded import Loaded

__all__ = [
    "RELEASES",
    "Definitions",
    "Registry",
    "api_names",
    "check_api_pattern",
    "decode",
    "find",
    "fitting",
    "get",
    "load",
    "names",
    "releases",
    "request",
    "request_header_version",
    "response",
    "response_header_version",
]


class Registry(Protocol):
    """The messages of some definitions: what `load` returns, or any object with these methods."""

    def names(self) -> list[str]:
        """Return the names of the messages."""

    def get(self, name: str) -> type[Message]:
        """Return the class of a message."""

    def find(self, kind: str, api_key: int) -> type[Message]:
        """Find the message of a kind with a key. Raises UnsupportedVersion if there is none."""

    def __hash__(self) -> int:
        """Codecs are kept for each registry."""


Definitions = str | Registry
"""A Kafka release, or definitions of one's own."""


def names(kafka: Definitions | None = None) -> list[str]:
    """Return the names of all messages, or of a Kafka release's, sorted."""
    if kafka is None:
        return list(MESSAGES)
    if not isinstance(kafka, str):
        return kafka.names()
    release = _release(kafka)
    return [name for name in MESSAGES if release in releases(name)]


@functools.cache
def releases(name: str) -> tuple[str, ...]:
    """Return the releases that have a message, newest first. Raises OptionError for an unknown name."""
    _check_name(name)
    names: list[str] = []
    for run in reversed(MESSAGES[name][3].split(", ")):
        oldest, _, newest = run.partition("-")
        names += RELEASES[RELEASES.index(newest or oldest) : RELEASES.index(oldest) + 1]
    return tuple(names)


def get(name: str, kafka: Definitions | None = None) -> type[Message]:
    """Return the class of a message; with kafka, of its definition in that release.

    This is the merged class unless the release differs from it. Raises OptionError for an unknown
    name or release.
    """
    if kafka is not None and not isinstance(kafka, str):
        return kafka.get(name)
    _check_name(name)
    if kafka is not None:
        release = _release(kafka)
        if release not in releases(name):
            raise OptionError(f"message {name!r} is not in Kafka {release}; it is in {runs(releases(name))}")
        if name in _differing(release):
            return _of_release(name, release)
    cls: type[Message] = getattr(messages, name)  # imports its module
    return cls


def find(kind: str, api_key: int, *, module: str | None = None, kafka: Definitions | None = None) -> type[Message]:
    """Find the message of a kind (request, response, metadata, coordinator-key, coordinator-value) with a key.

    module: the part of Kafka, such as metadata, group-coordinator or storage: each counts its record types from 0.
    kafka: that release, else the newest that has such a message. Kinds are the merged classes'; before 4.0 the
    coordinators' definitions are of the kind data, and their keys' version is the record type. Definitions of one's own
    have no modules.
    Raises UnsupportedVersion if there is none, OptionError if several modules have one.
    """
    if kafka is not None and not isinstance(kafka, str):
        return kafka.find(kind, api_key)
    for release in RELEASES if kafka is None else (_release(kafka),):
        names = _keys(release).get((kind, api_key), {})
        matches = [name for here, name in names.items() if module in (None, here)]
        if len(matches) > 1:
            raise OptionError(f"{kind} {api_key} is in several modules; pass module=, one of {', '.join(names)}")
        if matches:
            return get(matches[0], kafka)
    where = (f" in module {module}" if module else "") + (f" in Kafka {kafka}" if kafka else "")
    raise UnsupportedVersion(f"no {kind} with key {api_key}{where}")


def request(api_key: int, kafka: Definitions | None = None) -> type[Message]:
    """Return the request with an API key. Raises UnsupportedVersion for an unknown one."""
    return find("request", api_key, kafka=kafka)


def response(api_key: int, kafka: Definitions | None = None) -> type[Message]:
    """Return the response with an API key. Raises UnsupportedVersion for an unknown one."""
    return find("response", api_key, kafka=kafka)


def request_header_version(api_key: int, version: int, kafka: Definitions | None = None) -> int:
    """Return the header version of a request version. Raises UnsupportedVersion for an unknown one."""
    return _header_version(request(api_key, kafka), version)


def response_header_version(api_key: int, version: int, kafka: Definitions | None = None) -> int:
    """Return the header version of a response version. Raises UnsupportedVersion for an unknown one."""
    return _header_version(response(api_key, kafka), version)


def decode(name: str, data: Buffer, version: int, kafka: Definitions | None = None) -> Message:
    """Decode a body.

    The DecodeError of a body that does not decode names the releases that it fits, because a few versions changed after
    their first release. Raises UnsupportedVersion, OptionError.
    """
    try:
        return get(name, kafka).decode(data, version=version)
    except DecodeError as error:
        fits = fitting(name, data, version) if kafka is None or isinstance(kafka, str) else []
        if not fits:
            raise
        hint = f"; it fits Kafka {runs(fits)}: decode it as that release's"
        raise type(error)(f"{error.what}{hint}", error.position, error.path) from error


def fitting(name: str, data: Buffer, version: int) -> list[str]:
    """Return the releases, newest first, whose definition decodes a body and encodes it to the same bytes.

    Compiles the definition of each release that has its own. Raises OptionError for an unknown name.
    """
    fits: dict[type[Message], bool] = {}
    for release in releases(name):
        cls = get(name, release)
        if cls not in fits:
            fits[cls] = version in cls.VALID_VERSIONS and _fits(cls, bytes(data), version)
    return [release for release in releases(name) if fits[get(name, release)]]


def load(*sources: str) -> Loaded:
    """Load any definitions; their classes are compiled on demand.

    sources: jars of one Kafka release, folders with definitions, or a release's folder in a catalogue.
    Raises OptionError for a source that is missing or has no definitions, ExceptionGroup of SchemaError for wrong ones.
    """
    from kwire.messages.loaded import load_sources

    return load_sources(sources)


def runs(names: tuple[str, ...] | list[str]) -> str:
    """Releases, newest first, in words: "4.4.0", "3.7.2 to 3.9.1"; oldest first, and runs of neighbours as one."""
    parts: list[list[str]] = []
    for release in reversed(names):
        if parts and RELEASES.index(parts[-1][-1]) - 1 == RELEASES.index(release):
            parts[-1].append(release)
        else:
            parts.append([release])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in parts)


def _fits(cls: type[Message], data: bytes, version: int) -> bool:
    try:
        return cls.decode(data, version=version).encode(version=version) == data
    except (DecodeError, EncodeError):
        return False


def _header_version(cls: type[Message], version: int) -> int:
    cls.check_version(version)
    return cls.SPEC.header_version(version)


@functools.cache
def _keys(release: str) -> dict[tuple[str, int], dict[str, str]]:
    """(kind, key) -> the names of a release's messages with them, by Kafka's module."""
    keys: dict[tuple[str, int], dict[str, str]] = {}
    for name, (module, kind, api_key, _) in MESSAGES.items():
        if api_key is not None and release in releases(name):
            keys.setdefault((kind, api_key), {})[module] = name
    return keys


def _check_name(name: str) -> None:
    if name not in MESSAGES:
        hint = did_you_mean(name, MESSAGES) or did_you_mean(f"{name}Request", MESSAGES)
        raise OptionError(f"unknown message {name!r}{hint}")


def api_names() -> list[str]:
    """Return the names of the APIs, such as `Produce`."""
    return [name.removesuffix("Request") for name, (_, kind, _, _) in MESSAGES.items() if kind == "request"]


def check_api_pattern(pattern: str, option: str) -> None:
    """Raise OptionError, which begins with an option, for a name or pattern (*, ?) that matches no API.

    Ignores case. The number of an API that no release has is accepted.
    """
    names = api_names()
    if not pattern.isdecimal() and not any(fnmatchcase(name.lower(), pattern.lower()) for name in names):
        hint = did_you_mean(re.sub("(?i)(request|response)$", "", pattern), names)
        raise OptionError(f"{option}: unknown API {pattern!r}{hint}")


def _release(kafka: str) -> str:
    """The release of that name, or the newest patch of that minor version."""
    if kafka in RELEASES:
        return kafka
    patches = [release for release in RELEASES if release.startswith(f"{kafka}.")] if kafka.count(".") == 1 else []
    if patches:
        return patches[0]
    minor = [release for release in RELEASES if release.rpartition(".")[0] == kafka.rpartition(".")[0]]
    raise OptionError(f"unknown Kafka release {kafka!r}; available: {', '.join(minor or RELEASES)}")


@functools.cache
def _differing(kafka: str) -> Mapping[str, str]:
    """The texts of a release's definitions that are not the merged ones."""
    definitions: dict[str, str] = {}
    for line in _texts().splitlines():
        name, having, definition = line.split("\t")
        if kafka in having.split(","):
            definitions[name] = definition
    return definitions


@functools.cache
def _texts() -> str:
    return resources.files("kwire.messages").joinpath("releases", "definitions.txt").read_text("utf-8")


@functools.cache
def _of_release(name: str, kafka: str) -> type[Message]:
    from kwire.messages.runtime import message_class
    from kwire.schema.language import parse

    return message_class(parse(_differing(kafka)[name], f"{name}.json (Kafka {kafka})"))
