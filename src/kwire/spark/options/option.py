"""The options of sources and sinks: names, values, and their rows in the documentation. Standard library only.

A source lists its options in a tuple. Its parser reads values through them and refuses names that are not in the tuple;
the option tables of docs/ are generated from it. Names are case-insensitive and arrive in lower case. Errors are
OptionErrors that name the option and the remedy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeVar

from kwire.errors import OptionError, did_you_mean
from kwire.url_passwords import holds_password

__all__ = [
    "COLUMNS",
    "MAX_DIGITS",
    "PATH",
    "PATHS",
    "STORAGE",
    "Option",
    "QueryType",
    "byte_size",
    "check_names",
    "choice",
    "column_list",
    "flag",
    "flag_option",
    "is_storage",
    "is_table",
    "load_json_object",
    "number_option",
    "parse_paths",
    "parse_storage",
    "positive",
    "text",
    "text_option",
    "user_options",
    "word_list",
]

T_co = TypeVar("T_co", covariant=True)
Choice = TypeVar("Choice", bound=str)

QueryType = Literal["batch", "streaming", "streaming and batch"]

# Options that are not the user's: a streaming write adds queryName and checkpointLocation, which are Spark's own.
# CREATE TABLE passes the table's properties: owner, provider, location, comment, TBLPROPERTIES, and each option twice,
# as NAME and as option.NAME. Source: Spark 4.1 to 4.3, DataStreamWriter.queryName, V2SessionCatalog.createTable.
SPARK_OPTIONS = ("queryname", "checkpointlocation")
TABLE_PROPERTIES = ("provider", "owner")  # Spark sets both on every table
STORAGE_PREFIX = "storage."


def user_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that the user set, with names in lower case."""
    given = {key.lower(): value for key, value in options.items()}
    if is_table(options):
        given = {key: value for key, value in given.items() if key == "path" or f"option.{key}" in given}
        if given.get("path", "").startswith("file:/"):
            given["path"] = "/" + given["path"].removeprefix("file:").lstrip("/")  # Spark's URL for a local path
    return {key: value for key, value in given.items() if key not in SPARK_OPTIONS}


def is_table(options: Mapping[str, str]) -> bool:
    """Return whether options come from CREATE TABLE."""
    return {key.lower() for key in options}.issuperset(TABLE_PROPERTIES)


@dataclass(frozen=True, kw_only=True)  # Option[int](...) sets an attribute, which frozen classes with slots cannot take
class Option(Generic[T_co]):
    """An option by name.

    parse(name, text): the value; raises OptionError. default: the value without the option.
    value, shown_default (by default the default itself), query, meaning: cells of the documentation's table, in
    Markdown.
    """

    name: str
    parse: Callable[[str, str], T_co]
    default: T_co
    value: str
    meaning: str
    shown_default: str = ""
    query: QueryType = "streaming and batch"

    def of(self, given: Mapping[str, str]) -> T_co:
        """Return the value among a query's options. given: names in lower case. Raises OptionError."""
        text = given.get(self.name.lower())
        return self.default if text is None else self.parse(self.name, text)

    @property
    def default_cell(self) -> str:
        """The default in the documentation."""
        match self.default:
            case _ if self.shown_default:
                return self.shown_default
            case None:
                return "none"
            case str(word):
                return f"`{word}`"
            case other:
                return str(other).lower()


def check_names(
    given: Mapping[str, str],
    options: Iterable[Option[object]],
    unsupported: Mapping[str, str],
    *,
    source: str,
    page: str,
    passed_on: Callable[[str], bool] | None = None,
) -> None:
    """Raise OptionError for options that the source does not have: a typing error must not change a result silently.

    unsupported: known names, with the reason. passed_on(key): whether an option is passed to a client; by default
    options are passed to the driver of a file system.
    """
    names = [option.name for option in options]
    known = {name.lower() for name in names}
    reasons = {name.lower(): (name, reason) for name, reason in unsupported.items()}
    for key in given:
        if key in reasons and key not in known:
            name, reason = reasons[key]
            raise OptionError(f"Option '{name}' is not supported: {reason}")
        if key not in known and not (passed_on or is_storage)(key):
            hint = did_you_mean(key, [*names, *unsupported])
            raise OptionError(f"Unknown option '{key}'{hint}; {page} lists the options of {source}")


