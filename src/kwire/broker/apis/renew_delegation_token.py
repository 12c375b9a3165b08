"""RenewDelegationToken (api key 39), versions 0 to 2: extend a token up to its maximum lifetime (KIP-48).

    2  flexible

Source: org.apache.kafka.controller.DelegationTokenControlManager.renewDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.create_delegation_token import NO_TIME, check_sender
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    """Extend the token."""
    try:
        tokens = check_sender(node, context.peer).tokens
        expires_at_ms = tokens.renew(request.hmac, context.principal, request.renew_period_ms)
    except BrokerError as error:
        not_allowed = error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # other errors leave the time 0
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIME if not_allowed else 0)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=expires_at_ms)
