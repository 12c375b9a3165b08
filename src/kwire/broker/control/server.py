"""The HTTP server: JSON for programs on this machine, in threads of its own.

Web pages must not reach it: a page of another site can send requests to 127.0.0.1, and a name that its owner points
there passes as the page's own site. So requests with an Origin or from a page (Sec-Fetch-Site) are refused, the Host
must be this machine, and a body must be application/json, which pages cannot send without being asked first.

The number of connections, the number of requests that wait, the size of bodies and the time to send a request are
limited. A client that is slow or waits takes one of the threads, never the broker's.
"""

from __future__ import annotations

import contextlib
import io
import ipaddress
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from kwire.broker.control.routes import ROUTES, Controlled, Missing, check_body, find_route
from kwire.broker.patience import Abandoned
from kwire.errors import BrokerError, KwireError, OptionError
from kwire.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kwire.broker.control.routes import Route

__all__ = ["ControlServer"]

log = logging.getLogger("kwire.broker")

LOCALHOST = "127.0.0.1"
MAX_CONNECTIONS = 64
MAX_WAITS = 48
"""Requests that wait at the same time: the other connections are for those that end what they wait for."""
MAX_REFUSALS = 64
"""Connections beyond the limit that are told so at once."""
BACKLOG = 256
"""Connections that wait to be accepted. A full queue resets them, or delays them by seconds."""
MAX_BODY_BYTES = 1 << 20
REQUEST_S = 10.0
"""Seconds in which a client has to send the whole of its next request."""
REFUSAL_S = 1.0
"""Seconds for the rest of a request that one connection too many sends."""
JSON = "application/json"


class Refused(Exception):
    """A request that is not handled. status: of the response."""

    def __init__(self, status: int, what: str) -> None:
        super().__init__(what)
        self.status = status


