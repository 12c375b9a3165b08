"""AlterUserScramCredentials (api key 51), version 0: make, replace and delete credentials, a result a user (KIP-554).

Source: kafka.server.ControllerApis.handleAlterUserScramCredentials, org.apache.kafka.controller.ScramControlManager.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse
from kwire.protocol.error_codes import ErrorCode, refusal

Result = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def handle(
    node: Node, context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Carry out what can be."""
    if not node.may(context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no access to the cluster")
    assert node.security is not None  # a broker has one
    outcome = node.security.credentials.alter(request.deletions, request.upsertions)
    return AlterUserScramCredentialsResponse(
        results=[
            Result(user=user, error_message=None)
            if error is None
            else Result(user=user, error_code=error.code, error_message=error.what)
            for user, error in outcome.items()
        ]
    )


def error_response(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str
) -> AlterUserScramCredentialsResponse:
    """The same error for every user."""
    users = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=[Result(user=user, error_code=code, error_message=message) for user in users]
    )
