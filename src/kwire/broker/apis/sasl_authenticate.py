"""SaslAuthenticate (api key 36), versions 0 to 2: a token of the mechanism chosen by SaslHandshake.

    1  how long the session lasts (KIP-368)    2  flexible

A failed login is answered with what went wrong, as far as the client may know, after
connection.failed.authentication.delay.ms, so that guessing takes time; then the connection ends.
Source: SaslServerAuthenticator.handleSaslToken, kafka.server.KafkaApis.handleSaslAuthenticateRequest.
"""

from __future__ import annotations

import asyncio

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.errors import AuthenticationFailed
from kwire.messages import SaslAuthenticateRequest, SaslAuthenticateResponse
from kwire.protocol.error_codes import ErrorCode


def handle(
    node: Node, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | asyncio.Future[SaslAuthenticateResponse]:
    """The broker's next token."""
    session = None if node.security is None else node.security.session(context.peer)
    if session is None or not session.is_open:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    try:
        step = session.take(request.auth_bytes)
    except AuthenticationFailed as error:
        context.peer.must_close = True
        context.peer.must_close_silently = error.is_silent
        return later(node, SaslAuthenticateResponse(error_code=error.code, error_message=error.what))
    return SaslAuthenticateResponse(error_message=None, auth_bytes=step.token, session_lifetime_ms=step.lifetime_ms)


def later(node: Node, response: SaslAuthenticateResponse) -> asyncio.Future[SaslAuthenticateResponse]:
    """The refusal, in a while."""
    answer: asyncio.Future[SaslAuthenticateResponse] = asyncio.get_running_loop().create_future()

    def give() -> None:
        if not answer.done():  # the client has gone
            answer.set_result(response)

    node.timers.call_later(node.settings.connection_failed_authentication_delay_ms, give)
    return answer
