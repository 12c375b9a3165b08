"""Every exception that leaves kwire.

    KwireError
      DecodeError(what, position, path)     received bytes break a format
        Truncated                           the bytes end inside a value
        Malformed                           the bytes are there and wrong
        CorruptBatch(+ file, offsets)       a record batch of a log or a request
      EncodeError(what, path)               a caller's value does not fit the format
      SchemaError(what, rule, file, ...)    a message definition breaks a rule
      UnsupportedVersion                    a version, magic or codec that is known and not offered
      OptionError                           a wrong option, argument or setting
      LogError(what, file)                  a log directory or file that cannot be used
      UnsafePath(what, folder)              a name from the input would be written outside the folder asked for
      BrokerError(what, code)               a broker answered with a protocol error
      ConnectionFailed(what, address)       a broker cannot be reached, or its connection broke
      JobFailed(what, failures)             a job on many partitions could not do all of them

All of them pickle (Spark carries them between processes) and all of them say where and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = [
    "BrokerError",
    "ConnectionFailed",
    "CorruptBatch",
    "DecodeError",
    "EncodeError",
    "JobFailed",
    "KwireError",
    "LogError",
    "Malformed",
    "OptionError",
    "SchemaError",
    "Truncated",
    "UnsafePath",
    "UnsupportedVersion",
    "did_you_mean",
]

Path = tuple[str | int, ...]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'orders'?)` for the known name closest to `name`, or an empty string. Ignores case."""
    import difflib

    by_lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f" (did you mean '{by_lower[close[0]]}'?)" if close else ""


def render_path(path: Path) -> str:
    """`("topics", 3, "name")` as `topics[3].name`, the form Kafka's users know from JSON paths."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


class KwireError(Exception):
    """The root: catch this to catch whatever kwire raises on purpose."""


class DecodeError(KwireError):
    """Received bytes break the format.

    position: int, from the start of the buffer, frame or file that was given.
    path: field names and indexes from the message down; empty outside messages.
    """

    def __init__(self, what: str, position: int, path: Path = ()) -> None:
        super().__init__(what, position, path)  # all of them: Exception pickles by its args
        self.what, self.position, self.path = what, position, path

    def __str__(self) -> str:
        where = render_path(self.path)
        return f"{where}{': ' if where else ''}{self.what}, at byte {self.position}"


class Truncated(DecodeError):
    """The bytes end inside a value."""


class Malformed(DecodeError):
    """The bytes are all there and break the format."""


class CorruptBatch(DecodeError):
    """A record batch that cannot be trusted: wrong checksum, bad header, payload that does not decode.

    file: path or URL, None for bytes in memory.
    offsets: (base_offset, last_offset) as its header claims them, None where the header itself is not to be believed.
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
        self.args = (what, position, path, file, offsets)
        self.file, self.offsets = file, offsets

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
    """A value does not fit the format. path: field names and indexes from the message down."""

    def __init__(self, what: str, path: Path = ()) -> None:
        super().__init__(what, path)
        self.what, self.path = what, path

    def __str__(self) -> str:
        where = render_path(self.path)
        return f"{where}{': ' if where else ''}{self.what}"


class SchemaError(KwireError):
    """A message definition breaks a rule of the definition language.

    rule: id such as "E-27"; file, struct, field: where, each None where it does not apply.
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


class UnsupportedVersion(KwireError):
    """A version, magic or codec that is known and not offered here."""


class OptionError(KwireError):
    """A wrong option, argument or setting; the message names it and what would be right."""


class LogError(KwireError):
    """A log directory or one of its files cannot be used. file: path or URL."""

    def __init__(self, what: str, file: str | None = None) -> None:
        super().__init__(what, file)
        self.what, self.file = what, file

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" if self.file else self.what


class UnsafePath(KwireError):
    """A name from the input would be written outside the folder asked for. folder: the one asked for."""

    def __init__(self, what: str, folder: str) -> None:
        super().__init__(what, folder)
        self.what, self.folder = what, folder

    def __str__(self) -> str:
        return f"{self.folder}: {self.what}"


class BrokerError(KwireError):
    """A broker answered with a protocol error. code: Kafka's int16 error code."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what, code)
        self.what, self.code = what, code

    def __str__(self) -> str:
        return f"{self.what} (error code {self.code})"


class ConnectionFailed(KwireError):
    """A broker cannot be reached, or a connection to it broke. address: host:port."""

    def __init__(self, what: str, address: str) -> None:
        super().__init__(what, address)
        self.what, self.address = what, address

    def __str__(self) -> str:
        return f"{self.address}: {self.what}"


class JobFailed(KwireError):
    """A job could not do all of its items; the others are done.

    failures: (item, cause), such as ("orders-0", "..."). result: what the job returns when all goes well, of the items
    that are done; None where it was unpickled, since it may hold a session.
    """

    result: object = None

    def __init__(self, what: str, failures: tuple[tuple[str, str], ...]) -> None:
        super().__init__(what, failures)
        self.what, self.failures = what, failures

    def __reduce__(self) -> tuple[type[JobFailed], tuple[str, tuple[tuple[str, str], ...]]]:
        return JobFailed, (self.what, self.failures)

    def __str__(self) -> str:
        return self.what
