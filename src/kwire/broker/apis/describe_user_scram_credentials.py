"""DescribeUserScramCredentials (api key 50), version 0: list SCRAM users, mechanisms and iteration counts (KIP-554).

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
from kwire.protocol.error_codes import ErrorCode

TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


def handle(
    node: Node, context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe the requested users, or all."""
    node.authorize(context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER)
    known = node.security.credentials.iterations()
    counts = Counter(user.name for user in request.users or ()) or dict.fromkeys(known, 1)
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[result(user, count, known.get(user)) for user, count in counts.items()]
    )


def error_response(
    request: DescribeUserScramCredentialsRequest, code: ErrorCode, message: str
) -> DescribeUserScramCredentialsResponse:
    """Build an error response, with the error in a result without a user too, as Kafka does."""
    results = [Result(error_code=code, error_message=message)]
    return DescribeUserScramCredentialsResponse(error_code=code, error_message=message, results=results)


def result(user: str, count: int, iterations: dict[int, int] | None) -> Result:
    """Describe one user. count: occurrences in the request; iterations: by mechanism, None for an unknown user."""
    if count > 1:
        return Result(user=user, error_code=ErrorCode.DUPLICATE_RESOURCE, error_message=TWICE + user)
    if iterations is None:
        return Result(user=user, error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message=UNKNOWN + user)
    infos = [CredentialInfo(mechanism=mechanism, iterations=number) for mechanism, number in iterations.items()]
    return Result(user=user, error_message=None, credential_infos=infos)
