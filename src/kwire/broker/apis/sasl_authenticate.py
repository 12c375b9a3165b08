"""SaslAuthenticate (api key 36), versions 0 to 2: exchange a token of the SASL mechanism.

    1  session lifetime (KIP-368)    2  flexible

If authentication fails, the response is delayed by connection.failed.authentication.delay.ms, to slow down guessing,
and the connection is closed. For OAUTHBEARER, the response is a token with the reason, and the client ends the exchange
with one more request; Kafka delays only the response to that one.

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
    """Process the client's token and return the broker's next one."""
    session = node.security.session(context.peer)
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
        return delayed(node, SaslAuthenticateResponse(error_code=error.code, error_message=error.what))
    response = SaslAuthenticateResponse(error_message=None, auth_bytes=step.token, session_lifetime_ms=step.lifetime_ms)
    return delayed(node, response) if step.is_refusal else response


def delayed(node: Node, response: SaslAuthenticateResponse) -> asyncio.Future[SaslAuthenticateResponse]:
    """Return a future of a response that completes after the authentication failure delay."""
    future: asyncio.Future[SaslAuthenticateResponse] = asyncio.get_running_loop().create_future()

    def complete() -> None:
        if not future.done():  # cancelled when the client disconnects
            future.set_result(response)

    node.timers.call_later(node.settings.connection_failed_authentication_delay_ms, complete)
    return future
