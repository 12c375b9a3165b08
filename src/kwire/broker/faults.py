"""What a test wants to go wrong: errors, delays, broken connections, damaged records, on demand.

    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.faults.delay("Fetch", 500)
    broker.faults.drop("Produce", after=True)            the records are written, the answer is lost
    broker.faults.corrupt("Fetch")                       one byte of the records is another

A fault waits for requests of its API (any, with "*") and of its client, and is spent after `times` of them. The first
one that fits is taken; what it asks for happens to that request alone.
"""

from __future__ import annotations

import difflib
import threading
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from kwire.broker.answers import SplicedResponse
from kwire.errors import OptionError
from kwire.messages import registry
from kwire.protocol.error_codes import ErrorCode

__all__ = ["Fault", "Faults"]


@dataclass(slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong. api_key: None for any. times: how often still, None for always."""

    api_key: int | None
    client_id: str = "*"
    times: int | None = 1
    error: ErrorCode | None = None
    delay_ms: int = 0
    drops: bool = False
    after: bool = False
    corrupts: bool = False

    def fits(self, api_key: int, client_id: str) -> bool:
        """Whether it is for such a request."""
        return self.times != 0 and self.api_key in (None, api_key) and fnmatchcase(client_id, self.client_id)


class Faults:
    """The faults of one broker, in the order they were asked for. Any thread may call; nothing is broken by default."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def fail(self, api: str, error: str | int, *, times: int | None = 1, client_id: str = "*") -> None:
        """Answer with an error, by Kafka's name or number, instead of handling the request."""
        self._add(Fault(api_key=parse_api(api), error=parse_error(error), times=times, client_id=client_id))

    def delay(self, api: str, delay_ms: int, *, times: int | None = 1, client_id: str = "*") -> None:
        """Handle the request that much later, by the broker's clock."""
        if delay_ms < 0:
            raise OptionError(f"delay_ms {delay_ms}: milliseconds from 0 on")
        self._add(Fault(api_key=parse_api(api), delay_ms=delay_ms, times=times, client_id=client_id))

    def drop(self, api: str, *, after: bool = False, times: int | None = 1, client_id: str = "*") -> None:
        """Close the connection instead of answering. after: the request is handled, and only its answer is lost."""
        self._add(Fault(api_key=parse_api(api), drops=True, after=after, times=times, client_id=client_id))

    def corrupt(self, api: str = "Fetch", *, times: int | None = 1, client_id: str = "*") -> None:
        """Change a byte of the records that are sent, so that their checksum does not fit."""
        if parse_api(api) != registry.get("FetchRequest").API_KEY:
            raise OptionError(f"{api} sends no records: only Fetch can be corrupted")
        self._add(Fault(api_key=parse_api(api), corrupts=True, times=times, client_id=client_id))

    def clear(self) -> None:
        """Everything works again."""
        with self._lock:
            self._faults.clear()

    @property
    def pending(self) -> list[Fault]:
        """The faults that have not been spent."""
        with self._lock:
            return list(self._faults)

    def _add(self, fault: Fault) -> None:
        if fault.times is not None and fault.times < 1:
            raise OptionError(f"times {fault.times}: from 1 on, or None for always")
        with self._lock:
            self._faults.append(fault)

    def take(self, api_key: int, client_id: str) -> Fault | None:
        """The fault for a request, counted down; None, as nearly always."""
        if not self._faults:
            return None
        with self._lock:
            for fault in self._faults:
                if fault.fits(api_key, client_id):
                    if fault.times is not None:
                        fault.times -= 1
                    self._faults = [each for each in self._faults if each.times != 0]
                    return fault
        return None


def parse_api(name: str) -> int | None:
    """The key of an API by its name, None for "*". Raises OptionError naming the nearest."""
    if name == "*":
        return None
    names = [each.removesuffix("Request") for each in registry.names() if each.endswith("Request")]
    by_lower = {each.lower(): each for each in names}
    known = by_lower.get(name.lower().removesuffix("request"))
    if known is None:
        close = difflib.get_close_matches(name, names, n=1)
        raise OptionError(f"no API is called {name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
    return registry.get(f"{known}Request").API_KEY


def parse_error(error: str | int) -> ErrorCode:
    """An error by Kafka's name or number. Raises OptionError naming the nearest."""
    if isinstance(error, int):
        return ErrorCode(error)
    try:
        return ErrorCode[error.upper()]
    except KeyError:
        close = difflib.get_close_matches(error.upper(), [each.name for each in ErrorCode], n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise OptionError(f"no error is called {error!r}{hint}") from None


def corrupted(body: Any) -> Any:
    """A Fetch response whose records are not what their checksums say; others as they are."""
    if isinstance(body, SplicedResponse):
        return SplicedResponse(
            body=body.body,
            payloads=[[changed(b"".join(read(piece) for piece in payload))] for payload in body.payloads],
        )
    for topic in getattr(body, "responses", ()):
        for partition in topic.partitions:
            if partition.records:
                partition.records = changed(bytes(partition.records))
    return body


def read(piece: Any) -> bytes:
    """The bytes of a piece of an answer."""
    return bytes(piece) if isinstance(piece, bytes | bytearray | memoryview) else bytes(piece.read())


def changed(records: bytes) -> bytes:
    """Records with another last byte."""
    return records[:-1] + bytes([records[-1] ^ 0xFF]) if records else records
