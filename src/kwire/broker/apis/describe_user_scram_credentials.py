"""DescribeUserScramCredentials (api key 50), version 0: who can log in by SCRAM, with how many iterations (KIP-554).

Source: kafka.server.KafkaApis.handleDescribeUserScramCredentialsRequest, org.apache.kafka.image.ScramImage.describe.
"""

from __future__ import annotations

from collections import Counter

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse
from kwire.messages.describe_user_scram_credentials_response import CredentialInfo
from kwire.messages.describe_user_scram_credentials_response import DescribeUserScramCredentialsResult as Result
from kwire.protocol.error_codes import ErrorCode, refusal

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(
    node: Node, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """The users asked for, or all."""
    if not node.may(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no access to the cluster")
    known = {} if node.security is None else node.security.credentials.iterations()
    asked = Counter(user.name for user in request.users or ()) or dict.fromkeys(known, 1)
    return DescribeUserScramCredentialsResponse(
        error_message=None, results=[result(user, times, known.get(user)) for user, times in asked.items()]
    )


def result(user: str, times: int, iterations: dict[int, int] | None) -> Result:
    """One user, asked for so many times."""
    if times > 1:
        return Result(user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=TWICE + user)
    if iterations is None:
        return Result(user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=UNKNOWN + user)
    infos = [CredentialInfo(mechanism=mechanism, iterations=number) for mechanism, number in iterations.items()]
    return Result(user=user, error_message=None, credential_infos=infos)