class ControlServer:
    """Control of a broker over HTTP, as a context manager. address: its URL.

    host, port: where it listens, 0 for a free port. routes: what can be asked for. Raises OptionError if the address is
    not available.
    """

    def __init__(
        self, broker: Controlled, host: str = LOCALHOST, port: int = 0, routes: Sequence[Route] = ROUTES
    ) -> None:
        self._broker, self._host, self._port, self._routes = broker, host, port, routes
        self._server: _Server | None = None

    @property
    def address(self) -> str:
        """The URL of the server, without a path."""
        if self._server is None:
            raise OptionError("the control server is not running")
        host, port = self._server.server_address[:2]
        name = str(host)
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def __enter__(self) -> ControlServer:
        try:
            self._server = _Server(self._broker, self._host, self._port, self._routes)
        except OSError as error:
            raise OptionError(f"cannot listen on {self._host}:{self._port}: {error.strerror or error}") from None
        threading.Thread(target=self._server.serve_forever, name="kwire control", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = BACKLOG
    block_on_close = False  # a client may be waiting for a fault

    def __init__(self, broker: Controlled, host: str, port: int, routes: Sequence[Route]) -> None:
        self.broker, self.routes = broker, routes
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._refusing = threading.BoundedSemaphore(MAX_REFUSALS)
        self._waits = threading.BoundedSemaphore(MAX_WAITS)
        super().__init__((host, port), _Handler)
        bound = str(self.server_address[0])
        self.is_local = ipaddress.ip_address(bound).is_loopback
        names = ("localhost",) if self.is_local else ("localhost", host, socket.gethostname(), socket.getfqdn())
        self.names = frozenset(name.lower() for name in names)

    def server_bind(self) -> None:
        """Bind without looking up the host's name, as the base class does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a request that waits. Raises Refused if there are too many."""
        if not self._waits.acquire(blocking=False):
            raise Refused(503, f"{MAX_WAITS} requests wait, the most that can: try again when one has ended")
        try:
            yield
        finally:
            self._waits.release()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a connection in a thread, unless there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        elif self._refusing.acquire(blocking=False):
            threading.Thread(target=self._refuse, args=(request,), name="kwire control", daemon=True).start()
        else:  # without a thread to read the request, the response may be lost
            with contextlib.suppress(OSError):
                request.sendall(too_many())
            self.shutdown_request(request)

    def _refuse(self, request: socket.socket) -> None:
        """Say that there are too many connections. Reads what is sent: a reset would take the response away."""
        try:
            with contextlib.suppress(OSError):
                request.settimeout(REFUSAL_S)
                request.sendall(too_many())
                request.shutdown(socket.SHUT_WR)
                deadline = time.monotonic() + REFUSAL_S
                while request.recv(1 << 16) and time.monotonic() < deadline:
                    pass
        finally:
            self.shutdown_request(request)
            self._refusing.release()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what ended a connection; clients may leave at any time."""
        log.debug("control connection from %s failed", client_address, exc_info=True)


def too_many() -> bytes:
    """Return the response to a connection beyond the limit."""
    body = msgspec.json.encode({"error": f"there are {MAX_CONNECTIONS} connections, the most that can be: try again"})
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


class _Incoming(io.RawIOBase):
    """What a client sends, until the deadline of its request. Raises TimeoutError then."""

    def __init__(self, handler: _Handler) -> None:
        self._handler = handler

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is."""
        left = self._handler.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        connection = self._handler.connection
        connection.settimeout(left)
        try:
            return int(connection.recv_into(buffer))
        finally:
            connection.settimeout(REQUEST_S)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = REQUEST_S
    deadline = 0.0
    disable_nagle_algorithm = True
    error_content_type = JSON
    error_message_format = '{"error": "%(message)s"}'

    def setup(self) -> None:
        """Prepare the connection; what is read from it has a deadline."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Incoming(self))

    def handle_one_request(self) -> None:
        """Handle the next request, whose time begins."""
        self.deadline = time.monotonic() + REQUEST_S
        super().handle_one_request()

    def do_GET(self) -> None:
        """Handle a GET."""
        self._respond()

    def do_POST(self) -> None:
        """Handle a POST."""
        self._respond()

    def do_DELETE(self) -> None:
        """Handle a DELETE."""
        self._respond()

    def version_string(self) -> str:
        """Return the value of the Server header."""
        return "kwire"

    def log_message(self, format: str, *args: Any) -> None:
        """Log a request or an error of one."""
        log.debug("control: " + format, *args)

    def _respond(self) -> None:
        status = 200
        try:
            result = self._result()
        except Refused as error:
            self.close_connection = True  # its body may not have been read
            status, result = error.status, {"error": str(error)}
        except Abandoned:
            self.close_connection = True
            return
        except Missing as error:
            status, result = 404, {"error": str(error)}
        except TimeoutError as error:
            status, result = 408, {"error": str(error)}
        except BrokerError as error:
            status, result = 409, {"error": error.what, "code": ErrorCode(error.code).name}
        except OptionError as error:
            status = 400 if self.server.broker.is_running else 503
            result = {"error": str(error)}
        except KwireError as error:
            status, result = 500, {"error": str(error)}
        except Exception as error:
            log.exception("control: %s %s failed", self.command, self.path)
            status, result = 500, {"error": f"{type(error).__name__}: {error}"}
        self._send(status, result)

    def _result(self) -> object:
        data = self._read()  # first, so that a refused client receives the response
        self._check_sender()
        body = self._parse(data)
        url = urlsplit(self.path)
        if self.command == "GET" and url.path == "/openapi.json":
            from kwire.broker.control.openapi import description

            return description(self.server.routes)
        route, names = find_route(self.command, url.path, self.server.routes)
        query = dict(parse_qsl(url.query))
        for name in query:
            if name not in route.query:
                raise OptionError(f"unknown parameter {name!r}, {url.path} has {', '.join(route.query) or 'none'}")
        check_body(route, body)
        values = {**body, **query, **{name: unquote(text) for name, text in names.items()}}
        with self.server.waiting() if route.waits else contextlib.nullcontext():
            return route.run(self.server.broker, values, self._has_left)

    def _has_left(self) -> bool:
        """Return whether the client has closed the connection, or its side of it."""
        try:
            self.connection.settimeout(0)
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(REQUEST_S)

    def _check_sender(self) -> None:
        """Raise Refused for requests of web pages, and for those that a name of someone else has led here."""
        if "Origin" in self.headers or self.headers.get("Sec-Fetch-Site", "none") != "none":
            raise Refused(403, "requests of web pages are refused")
        host = self.headers.get("Host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if not self._is_own_name(name):
            raise Refused(403, f"invalid Host {host!r}: use the address that was printed")

    def _is_own_name(self, name: str) -> bool:
        if name.lower() in self.server.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self.server.is_local

    def _read(self) -> bytes:
        """Read the body. Raises Refused if its length is unclear, or it is too large or incomplete."""
        if "Transfer-Encoding" in self.headers:
            raise Refused(411, "Transfer-Encoding is not supported: send a Content-Length")
        for name in ("Host", "Content-Length"):
            if len(self.headers.get_all(name, [])) > 1:
                raise Refused(400, f"there is more than one {name}")
        text = self.headers.get("Content-Length", "0")
        if not (text.isascii() and text.isdigit()):
            raise Refused(400, f"invalid Content-Length {text!r}")
        size = int(text) if len(text) < 19 else MAX_BODY_BYTES + 1
        if size > MAX_BODY_BYTES:
            raise Refused(413, f"the body has more than {MAX_BODY_BYTES} bytes")
        try:
            data = self.rfile.read(size)
        except TimeoutError:
            raise Refused(408, f"the request was not complete after {REQUEST_S:g} s") from None
        if len(data) < size:
            raise Refused(400, "the body ends early")
        return data

    def _parse(self, data: bytes) -> dict[str, Any]:
        """Return the members of the body, none without one. Raises Refused for another type, OptionError."""
        if not data:
            return {}
        if self.headers.get_content_type() != JSON or "Content-Type" not in self.headers:
            raise Refused(415, f"invalid Content-Type: must be {JSON}")
        try:
            body = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise OptionError(f"the body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise OptionError("the body must be a JSON object")
        return body

    def _send(self, status: int, result: object) -> None:
        data = msgspec.json.encode(result, enc_hook=str)
        self.send_response(status)
        self.send_header("Content-Type", JSON)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
