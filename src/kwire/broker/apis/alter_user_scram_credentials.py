"""AlterUserScramCredentials (api key 51), version 0: set and delete SCRAM credentials (KIP-554).

The response has a result for each user.

Source: kafka.server.ControllerApis.handleAlterUserScramCredentials, org.apache.kafka.controller.ScramControlManager.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from kwire.protocol.error_codes import ErrorCode

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(
    node: Node, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Apply the valid changes."""
    node.authorize(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER)
    errors = node.security.credentials.alter(request.deletions, request.upsertions)
    return AlterUserScramCredentialsResponse(
        results=[
            Result(user=user, error_message=None)
            if error is None
            else Result(user=user, error_code=error.code, error_message=error.what)
            for user, error in errors.items()
        ]
    )


def error_response(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str
) -> AlterUserScramCredentialsResponse:
    """Build a response with the same error for every user."""
    users = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=[Result(user=user, error_code=code, error_message=message) for user in users]
    )
