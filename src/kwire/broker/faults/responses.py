"""Responses of one's own, and changes of the broker's."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kwire.broker.faults.fields import build, change, check_encodable, find_field, to_value
from kwire.errors import OptionError
from kwire.messages import registry
from kwire.messages.base import Message

if TYPE_CHECKING:
    from kwire.broker.faults.fields import Path

__all__ = ["parse_changes", "parse_reply"]

Reply = Callable[[Message], Message]
Edit = Callable[[Message, Message], Any]


def parse_reply(api_key: int, versions: range, response: object) -> Reply:
    """Return a function that makes a response. Raises OptionError for values that do not fit."""
    cls = registry.response(api_key)
    if callable(response):
        make = response

        def call(request: Message) -> Message:
            made = make(request)
            return build(cls, made) if isinstance(made, Mapping) else _checked(cls, made)

        return call
    built = build(cls, response) if isinstance(response, Mapping) else _checked(cls, response)
    check_encodable(built, versions)
    return lambda _request: copy.deepcopy(built)  # other faults and quotas change what is sent


def _checked(cls: type[Message], made: object) -> Message:
    if not isinstance(made, cls):
        raise OptionError(f"invalid response {made!r}: must be values by field name, or a {cls.__name__}")
    return made


def parse_changes(api_key: int, versions: range, changes: object) -> Edit:
    """Return a function that changes a response. Raises OptionError for fields that it does not have."""
    cls = registry.response(api_key)
    if callable(changes):
        return changes
    if not isinstance(changes, Mapping) or not changes:
        raise OptionError(f"invalid changes {changes!r}: must be values by field name, or a function")
    pairs: list[tuple[Path, Any]] = []
    for name, value in changes.items():
        path, field = find_field(cls, name)
        if not any(version in field.versions for version in versions):
            raise OptionError(f"{cls.__name__}: versions {versions[0]} to {versions[-1]} have no {name}")
        pairs.append((path, to_value(cls, field, value, name, is_element=not isinstance(path[-1], str))))
    trial = cls()
    for path, value in pairs:
        if len(path) == 1:
            change(trial, path, value)
    check_encodable(trial, versions)

    def edit(_request: Message, response: Message) -> None:
        for path, value in pairs:
            change(response, path, value)

    return edit
