"""From a frame to its answer: which handler, what when there is none, what when it fails.

An API or version that is not served ends the connection, as Kafka does it; ApiVersions is answered in version 0 instead
(KIP-511). A BrokerError of a handler becomes the response with that error code; any other exception is logged and
becomes UNKNOWN_SERVER_ERROR, so that one bad request never takes others along.
"""

from __future__ import annotations

import asyncio
import logging
from types import ModuleType
from typing import Any

from kwire.broker import apis
from kwire.broker.answers import SplicedResponse
from kwire.broker.context import Peer, RequestContext
from kwire.broker.faults import Fault, corrupted
from kwire.broker.node import Node
from kwire.errors import BrokerError, KwireError, Malformed, UnsupportedVersion
from kwire.messages import RequestHeader, registry
from kwire.messages.base import Message
from kwire.plan import Codec
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.frames import request_codec, request_key

__all__ = ["Call", "answer", "outcome", "read_request", "refuse"]

log = logging.getLogger("kwire.broker")

API_VERSIONS = 18
PRODUCE = 0
VIEWED = frozenset({PRODUCE})
"""APIs whose request is read without copying its bytes: the frame is kept until their response is there."""

UNEXPECTED = "The server experienced an unexpected error when processing the request."
"""Kafka's text for UNKNOWN_SERVER_ERROR. The exception itself may name files or data, so only the log has it."""


class Call:
    """A request on its way: what was asked, and by whom. request is None for ApiVersions of an unknown version."""

    __slots__ = ("context", "expects_reply", "module", "request", "response_version")

    def __init__(
        self, module: ModuleType, context: RequestContext, request: Any, expects_reply: bool, response_version: int
    ) -> None:
        self.module, self.context, self.request = module, context, request
        self.expects_reply, self.response_version = expects_reply, response_version


def read_request(frame: bytes | memoryview, peer: Peer) -> Call:
    """The request in a frame with its length. Raises DecodeError, UnsupportedVersion: the connection has to end."""
    api_key, version = request_key(bytes(frame[:8]))
    numbers = apis.served().get(api_key)
    if numbers is None:
        raise UnsupportedVersion(f"request with api key {api_key}, which is not served here")
    _, lowest, highest = numbers
    if lowest <= version <= highest:
        header, request = decode(request_codec(api_key, version), frame, api_key in VIEWED)
        expects_reply = api_key != PRODUCE or request.acks != 0
        response_version = version
    elif api_key == API_VERSIONS:
        header, _ = RequestHeader.decode_from(frame, 4, version=RequestHeader.VALID_VERSIONS.highest)
        request, expects_reply, response_version = None, True, 0
    else:
        raise UnsupportedVersion(f"request with api key {api_key} version {version}, served are {lowest} to {highest}")
    context = RequestContext(
        peer=peer,
        api_key=api_key,
        api_version=version,
        correlation_id=header.correlation_id,
        client_id=header.client_id or "",
        request_bytes=len(frame),
    )
    return Call(apis.handler(api_key), context, request, expects_reply, response_version)


def decode(codec: Codec, frame: bytes | memoryview, views: bool) -> Any:
    """(header, request). Bytes behind them are let pass, as Kafka does: librdkafka's Metadata requests have some."""
    try:
        return codec.decode(frame, views, True)
    except Malformed as error:
        if not error.what.endswith("left over"):
            raise
        end = error.position
        return codec.decode((end - 4).to_bytes(4, "big") + bytes(frame[4:end]), views, True)


def answer(node: Node, call: Call) -> Any:
    """The response's body, or a future of it; `outcome` takes the body from a future that is done."""
    known = call.request is not None  # an ApiVersions of an unknown version is only told which are known
    fault = node.faults.take(call.context.api_key, call.context.client_id) if known else None
    return handled(node, call) if fault is None else spoiled(node, call, fault)


def handled(node: Node, call: Call) -> Any:
    """What the handler says."""
    try:
        found = call.module.handle(node, call.context, call.request)
    except Exception as error:
        return refuse(call, error)
    return found if isinstance(found, Message | SplicedResponse) else asyncio.ensure_future(found)


def spoiled(node: Node, call: Call, fault: Fault) -> Any:
    """The same with what a test wants to go wrong."""
    if fault.error is not None:
        return refuse(call, BrokerError("a fault that a test asked for", fault.error))
    if fault.drops:
        call.expects_reply, call.context.peer.must_close = False, True
        if not fault.after:
            return None

    async def later() -> Any:
        if fault.delay_ms:
            due = asyncio.Event()
            node.timers.call_later(fault.delay_ms, due.set)
            await due.wait()
        found = handled(node, call)
        body = await found if isinstance(found, asyncio.Future) else found
        return corrupted(body) if fault.corrupts else body

    return asyncio.ensure_future(later())


def outcome(call: Call, done: asyncio.Future[Any]) -> Any:
    """The response's body out of a future that is done and was not cancelled."""
    error = done.exception()
    if error is None:
        return done.result()
    if not isinstance(error, Exception):
        raise error
    return refuse(call, error)


def refuse(call: Call, error: Exception) -> Any:
    """The response for a request that failed as a whole."""
    context = call.context
    code, what = ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED
    if isinstance(error, BrokerError):
        code = ErrorCode(error.code)
        what = error.what
    elif isinstance(error, KwireError):
        log.error("api %s version %s: %s", context.api_key, context.api_version, error)
    else:
        log.error("api %s version %s failed", context.api_key, context.api_version, exc_info=error)
    make = getattr(call.module, "refuse", None)
    if make is not None:
        return make(call.request, code, what)
    cls = registry.response(context.api_key)
    names = cls.__struct_fields__
    values: dict[str, Any] = {"error_code": int(code)} if "error_code" in names else {}
    if "error_message" in names:
        values["error_message"] = what
    if not values:
        log.error("api %s has no place for error %s: %s", context.api_key, code.name, what)
    return cls(**values)
