"""All exceptions that kwire raises.

    KwireError
      DecodeError(what, position, path)     received bytes break a format
        Truncated                           the bytes end inside a value
        Malformed                           the bytes are complete but invalid
        CorruptBatch(+ file, offsets)       a record batch of a log or a request
      EncodeError(what, path)               a caller's value does not fit the format
      SchemaError(what, rule, file, ...)    a message definition breaks a rule
      InvalidSchema(what, schema, path)     a schema of a registry is invalid, or values cannot be converted to it
      UnsupportedVersion                    a version, magic or codec that is not supported
      OptionError                           an invalid option, argument or config
        MissingExtra                        a library that is not installed
      LogError(what, file)                  a log directory or file that cannot be used
        DirectoryInUse                      a log directory or copy that something else uses
        MissingOffsets                      offsets between two segments that are in neither
      TableError(what, table)               an Iceberg or Delta table that cannot be used
      UnsafePath(what, folder)              a name in the input is a path outside of the target folder
      BrokerError(what, code)               a broker responded with an error code
        LogTruncated(+ end_offset)          records that were read are no longer in the log
      RegistryError(what, registry)         a schema registry that cannot be used
        UnknownSchema                       a schema id, subject or version that a registry does not know
      ConnectionFailed(what, address)       a broker cannot be reached, or its connection failed
      JobFailed(what, failures)             some items of a job failed

All of them can be pickled, since Spark sends them between processes. Messages say what is wrong, where, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "BrokerError",
    "ConnectionFailed",
    "CorruptBatch",
    "DecodeError",
    "DirectoryInUse",
    "EncodeError",
    "InvalidSchema",
    "JobFailed",
    "KwireError",
    "LogError",
    "LogTruncated",
    "Malformed",
    "MissingExtra",
    "MissingOffsets",
    "OptionError",
    "RegistryError",
    "SchemaError",
    "TableError",
    "Truncated",
    "UnknownSchema",
    "UnsafePath",
    "UnsupportedVersion",
    "counted",
    "did_you_mean",
    "hide_secrets",
]

Path = tuple[str | int, ...]

MAX_COMPARED = 200


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'orders'?)` for the known name closest to `name`, or an empty string. Ignores case.

    Names of more than MAX_COMPARED characters are not compared: that takes time by the square of their length.
    """
    import difflib

    if len(name) > MAX_COMPARED:
        return ""
    by_lower = {each.lower(): each for each in known if len(each) <= MAX_COMPARED}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean '{by_lower[close[0]]}'?)" if close else ""


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 byte`, `2 bytes`. many: the plural, by default with an s."""
    return f"{number} {one}" if number == 1 else f"{number} {many or f'{one}s'}"


def render_path(path: Path) -> str:
    """Format `("topics", 3, "name")` as `topics[3].name`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


# Both begin after a separator and have bounds: texts of any length take linear time.
USER = re.compile(
    r"([^\s/?#@:]*(?::(?!\d{1,5}(?:/|$))[^\s@]*)?)@(?:[^\s/?#@]*@)*"  # up to five digits are a port, not a password
)
QUERY = re.compile(
    r"(?i)([?&;][\w.%-]{0,64}?(?:sig|token|secret|passw|pwd|key|credential|auth|code)[\w.%-]{0,64}=)[^&;\s'\"]+"
)
SHORTEST_USER = 6
"""Characters of user and password from which on they are hidden where a driver repeats them without the URL."""


def hide_secrets(text: str) -> str:
    """Return a text without the user and password, and without secret parameters, of the URLs in it."""
    if "://" not in text:
        return text
    begin, *urls = text.split("://")
    hidden = [USER.sub("[hidden]@", each, count=1) if USER.match(each) else each for each in urls]
    return QUERY.sub(r"\1[hidden]", "://".join([begin, *hidden]))


def _hide_all(texts: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the arguments of an error with their secrets hidden, also where one repeats another's."""
    urls = [url for each in texts if isinstance(each, str) for url in each.split("://")[1:]]
    users = {match[1] for url in urls if (match := USER.match(url)) and len(match[1]) >= SHORTEST_USER}
    for each in texts:
        if isinstance(each, str):
            each = hide_secrets(each)
            for user in users:
                each = each.replace(user, "[hidden]")
        yield each


class KwireError(Exception):
    """Base class of all exceptions that kwire raises. Their texts have no secrets of URLs."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*_hide_all(args))


class DecodeError(KwireError):
    """Received bytes break the format.

    position: from the start of the buffer, frame or file. path: field names and indexes below the message; empty
    outside of messages.
    """

    def __init__(self, what: str, position: int, path: Path = ()) -> None:
        super().__init__(what, position, path)  # exceptions pickle their args
        self.what, self.position, self.path = what, position, path

    def __str__(self) -> str:
        where = render_path(self.path)
        return f"{where}{': ' if where else ''}{self.what}, at byte {self.position}"


class Truncated(DecodeError):
    """The bytes end inside a value."""


class Malformed(DecodeError):
    """The bytes are complete but break the format."""


class CorruptBatch(DecodeError):
    """A corrupt record batch: wrong checksum, invalid header, or payload that cannot be decoded.

    file: path or URL, None for bytes in memory. offsets: (base_offset, last_offset) in its header, None if the header
    is invalid.
    """

    def __init__(
        self,
        what: str,
        position: int,
        path: Path = (),
        file: str | None = None,
        offsets: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(what, position, path)
        self.file, self.offsets = None if file is None else hide_secrets(file), offsets
        self.args = (what, position, path, self.file, offsets)

    def __str__(self) -> str:
        where = f"{self.file}: " if self.file else ""
        if self.offsets is None:
            span = ""
        elif self.offsets[0] == self.offsets[1]:
            span = f" (offset {self.offsets[0]})"
        else:
            span = f" (offsets {self.offsets[0]} to {self.offsets[1]})"
        return f"{where}{self.what}, in the batch at byte {self.position}{span}"


class EncodeError(KwireError):
    """A value does not fit the format. path: field names and indexes below the message."""

    def __init__(self, what: str, path: Path = ()) -> None:
        super().__init__(what, path)
        self.what, self.path = what, path

    def __str__(self) -> str:
        where = render_path(self.path)
        return f"{where}{': ' if where else ''}{self.what}"


class SchemaError(KwireError):
    """A message definition breaks a rule of the definition language.

    rule: id such as "E-27". file, struct, field: the place, None if not applicable.
    """

    def __init__(
        self, what: str, rule: str, file: str | None = None, struct: str | None = None, field: str | None = None
    ) -> None:
        super().__init__(what, rule, file, struct, field)
        self.what, self.rule, self.file, self.struct, self.field = what, rule, file, struct, field

    def __str__(self) -> str:
        name = ".".join(part for part in (self.struct, self.field) if part)
        where = ": ".join(part for part in (self.file, name) if part)
        return f"{where}{': ' if where else ''}{self.what} [{self.rule}]"


class InvalidSchema(KwireError):
    """A schema of a registry is invalid, or values of one schema cannot be converted to another.

    schema: its label, such as "id 42"; None if the schema has none. path: of the field, empty for the whole schema.
    """

    def __init__(self, what: str, schema: str | None = None, path: Path = ()) -> None:
        super().__init__(what, schema, path)
        self.what, self.schema, self.path = what, schema, path

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.schema and f"schema {self.schema}", render_path(self.path)) if part)
        return f"{where}{': ' if where else ''}{self.what}"


class UnsupportedVersion(KwireError):
    """A version, magic or codec that is not supported."""


class OptionError(KwireError):
    """An invalid option, argument or config; the message has its name and what is expected."""


class MissingExtra(OptionError):
    """A library that is not installed; the message has the command that installs it."""


class LogError(KwireError):
    """A log directory or one of its files cannot be used. file: path or URL."""

    what: str
    file: str | None

    def __init__(self, what: str, file: str | None = None) -> None:
        super().__init__(what, file)
        self.what, self.file = self.args

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" if self.file else self.what


class DirectoryInUse(LogError):
    """Another process, or another part of this one, uses a log directory or a copy."""


class MissingOffsets(LogError):
    """A segment is missing between two others, so that records of a log are lost."""


class TableError(KwireError):
    """A table cannot be read, written or committed to. table: its name or URL."""

    what: str
    table: str

    def __init__(self, what: str, table: str) -> None:
        super().__init__(what, table)
        self.what, self.table = self.args

    def __str__(self) -> str:
        return f"table {self.table}: {self.what}"


class UnsafePath(KwireError):
    """A name in the input is a path outside of the target folder. folder: the target folder."""

    what: str
    folder: str

    def __init__(self, what: str, folder: str) -> None:
        super().__init__(what, folder)
        self.what, self.folder = self.args

    def __str__(self) -> str:
        return f"{self.folder}: {self.what}"


class BrokerError(KwireError):
    """A broker responded with an error code. code: Kafka's int16 error code."""

    what: str
    code: int

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what, code)
        self.what, self.code = self.args

    def __str__(self) -> str:
        return f"{self.what} (error code {self.code})"


class LogTruncated(BrokerError):
    """A log lost records that were read: a new leader did not have them (unclean leader election, KIP-320).

    end_offset: the records read from there on are no longer in the log.
    """

    def __init__(self, what: str, code: int, end_offset: int) -> None:
        super().__init__(what, code)
        self.args = (*self.args, end_offset)
        self.end_offset = end_offset


class RegistryError(KwireError):
    """A schema registry cannot be reached, refuses a request, or has unusable contents.

    registry: URL without credentials, or folder.
    """

    what: str
    registry: str

    def __init__(self, what: str, registry: str) -> None:
        super().__init__(what, registry)
        self.what, self.registry = self.args

    def __str__(self) -> str:
        return f"{self.registry}: {self.what}"


class UnknownSchema(RegistryError):
    """A schema registry does not know a schema id, subject or version."""


class ConnectionFailed(KwireError):
    """A broker cannot be reached, or a connection to it failed. address: host:port."""

    what: str
    address: str

    def __init__(self, what: str, address: str) -> None:
        super().__init__(what, address)
        self.what, self.address = self.args

    def __str__(self) -> str:
        return f"{self.address}: {self.what}"


class JobFailed(KwireError):
    """Some items of a job failed; the others are done.

    failures: (item, cause), such as ("orders-0", "..."). result: the job's result for the other items; None after
    unpickling, since it may hold a session.
    """

    result: object = None

    def __init__(self, what: str, failures: tuple[tuple[str, str], ...]) -> None:
        super().__init__(what, failures)
        self.what, self.failures = what, failures

    def __reduce__(self) -> tuple[type[JobFailed], tuple[str, tuple[tuple[str, str], ...]]]:
        return JobFailed, (self.what, self.failures)

    def __str__(self) -> str:
        return self.what
