"""SaslHandshake (api key 17), versions 0 and 1: by which mechanism the client will log in.

    0  bare tokens follow, in frames without headers    1  SaslAuthenticate requests follow (KIP-152)

On a connection that needs no login, or has one that does not end, it is ILLEGAL_SASL_STATE; so is the second one within
a second.
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
    """Which mechanisms there are, and whether the client's is one."""
    security = node.security
    session = None if security is None else security.session(context.peer)
    if security is None or session is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = list(security.mechanisms)
    try:
        session.handshake(request.mechanism, context.api_version)
    except AuthenticationFailed as error:
        context.peer.must_close_silently = error.is_silent
        return SaslHandshakeResponse(error_code=error.code, mechanisms=mechanisms)
    except BrokerError as error:
        context.peer.must_close |= error.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        return SaslHandshakeResponse(error_code=error.code, mechanisms=mechanisms)
    return SaslHandshakeResponse(mechanisms=mechanisms)
