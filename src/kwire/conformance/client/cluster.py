"""The scripted cluster: kwire's broker behind ports on which a script changes what it says.

A Front accepts the connections of one scenario, on a port for each node that the cluster seems to have, and passes each
to the broker. It decodes every request strictly and keeps it, applies the script's rules, and names itself wherever
a response names nodes. Leaders and coordinators are where `leaders` and `coordinator` say; requests to other nodes get
the errors that they get in a real cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
import time
from collections.abc import Awaitable, Coroutine
from typing import Any, Self, TypeVar

from kwire.broker import Broker
from kwire.conformance.client.exchange import Exchange
from kwire.conformance.client.placement import LOCALHOST, Placement
from kwire.conformance.client.script import Delivery, Rule, Script, failed, served_versions
from kwire.errors import KwireError
from kwire.messages import ResponseHeader
from kwire.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.requests import (
    Request,
    read_request,
    read_response,
    request_key,
    response_codec,
)

__all__ = ["Front", "Loop"]

MAX_FRAME_BYTES = 64 << 20
LENGTH = struct.Struct(">i")
API_VERSIONS, SASL_HANDSHAKE = 18, 17
MAX_EXCHANGES = 20_000

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, which all fronts of a run share; a context manager."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="kwire conformance", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()


class Front:
    """The cluster that one scenario shows; a context manager.

    versions: API key -> range that is listed and served instead of the broker's; None removes the API.
    sessions: whether Fetch sessions are granted. listener: the broker's, to which connections are passed.
    faults: of the script itself.
    """

    def __init__(self, loop: Loop, broker: Broker, *, nodes: int = 1) -> None:
        self._loop, self._broker = loop, broker
        self.script = Script()
        self.placement = Placement(nodes)
        self.versions: dict[int, tuple[int, int] | None] = {}
        self.hides_features = False
        self.sessions = False
        self.listener = "PLAINTEXT"
        self.exchanges: list[Exchange] = []
        self.connections = 0
        self.faults: list[str] = []
        self.opened: list[float] = []
        self._servers: dict[int, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: dict[asyncio.StreamWriter, int] = {}

    def __enter__(self) -> Self:
        for node in self.placement.nodes:
            self._loop.run(self._listen(node))
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._close())

    @property
    def bootstrap(self) -> str:
        """The address of the first node."""
        return f"{LOCALHOST}:{self.placement.ports[self.placement.nodes[0]]}"

    async def _listen(self, node: int) -> None:
        server = await asyncio.start_server(lambda r, w: self._accept(node, r, w), LOCALHOST, 0)
        self._servers[node] = server
        self.placement.ports[node] = server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        for server in self._servers.values():
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_node(self, node: int) -> None:
        """End the connections of a node and refuse new ones; in the loop's thread, as from a rule."""
        self._servers[node].close()
        self.drop_connections(node)

    def drop_connections(self, node: int | None = None) -> None:
        """End connections; in the loop's thread, as from a rule."""
        for writer, at in list(self._writers.items()):
            if node in (None, at):
                writer.transport.abort()

    # One connection

    def _accept(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.opened.append(time.monotonic())
        task = asyncio.ensure_future(self._serve(node, self.connections, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, node: int, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = node
        upstream: asyncio.StreamWriter | None = None
        reading: asyncio.Future[None] | None = None
        try:
            endpoint = self._broker.node.endpoints[self.listener]
            try:
                source, upstream = await asyncio.open_connection(endpoint[0] or LOCALHOST, endpoint[1], limit=1 << 20)
            except OSError as error:
                self.faults.append(f"no connection to kwire's broker: {error}")
                return
            arrived: asyncio.Queue[tuple[bytes | None, float]] = asyncio.Queue()
            reading = asyncio.ensure_future(_read_ahead(reader, arrived))
            while (next_one := await arrived.get())[0] is not None:
                frame, at = next_one
                assert frame is not None
                if not await self._exchange(self._read(node, number, frame, at), writer, source, upstream):
                    break
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Exception as error:  # of the script, or of the broker behind it: not the program's fault
            self.faults.append(f"{type(error).__name__}: {error}")
        finally:
            self._writers.pop(writer, None)
            if reading is not None:
                reading.cancel()
            for each in (writer, upstream):
                if each is not None:
                    each.close()

    async def _exchange(
        self,
        exchange: Exchange,
        writer: asyncio.StreamWriter,
        source: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
    ) -> bool:
        """Handle a request. Returns whether the connection stays open."""
        if len(self.exchanges) < MAX_EXCHANGES:
            self.exchanges.append(exchange)
        request = exchange.request
        if request is None:
            exchange.shut_at = time.monotonic()
            return False
        rules = self.script.take(exchange)
        for rule in rules:
            if rule.then is not None:
                rule.then(exchange)
        body = self._own_reply(exchange, rules)
        if isinstance(body, Awaitable):
            body = await body
        delivery = next((rule.delivery for rule in rules if rule.delivery is not None), None) or Delivery()
        if body is None and not any(rule.unhandled for rule in rules):
            upstream.write(self.placement.forwarded(exchange))
            await upstream.drain()
            if request.expects_reply:
                answer = await _read_frame(source)
                if answer is None:
                    exchange.shut_at = time.monotonic()
                    return False
                body = read_response(answer, request, lenient=True).body
                self._rewrite(exchange, body)
        for rule in rules:
            if rule.change is not None and body is not None:
                changed = rule.change(exchange, body)
                body = body if changed is None else changed
        if delivery.closes:
            exchange.shut_at = time.monotonic()
            return False
        if delivery.silent:
            await asyncio.Event().wait()
        if body is not None and request.expects_reply:
            return await self._send(exchange, body, rules, delivery, writer)
        return True

    async def _send(
        self, exchange: Exchange, body: Any, rules: list[Rule], delivery: Delivery, writer: asyncio.StreamWriter
    ) -> bool:
        request = exchange.request
        assert request is not None
        header = ResponseHeader(correlation_id=request.correlation_id)
        header.unknown_tagged_fields = [tag for rule in rules for tag in rule.header_tags]
        version = request.response_version
        if exchange.api_key == API_VERSIONS and body.error_code == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
        data = response_codec(exchange.api_key, version).encode((header, body))
        for rule in rules:
            if rule.encoded is not None:
                data = rule.encoded(data)
        if delivery.delay_s:
            await asyncio.sleep(delivery.delay_s)
        exchange.response, exchange.response_frame, exchange.response_version = body, data, version
        exchange.answered_at = time.monotonic()
        if delivery.cut_bytes is not None:
            writer.write(data[: delivery.cut_bytes])
            await writer.drain()
            exchange.shut_at = time.monotonic()
            return False
        step = delivery.chunk_bytes or len(data)
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            if delivery.pause_s:
                await asyncio.sleep(delivery.pause_s)
        return True

    def _read(self, node: int, number: int, frame: bytes, at: float) -> Exchange:
        """Decode a request as strictly as its definition is."""
        exchange = Exchange(node=node, connection=number, frame=frame, at=at)
        try:
            api_key, exchange.version = request_key(frame)
        except KwireError as error:
            exchange.problem = str(error)
            return exchange
        exchange.api_key, version = api_key, exchange.version
        try:
            exchange.request = read_request(frame)
        except KwireError as error:
            exchange.problem = f"{exchange.api} {version}: {error}"
            with contextlib.suppress(KwireError):
                exchange.request = read_request(frame, lenient=True, allow_trailing=True)
        if exchange.request is not None and api_key != API_VERSIONS:
            served = self.served(api_key)
            if served is None or not served[0] <= version <= served[1]:
                exchange.problem = f"{exchange.api} {version} is not in ApiVersions"
                exchange.request = None
        return exchange

    def served(self, api_key: int) -> tuple[int, int] | None:
        """Return the versions that are listed and served."""
        return self.versions.get(api_key, served_versions().get(api_key))

    def _own_reply(self, exchange: Exchange, rules: list[Rule]) -> Any:
        """Return the response of a rule, or of a cluster of several nodes; None if the broker has to respond."""
        error = self.placement.refusal(exchange)
        if error is not None:
            return failed(exchange, error)
        for rule in rules:
            if rule.reply is not None:
                return rule.reply(exchange)
        served = self.served(API_VERSIONS)
        if exchange.api_key == API_VERSIONS and served is not None and not served[0] <= exchange.version <= served[1]:
            exchange.request = _of_unknown_version(exchange.request)
            listed = ApiVersion(api_key=API_VERSIONS, min_version=served[0], max_version=served[1])
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[listed])
        return None

    def _rewrite(self, exchange: Exchange, body: Any) -> None:
        """Change what the broker says about itself."""
        self.placement.rewrite(exchange, body)
        if exchange.api == "ApiVersions":
            self._list_versions(exchange, body)
        elif exchange.api == "Fetch" and not self.sessions:
            body.session_id = 0

    def _list_versions(self, exchange: Exchange, body: Any) -> None:
        listed = {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}
        changed = {**listed, **{key: each for key, each in self.versions.items() if each is not None}}
        if not body.error_code:
            body.api_keys = [
                ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in sorted(changed.items())
                if self.versions.get(key, ()) is not None
            ]
        if self.hides_features:
            body.supported_features, body.finalized_features = [], []
            body.finalized_features_epoch = -1


def _of_unknown_version(request: Request | None) -> Request | None:
    if request is None:
        return None
    return Request(
        api_key=request.api_key,
        version=request.version,
        header=request.header,
        body=None,
        expects_reply=True,
        size_bytes=request.size_bytes,
    )


async def _read_ahead(reader: asyncio.StreamReader, arrived: asyncio.Queue[tuple[bytes | None, float]]) -> None:
    """Note when each request arrives, also while an earlier one waits for its response; None is the end."""
    try:
        while (frame := await _read_frame(reader)) is not None:
            arrived.put_nowait((frame, time.monotonic()))
    except (OSError, asyncio.IncompleteReadError):
        pass
    arrived.put_nowait((None, time.monotonic()))


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """Read a frame with its length; None at the end of the stream."""
    try:
        head = await reader.readexactly(LENGTH.size)
    except asyncio.IncompleteReadError:
        return None
    (size,) = LENGTH.unpack(head)
    if not 0 <= size <= MAX_FRAME_BYTES:
        return head  # not Kafka's protocol; request_key says so
    return head + await reader.readexactly(size)
