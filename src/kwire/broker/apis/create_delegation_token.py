"""CreateDelegationToken (api key 38), versions 0 to 3: create a token for the client or another owner (KIP-48).

    2  flexible    3  owners other than the client (KIP-373)

Requires a SASL login or a client certificate; a connection that authenticated with a token may not create tokens. A
token for another owner requires CREATE_TOKENS on that user.

Source: kafka.server.KafkaApis.handleCreateTokenRequest, DelegationTokenControlManager.createDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.steps.token_access import NO_TIMESTAMP, require_token_access
from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kwire.protocol.error_codes import ErrorCode, refusal

REQUESTER_VERSION = 3


def handle(node: Node, context: RequestContext, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """Create the token."""
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=NO_TIMESTAMP, expiry_timestamp_ms=NO_TIMESTAMP, max_timestamp_ms=NO_TIMESTAMP
    )
    response.principal_type, _, response.principal_name = owner.partition(":")
    if context.api_version >= REQUESTER_VERSION:
        kind, _, name = requester.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    try:
        security = require_token_access(node, context.peer)
        if owner != requester and not node.may(context, Operation.CREATE_TOKENS, ResourceType.USER, owner):
            raise refusal(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, "Delegation Token authorization failed.")
        renewers = ((each.principal_type, each.principal_name) for each in request.renewers)
        token = security.tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except BrokerError as error:
        response.error_code = error.code
        return response
    response.issue_timestamp_ms, response.max_timestamp_ms = token.issue_timestamp, token.max_timestamp
    response.expiry_timestamp_ms = token.expiration_timestamp
    response.token_id, response.hmac = token.token_id, security.tokens.hmac_of(token.token_id)
    return response
