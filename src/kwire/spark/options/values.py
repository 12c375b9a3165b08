"""Values of options, from strings to checked values: what every data source here has in common. Standard library only.

Keys are case-insensitive, and arrive in lower case. Every function takes the options of a query with keys in lower case
and raises OptionError naming the option and what would be right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kwire.errors import OptionError, did_you_mean

__all__ = [
    "STORAGE_PREFIX",
    "check_columns",
    "is_storage",
    "parse_choice",
    "parse_columns",
    "parse_flag",
    "parse_paths",
    "parse_positive",
    "parse_storage",
    "refuse_unknown",
]

Choice = TypeVar("Choice", bound=str)

STORAGE_PREFIX = "storage."


def refuse_unknown(given: Mapping[str, str], names: Iterable[str], source: str, page: str) -> None:
    """Refuse options that source does not have, storage.* apart: a typing error must not change a result silently."""
    known = {name.lower() for name in names}
    for key in given:
        if key not in known and not is_storage(key):
            raise OptionError(
                f"Unknown option '{key}'{did_you_mean(key, list(names))}; {page} lists the options of {source}"
            )


def is_storage(key: str) -> bool:
    """Whether this is an option for the file system driver."""
    return key.startswith(STORAGE_PREFIX) and len(key) > len(STORAGE_PREFIX)


def parse_paths(given: Mapping[str, str]) -> tuple[str, ...]:
    """`path`, and `paths` as Spark sends it for load(["a", "b"]): a JSON array."""
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
            raise OptionError(
                "Option 'path' holds a password, which plans and errors would show; use storage.* options"
            )
    return tuple(paths)


def parse_storage(given: Mapping[str, str]) -> dict[str, Any]:
    """`storage.NAME` options without the prefix.

    JSON objects, arrays, true, false and numbers are taken as such, anything else as the string it is; so are the
    values of names that look like credentials, since an access key may be all digits.
    """
    found: dict[str, Any] = {}
    for key, text in given.items():
        if not key.startswith(STORAGE_PREFIX):
            continue
        name = key.removeprefix(STORAGE_PREFIX)
        found[name] = text
        if not any(part in name for part in ("key", "secret", "token", "password", "user")):
            try:
                found[name] = json.loads(text)
            except ValueError:
                continue
    return found


def parse_columns(given: Mapping[str, str]) -> tuple[str, ...] | None:
    if "columns" not in given:
        return None
    columns = tuple(name.strip() for name in given["columns"].split(","))
    if not any(columns):
        raise OptionError("Option 'columns' names no column")
    return columns


def check_columns(names: Sequence[str], known: Iterable[str], where: str = "Option 'columns'") -> None:
    """Refuse columns that are not known, or named twice. where: what has named them, for the error."""
    known = list(known)
    for name in names:
        if name not in known:
            raise OptionError(
                f"{where}: unknown column '{name}'{did_you_mean(name, known)}; there are {', '.join(known)}"
            )
    if len(set(names)) < len(names):
        raise OptionError(f"{where} names a column twice: {', '.join(names)}")


def parse_flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise OptionError(f"Option '{name}': expected true or false, got '{text}'")
    return text.strip().lower() == "true"


def parse_positive(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        raise OptionError(f"Option '{name}': expected a whole number, got '{text}'") from None
    if value <= 0:
        raise OptionError(f"Option '{name}' must be positive, got {value}")
    return value


def parse_choice(given: Mapping[str, str], name: str, default: Choice, choices: tuple[Choice, ...]) -> Choice:
    text = given.get(name.lower())
    if text is None:
        return default
    for choice in choices:
        if text.strip().lower() == choice.lower():
            return choice
    raise OptionError(
        f"Option '{name}': expected one of {', '.join(choices)}, got '{text}'{did_you_mean(text, choices)}"
    )
