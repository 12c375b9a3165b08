"""Messages by name, api key and Kafka release, and the header versions of every API.

    registry.get("FetchRequest")                    the class, all versions of all releases in it
    registry.get("FetchRequest", kafka="3.9.1")     exactly as that release has it: versions, fields, defaults
    registry.request(1), registry.response(1)
    registry.find("coordinator-value", 1, module="group-coordinator")     what a record type number means
    registry.names(kafka="4.4.0"), registry.RELEASES

Nothing is imported but the message that is asked for.
"""

from __future__ import annotations

import difflib
import functools
import json
from importlib import resources
from typing import Any

from kwire import messages
from kwire.errors import OptionError, UnsupportedVersion
from kwire.messages.base import Message
from kwire.messages.index import MESSAGES, RELEASES

__all__ = [
    "RELEASES",
    "find",
    "get",
    "names",
    "request",
    "request_header_version",
    "response",
    "response_header_version",
]


def names(kafka: str | None = None) -> list[str]:
    """The names of all messages, or of those that a Kafka release has in any version; sorted."""
    if kafka is None:
        return list(MESSAGES)
    _check_release(kafka)
    return [name for name, (*_, releases) in MESSAGES.items() if kafka in releases]


def get(name: str, kafka: str | None = None) -> type[Message]:
    """The class of a message; with kafka, of its definition in that release.

    Where a release has the message as the merged class has it, that class is returned. Raises OptionError for a name or
    a release that is not there.
    """
    if name not in MESSAGES:
        close = difflib.get_close_matches(name, MESSAGES, 1)
        raise OptionError(f"there is no message {name!r}" + (f"; do you mean {close[0]}?" if close else ""))
    *_, releases = MESSAGES[name]
    if kafka is not None:
        _check_release(kafka)
        if kafka not in releases:
            raise OptionError(f"Kafka {kafka} has no message {name}; these have: {', '.join(releases)}")
        if name in _differing(kafka):
            return _of_release(name, kafka)
    cls: type[Message] = getattr(messages, name)  # imports its module
    return cls


def find(kind: str, api_key: int, *, module: str | None = None, kafka: str | None = None) -> type[Message]:
    """The message of a kind (request, response, metadata, coordinator-key, coordinator-value) with that key.

    module: the part of Kafka, such as metadata, group-coordinator or storage: each counts its record types from 0.
    kafka: that release, else the newest that has such a message. Kinds are the merged classes'; before 4.0 the
    coordinators' definitions are of the kind data, and their keys' version is the record type.
    Raises UnsupportedVersion if there is none, OptionError if several modules have one.
    """
    if kafka is not None:
        _check_release(kafka)
    for release in RELEASES if kafka is None else (kafka,):
        names = _keys(release).get((kind, api_key), {})
        found = [name for here, name in names.items() if module in (None, here)]
        if len(found) > 1:
            raise OptionError(f"{kind} {api_key} is in several modules: choose one of {', '.join(names)}")
        if found:
            return get(found[0], kafka)
    where = (f" in module {module}" if module else "") + (f" in Kafka {kafka}" if kafka else "")
    raise UnsupportedVersion(f"there is no {kind} with key {api_key}{where}")


def request(api_key: int, kafka: str | None = None) -> type[Message]:
    """The request with that api key. Raises UnsupportedVersion for an unknown one."""
    return find("request", api_key, kafka=kafka)


def response(api_key: int, kafka: str | None = None) -> type[Message]:
    """The response with that api key. Raises UnsupportedVersion for an unknown one."""
    return find("response", api_key, kafka=kafka)


def request_header_version(api_key: int, version: int) -> int:
    """Version of the header before that version of a request. Raises UnsupportedVersion for an unknown one."""
    return _header_version(request(api_key), version)


def response_header_version(api_key: int, version: int) -> int:
    """Version of the header before that version of a response. Raises UnsupportedVersion for an unknown one."""
    return _header_version(response(api_key), version)


def _header_version(cls: type[Message], version: int) -> int:
    cls.check_version(version)
    return cls.SPEC.header_version(version)


@functools.cache
def _keys(release: str) -> dict[tuple[str, int], dict[str, str]]:
    """(kind, key) -> the names of a release's messages with them, by Kafka's module."""
    keys: dict[tuple[str, int], dict[str, str]] = {}
    for name, (module, kind, api_key, releases) in MESSAGES.items():
        if release in releases and api_key is not None:
            keys.setdefault((kind, api_key), {})[module] = name
    return keys


def _check_release(kafka: str) -> None:
    if kafka not in RELEASES:
        raise OptionError(f"no definitions of Kafka {kafka!r} here; there are those of {', '.join(RELEASES)}")


@functools.cache
def _differing(kafka: str) -> dict[str, Any]:
    """The definitions of a release that are not the merged ones."""
    text = resources.files("kwire.messages").joinpath("releases", f"kafka-{kafka}.json").read_text("utf-8")
    definitions: dict[str, Any] = json.loads(text)
    return definitions


@functools.cache
def _of_release(name: str, kafka: str) -> type[Message]:
    from kwire.messages.runtime import message_class
    from kwire.schema.language import parse

    return message_class(parse(json.dumps(_differing(kafka)[name]), f"{name}.json (Kafka {kafka})"))
