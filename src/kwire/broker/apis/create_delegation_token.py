"""CreateDelegationToken (api key 38), versions 0 to 3: create a token for the sender or another owner (KIP-48).

    2  flexible    3  owners other than the sender (KIP-373)

Only a connection with a login, or a client certificate, may ask, and not one that logged in with a token. A token for
another owner needs CREATE_TOKENS of that user.
Source: kafka.server.KafkaApis.handleCreateTokenRequest, DelegationTokenControlManager.createDelegationToken 3.9.1.
"""

from __future__ import annotations

from kwire.broker.authorization import Operation, ResourceType
from kwire.broker.context import ANONYMOUS, Peer, RequestContext
from kwire.broker.node import Node
from kwire.broker.security import Security
from kwire.errors import BrokerError
from kwire.messages import CreateDelegationTokenRequest, CreateDelegationTokenResponse
from kwire.protocol.error_codes import ErrorCode, refusal

SINCE_REQUESTER = 3
NO_TIME = -1


def handle(node: Node, context: RequestContext, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    """Create the token."""
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = f"{request.owner_principal_type}:{request.owner_principal_name}"
    response = CreateDelegationTokenResponse(
        issue_timestamp_ms=NO_TIME, expiry_timestamp_ms=NO_TIME, max_timestamp_ms=NO_TIME
    )
    response.principal_type, _, response.principal_name = owner.partition(":")
    if context.api_version >= SINCE_REQUESTER:
        kind, _, name = requester.partition(":")
        response.token_requester_principal_type, response.token_requester_principal_name = kind, name
    try:
        security = check_sender(node, context.peer)
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


def check_sender(node: Node, peer: Peer) -> Security:
    """Return what has the tokens. Raises BrokerError unless the connection may ask for tokens."""
    security, protocol = node.security, peer.security_protocol
    anonymous_tls = protocol == "SSL" and peer.principal == ANONYMOUS
    if security is None or protocol == "PLAINTEXT" or anonymous_tls or peer.is_token_authenticated:
        raise refusal(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "Delegation Token requests are not allowed on PLAINTEXT/1-way SSL channels and on delegation token "
            "authenticated channels.",
        )
    return security
