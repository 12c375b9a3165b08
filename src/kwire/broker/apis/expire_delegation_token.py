"""ExpireDelegationToken (api key 40), versions 0 to 2: change the expiry time of a token, or expire it now (KIP-48).

    2  flexible

Connections that authenticated with the token stay open until their session ends.

Source: org.apache.kafka.controller.DelegationTokenControlManager.expireDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.steps.token_access import change_expiry
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import ExpireDelegationTokenRequest, ExpireDelegationTokenResponse


def handle(node: Node, context: RequestContext, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    """Change the expiry time of a token."""
    return change_expiry(
        node,
        context,
        ExpireDelegationTokenResponse,
        lambda tokens: tokens.expire(request.hmac, context.principal, request.expiry_time_period_ms),
    )
