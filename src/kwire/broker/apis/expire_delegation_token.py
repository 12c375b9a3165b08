"""ExpireDelegationToken (api key 40), versions 0 to 2: expire a token, now or later (KIP-48).

    2  flexible

Connections that logged in with the token last until their session ends.
Source: org.apache.kafka.controller.DelegationTokenControlManager.expireDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.create_delegation_token import NO_TIME, check_sender
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    """Change the token's expiry time."""
    try:
        tokens = check_sender(node, context.peer).tokens
        expires_at_ms = tokens.expire(request.hmac, context.principal, request.expiry_time_period_ms)
    except BrokerError as error:
        not_allowed = error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # other errors leave the time 0
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME if not_allowed else 0)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
