"""RenewDelegationToken (api key 39), versions 0 to 2: extend the expiry time of a token (KIP-48).

    2  flexible

A token cannot be renewed beyond its maximum lifetime.

Source: org.apache.kafka.controller.DelegationTokenControlManager.renewDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.steps.token_access import change_expiry
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import RenewDelegationTokenRequest, RenewDelegationTokenResponse


def handle(node: Node, context: RequestContext, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    """Extend the expiry time of a token."""
    return change_expiry(
        node,
        context,
        RenewDelegationTokenResponse,
        lambda tokens: tokens.renew(request.hmac, context.principal, request.renew_period_ms),
    )
