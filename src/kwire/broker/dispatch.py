"""Dispatch of requests: call their handlers, turn exceptions into error responses.

A request for an API or version that is not served ends the connection, as in Kafka. The exception is ApiVersions: an
unknown version gets a response in version 0 (KIP-511). A BrokerError raised by a handler becomes a response with its
error code. Any other exception is logged and becomes UNKNOWN_SERVER_ERROR, so one failing request affects no other.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from kwire.broker.apis import Handler, handler
from kwire.broker.context import Peer, RequestContext
from kwire.broker.node import Node
from kwire.broker.responses import Response, SplicedResponse
from kwire.errors import BrokerError, KwireError
from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.protocol.requests import Request

if TYPE_CHECKING:
    from kwire.broker.faults.effects import Delivery

__all__ = ["Call", "call_handler", "completed_response", "error_response", "make_call"]

log = logging.getLogger("kwire.broker")

UNEXPECTED = "The server experienced an unexpected error when processing the request."
"""Kafka's message for UNKNOWN_SERVER_ERROR. The exception may name files or data, so it is only logged."""


class Call:
    """A decoded request with its handler and sender.

    request: None for ApiVersions in an unknown version. delivery: how the response is sent, if a fault changes that.
    """

    __slots__ = ("context", "delivery", "expects_reply", "handler", "request", "response_version")

    def __init__(
        self,
        handler: Handler,
        context: RequestContext,
        request: Message | None,
        expects_reply: bool,
        response_version: int,
    ) -> None:
        self.handler, self.context, self.request = handler, context, request
        self.expects_reply, self.response_version = expects_reply, response_version
        self.delivery: Delivery | None = None


def make_call(request: Request, peer: Peer) -> Call:
    """Return the call of a request's handler."""
    context = RequestContext(
        peer=peer,
        api_key=request.api_key,
        api_version=request.version,
        correlation_id=request.correlation_id,
        client_id=request.client_id,
        request_bytes=request.size_bytes,
    )
    return Call(handler(request.api_key), context, request.body, request.expects_reply, request.response_version)


def call_handler(node: Node, call: Call) -> Response | asyncio.Future[Response | None]:
    """Call the handler; returns its response or a future of it."""
    try:
        response = call.handler.handle(node, call.context, call.request)
    except Exception as error:
        return error_response(call, error)
    if isinstance(response, Message | SplicedResponse):
        return response
    future: asyncio.Future[Response | None] = asyncio.ensure_future(response)
    return future


def completed_response(call: Call, future: asyncio.Future[Response | None]) -> Response | None:
    """Return the response of a future that is done and was not cancelled; an error response if it failed."""
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, Exception):
        raise error
    return error_response(call, error)


def error_response(call: Call, error: Exception) -> Message:
    """Build the response to a request that failed as a whole."""
    context = call.context
    code, message = ErrorCode.UNKNOWN_SERVER_ERROR, UNEXPECTED
    if isinstance(error, BrokerError):
        code = ErrorCode(error.code)
        message = error.what
    elif isinstance(error, KwireError):
        log.error("api %s version %s: %s", context.api_key, context.api_version, error)
    else:
        log.error("api %s version %s failed", context.api_key, context.api_version, exc_info=error)
    build = getattr(call.handler, "error_response", None)
    if build is not None:
        return cast("Message", build(call.request, code, message))
    cls = registry.response(context.api_key)
    names = cls.__struct_fields__
    values: dict[str, Any] = {"error_code": int(code)} if "error_code" in names else {}
    if "error_message" in names:
        values["error_message"] = message
    if not values:
        log.error("api %s: response has no field for error %s: %s", context.api_key, code.name, message)
    return cls(**values)
