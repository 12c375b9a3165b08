"""SaslHandshake (api key 17), versions 0 and 1: choose a SASL mechanism.

    0  bare tokens follow, in frames without headers    1  SaslAuthenticate requests follow (KIP-152)

ILLEGAL_SASL_STATE: the listener does not use SASL, the session does not expire, or the previous handshake was less than
a second ago.

Source: SaslServerAuthenticator.handleHandshakeRequest, kafka.server.KafkaApis.handleSaslHandshakeRequest.
"""

from __future__ import annotations

from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.errors import AuthenticationFailed
from kwire.errors import BrokerError
from kwire.messages import SaslHandshakeRequest, SaslHandshakeResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Begin authentication with the client's mechanism, or return the enabled ones."""
    session = node.security.session(context.peer)
    if session is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = list(node.security.mechanisms)
    try:
        session.handshake(request.mechanism, context.api_version)
    except AuthenticationFailed as error:
        context.peer.must_close_silently = error.is_silent
        return SaslHandshakeResponse(error_code=error.code, mechanisms=mechanisms)
    except BrokerError as error:
        context.peer.must_close |= error.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=error.code, mechanisms=mechanisms)
    return SaslHandshakeResponse(mechanisms=mechanisms)
