"""Common part of the delegation token APIs: who may use them, and the response to a change of a token's expiry time.

Source: kafka.server.KafkaApis.allowTokenRequests, DelegationTokenControlManager 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kwire.broker.context import ANONYMOUS, Peer, RequestContext
from kwire.broker.node import Node
from kwire.broker.security import Security
from kwire.broker.security.delegation_tokens import DelegationTokens
from kwire.errors import BrokerError
from kwire.messages import ExpireDelegationTokenResponse, RenewDelegationTokenResponse
from kwire.protocol.error_codes import ErrorCode, refusal

__all__ = ["NO_TIMESTAMP", "change_expiry", "require_token_access"]

NO_TIMESTAMP = -1

ExpiryResponse = TypeVar("ExpiryResponse", RenewDelegationTokenResponse, ExpireDelegationTokenResponse)


def require_token_access(node: Node, peer: Peer) -> Security:
    """Return the node's security. Raises BrokerError unless the connection may use the delegation token APIs."""
    protocol = peer.security_protocol
    anonymous_tls = protocol == "SSL" and peer.principal == ANONYMOUS
    if protocol == "PLAINTEXT" or anonymous_tls or peer.is_token_authenticated:
        raise refusal(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
            "authenticated channels.",
        )
    return node.security


def change_expiry(
    node: Node,
    context: RequestContext,
    response_class: type[ExpiryResponse],
    change: Callable[[DelegationTokens], int],
) -> ExpiryResponse:
    """Renew or expire a token. change: makes the change and returns the new expiry time in milliseconds."""
    try:
        expires_at_ms = change(require_token_access(node, context.peer).tokens)
    except BrokerError as error:
        not_allowed = error.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED  # other errors leave the time 0
        return response_class(error_code=error.code, expiry_timestamp_ms=NO_TIMESTAMP if not_allowed else 0)
    return response_class(expiry_timestamp_ms=expires_at_ms)
