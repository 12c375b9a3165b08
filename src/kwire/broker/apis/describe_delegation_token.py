"""DescribeDelegationToken (api key 41), versions 0 to 3: list delegation tokens with their HMACs (KIP-48).

    2  flexible    3  requester of a token (KIP-373)

A null list of owners selects all. The client sees tokens that it owns or may renew, tokens that it may DESCRIBE, and
tokens of users for which it has DESCRIBE_TOKENS.

Source: kafka.server.KafkaApis.handleDescribeTokensRequest, DelegationTokenManager.filterToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.steps.token_access import require_token_access
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.cluster_state import DelegationToken
from kwire.messages import DescribeDelegationTokenRequest, DescribeDelegationTokenResponse
from kwire.messages.describe_delegation_token_response import DescribedDelegationToken
from kwire.protocol.error_codes import ErrorCode, refusal

REQUESTER_VERSION = 3


def handle(
    node: Node, context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """List the tokens that the client may describe."""
    tokens = require_token_access(node, context.peer).tokens
    if not tokens.is_enabled:
        raise refusal(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, "Delegation Token feature is not enabled.")
    owners = None
    if request.owners is not None:
        owners = [f"{each.principal_type}:{each.principal_name}" for each in request.owners]
    return DescribeDelegationTokenResponse(
        tokens=[
            describe(token, tokens.hmac_of(token.token_id), context.api_version)
            for token in tokens
            if (owners is None or any(token.is_owner_or_renewer(owner) for owner in owners))
            and may_describe(node, context, token)
        ]
    )


def may_describe(node: Node, context: RequestContext, token: DelegationToken) -> bool:
    """Return whether the client may describe a token."""
    return (
        token.is_owner_or_renewer(context.principal)
        or node.may(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or node.may(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def describe(token: DelegationToken, hmac: bytes, version: int) -> DescribedDelegationToken:
    """Describe one token."""
    kind, _, name = token.owner.partition(":")
    result = DescribedDelegationToken(
        principal_type=kind,
        principal_name=name,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac,
    )
    for renewer in token.renewers:
        kind, _, name = renewer.partition(":")
        result.renewers.append(
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(principal_type=kind, principal_name=name)
        )
    if version >= REQUESTER_VERSION:
        kind, _, name = token.requester.partition(":")
        result.token_requester_principal_type, result.token_requester_principal_name = kind, name
    return result
