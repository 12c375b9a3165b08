"""Fault injection for tests: errors, delays, dropped connections and corrupt records.

    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    broker.faults.delay("Fetch", 500)
    broker.faults.drop("Produce", after=True)            the records are written, the response is lost
    broker.faults.corrupt("Fetch")                       the last byte of the records is changed

A fault applies to requests of its API ("*" for any) and client, and is removed after `times` of them. If several faults
match a request, the one added first applies.
"""

from __future__ import annotations

import threading
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.responses import Response, SplicedResponse
from kwire.errors import OptionError, did_you_mean
from kwire.messages import FetchResponse, registry
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from kwire.broker.responses import Piece

__all__ = ["Fault", "Faults"]


class Fault(msgspec.Struct, kw_only=True):
    """An injected fault. api_key: None for any API. times: how many more requests it applies to, None for all."""

    api_key: int | None
    client_id: str = "*"
    times: int | None = 1
    error: ErrorCode | None = None
    delay_ms: int = 0
    drops: bool = False
    after: bool = False
    corrupts: bool = False

    def matches(self, api_key: int, client_id: str) -> bool:
        """Return whether the fault applies to such a request."""
        return self.times != 0 and self.api_key in (None, api_key) and fnmatchcase(client_id, self.client_id)


class Faults:
    """The faults of a broker, in the order they were added; none by default. Thread-safe."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def fail(self, api: str, error: str | int, *, times: int | None = 1, client_id: str = "*") -> None:
        """Respond with an error, given by Kafka's name or number, instead of handling the request."""
        self._add(Fault(api_key=parse_api(api), error=parse_error(error), times=times, client_id=client_id))

    def delay(self, api: str, delay_ms: int, *, times: int | None = 1, client_id: str = "*") -> None:
        """Delay the handling of the request, by the broker's clock."""
        if delay_ms < 0:
            raise OptionError(f"invalid delay_ms {delay_ms}: must be 0 or more")
        self._add(Fault(api_key=parse_api(api), delay_ms=delay_ms, times=times, client_id=client_id))

    def drop(self, api: str, *, after: bool = False, times: int | None = 1, client_id: str = "*") -> None:
        """Close the connection instead of responding. after: handle the request first, so only its response is lost."""
        self._add(Fault(api_key=parse_api(api), drops=True, after=after, times=times, client_id=client_id))

    def corrupt(self, api: str = "Fetch", *, times: int | None = 1, client_id: str = "*") -> None:
        """Change a byte of the records in the response, so that their checksum does not match."""
        if parse_api(api) != FetchResponse.API_KEY:
            raise OptionError(f"cannot corrupt '{api}': only Fetch responses carry records")
        self._add(Fault(api_key=parse_api(api), corrupts=True, times=times, client_id=client_id))

    def clear(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    @property
    def pending(self) -> list[Fault]:
        """The faults that still apply to future requests."""
        with self._lock:
            return list(self._faults)

    def _add(self, fault: Fault) -> None:
        if fault.times is not None and fault.times < 1:
            raise OptionError(f"invalid times {fault.times}: must be 1 or more, or None for no limit")
        with self._lock:
            self._faults.append(fault)

    def take(self, api_key: int, client_id: str) -> Fault | None:
        """Return the fault that applies to a request and count it, or None."""
        if not self._faults:
            return None
        with self._lock:
            for fault in self._faults:
                if fault.matches(api_key, client_id):
                    if fault.times is not None:
                        fault.times -= 1
                    self._faults = [each for each in self._faults if each.times != 0]
                    return fault
        return None


def parse_api(name: str) -> int | None:
    """Return the key of an API by name, None for "*". Raises OptionError with a suggestion for an unknown name."""
    if name == "*":
        return None
    names = [each.removesuffix("Request") for each in registry.names() if each.endswith("Request")]
    by_lower = {each.lower(): each for each in names}
    known = by_lower.get(name.lower().removesuffix("request"))
    if known is None:
        raise OptionError(f"unknown API {name!r}{did_you_mean(name, names)}")
    return registry.get(f"{known}Request").API_KEY


def parse_error(error: str | int) -> ErrorCode:
    """Return the error of Kafka's name or number. Raises OptionError with a suggestion for an unknown name."""
    if isinstance(error, int):
        return ErrorCode(error)
    try:
        return ErrorCode[error.upper()]
    except KeyError:
        hint = did_you_mean(error, [each.name for each in ErrorCode])
        raise OptionError(f"unknown error {error!r}{hint}") from None


def corrupt_records(response: Response) -> Response:
    """Change the records of a Fetch response so that their checksum does not match. Other responses are unchanged."""
    if isinstance(response, SplicedResponse):
        return SplicedResponse(
            body=response.body,
            payloads=[[flip_last_byte(b"".join(map(read, payload)))] for payload in response.payloads],
        )
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.records:
                    partition.records = flip_last_byte(bytes(partition.records))
    return response


def read(piece: Piece) -> bytes:
    """Return the bytes of a piece of a response."""
    return bytes(piece if isinstance(piece, bytes | bytearray | memoryview) else piece.read())


def flip_last_byte(records: bytes) -> bytes:
    """Invert the last byte of records."""
    return records[:-1] + bytes([records[-1] ^ 0xFF]) if records else records
