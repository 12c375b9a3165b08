"""Parsers of option values, which the data sources share. Standard library only.

Names are case-insensitive and arrive in lower case. Errors are OptionErrors that name the option and the remedy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kwire.errors import OptionError, did_you_mean

__all__ = [
    "STORAGE_PREFIX",
    "check_columns",
    "choice",
    "column_list",
    "flag",
    "is_storage",
    "parse_paths",
    "parse_storage",
    "positive",
    "text",
    "word_list",
]

Choice = TypeVar("Choice", bound=str)

STORAGE_PREFIX = "storage."


def text(name: str, value: str) -> str:
    """The text itself."""
    return value


def flag(name: str, value: str) -> bool:
    """Parse `true` or `false`."""
    if value.strip().lower() not in ("true", "false"):
        raise OptionError(f"Option '{name}': expected true or false, got '{value}'")
    return value.strip().lower() == "true"


def positive(name: str, value: str) -> int:
    """Parse a positive integer."""
    try:
        number = int(value)
    except ValueError:
        raise OptionError(f"Option '{name}': expected an integer, got '{value}'") from None
    if number <= 0:
        raise OptionError(f"Option '{name}': must be positive, got {number}")
    return number


def choice(*choices: Choice) -> Callable[[str, str], Choice]:
    """A parser of one of several words, in any case."""

    def parse(name: str, value: str) -> Choice:
        for each in choices:
            if value.strip().lower() == each.lower():
                return each
        raise OptionError(
            f"Option '{name}': expected one of {', '.join(choices)}, got '{value}'{did_you_mean(value, choices)}"
        )

    return parse


def word_list(name: str, value: str) -> tuple[str, ...]:
    """Parse a comma-separated list."""
    return tuple(word for word in (part.strip() for part in value.split(",")) if word)


def column_list(name: str, value: str) -> tuple[str, ...]:
    """Parse a comma-separated list of columns, which must name one."""
    columns = tuple(each.strip() for each in value.split(","))
    if not any(columns):
        raise OptionError(f"Option '{name}': expected a comma-separated list of columns, got '{value}'")
    return columns


def check_columns(names: Sequence[str], known: Iterable[str], where: str = "Option 'columns'") -> None:
    """Raise OptionError for unknown and repeated columns. where: what names them."""
    known = list(known)
    for name in names:
        if name not in known:
            raise OptionError(
                f"{where}: unknown column '{name}'{did_you_mean(name, known)}; available: {', '.join(known)}"
            )
    if len(set(names)) < len(names):
        raise OptionError(f"{where}: duplicate column in {', '.join(names)}")


def is_storage(key: str) -> bool:
    """Whether an option is an argument of the file system driver."""
    return key.startswith(STORAGE_PREFIX) and len(key) > len(STORAGE_PREFIX)


def parse_paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """Parse `path`, and `paths`, the JSON array that Spark makes of load(["a", "b"])."""
    paths = [given["path"]] if "path" in given else []
    if "paths" in given:
        try:
            more = json.loads(given["paths"])
        except ValueError:
            more = None
        if not isinstance(more, list) or not all(isinstance(path, str) for path in more):
            raise OptionError("Option 'paths': expected a JSON array of strings")
        paths += more
    if not paths or not all(path.strip() for path in paths):
        raise OptionError("Option 'path' must be specified: a local path, a glob or a URL")
    for path in paths:
        # "zip://inner::sftp://user:password@host/file" is a URL in a URL
        if any("://" in part and urlsplit(part).password is not None for part in path.split("::")):
            raise OptionError("Option 'path': holds a password, which plans and errors show; use storage.* options")
    return tuple(paths)


def parse_storage(given: Mapping[str, str]) -> dict[str, Any]:
    """Parse `storage.NAME` options, without the prefix.

    JSON values are decoded, other text is kept, and so are the values of names that look like credentials, since an
    access key can consist of digits.
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        if not key.startswith(STORAGE_PREFIX):
            continue
        name = key.removeprefix(STORAGE_PREFIX)
        found[name] = value
        if not any(part in name for part in ("key", "secret", "token", "password", "user")):
            try:
                found[name] = json.loads(value)
            except ValueError:
                continue
    return found