# ---- parsers of values


def text(name: str, value: str) -> str:
    """Return the text itself."""
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


MAX_DIGITS = 19  # of 2**63; Python converts no number of more than 4300
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])i?b?|b)?", re.ASCII | re.IGNORECASE)


def byte_size(name: str, value: str) -> int:
    """Parse a number of bytes: `1048576`, `1m`, `1MB` or `1MiB`, which are the same, as in Spark's configurations."""
    match = _SIZE.fullmatch(value.strip())
    size = (
        0
        if match is None or len(match[1]) > MAX_DIGITS
        else int(match[1]) << 10 * (" kmgt".index(match[2].lower()) if match[2] else 0)
    )
    if match is None or size >= 2**63 or len(match[1]) > MAX_DIGITS:
        raise OptionError(f"Option '{name}': expected a number of bytes such as 134217728 or 128m, got '{value}'")
    return size


def choice(*choices: Choice) -> Callable[[str, str], Choice]:
    """Return a parser of one of several words, in any case."""

    def parse(name: str, value: str) -> Choice:
        for each in choices:
            if value.strip().lower() == each.lower():
                return each
        raise OptionError(
            f"Option '{name}': expected one of {', '.join(choices)}, got '{value}'{did_you_mean(value, choices)}"
        )

    return parse


def load_json_object(text: str, expected: OptionError) -> dict[str, Any]:
    """Parse a JSON object. Raises `expected` for anything else, and for duplicate names."""

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        parsed = dict(items)
        if len(parsed) != len(items):
            raise ValueError("duplicate name")
        return parsed

    try:
        value = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        raise expected from None
    if not isinstance(value, dict):
        raise expected
    return value


def word_list(name: str, value: str) -> tuple[str, ...]:
    """Parse a comma-separated list."""
    return tuple(word for word in (part.strip() for part in value.split(",")) if word)


def column_list(name: str, value: str) -> tuple[str, ...]:
    """Parse a comma-separated list of columns, which must name one."""
    columns = tuple(each.strip() for each in value.split(","))
    if not any(columns):
        raise OptionError(f"Option '{name}': expected a comma-separated list of columns, got '{value}'")
    return columns


# ---- kinds of options, and options of several sources

text_option = partial(Option[str | None], parse=text, default=None)
number_option = partial(Option[int | None], parse=positive, default=None)
flag_option = partial(Option[bool], parse=flag, value="boolean")

COLUMNS = Option[tuple[str, ...] | None](
    name="columns",
    parse=column_list,
    default=None,
    value="comma-separated list of columns",
    shown_default="all",
    meaning="The columns to read, in this order.",
)
PATH = text_option(
    name="path",
    value="string, also as the argument of `load`",
    shown_default="required",
    meaning="A log directory, a partition's directory, a glob or a URL.",
)
PATHS = text_option(
    name="paths", value="JSON array of strings", meaning="Several paths; Spark sets it for `load([...])`."
)
STORAGE = text_option(name="storage.*", value="string or JSON", meaning="Arguments of the fsspec driver of a URL.")


def is_storage(key: str) -> bool:
    """Return whether an option is an argument of the file system driver."""
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
        if holds_password(path):
            raise OptionError("Option 'path': holds a password, which plans and errors show; use storage.* options")
    return tuple(paths)


def parse_storage(given: Mapping[str, str]) -> dict[str, Any]:
    """Parse `storage.NAME` options, without the prefix.

    JSON values are decoded, other text is kept, and so are the values of names that look like credentials, since an
    access key can consist of digits.
    """
    storage: dict[str, Any] = {}
    for key, value in given.items():
        if not key.startswith(STORAGE_PREFIX):
            continue
        name = key.removeprefix(STORAGE_PREFIX)
        storage[name] = value
        if not any(part in name for part in ("key", "secret", "token", "password", "user")):
            try:
                storage[name] = json.loads(value)
            except ValueError:
                continue
    return storage
