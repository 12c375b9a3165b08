"""DescribeClientQuotas (api key 48), versions 0 and 1: the quotas of entities that fit a filter (KIP-546).

    1  flexible

Source: kafka.server.KafkaApis.handleDescribeClientQuotasRequest, org.apache.kafka.image.ClientQuotasImage.describe.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """What is found."""
    if not node.may(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no access to the cluster")
    assert node.security is not None  # a broker has one
    found = node.security.quotas.find(request.components, strict=request.strict)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(entity, reverse=True)
                ],
                values=[
                    DescribeClientQuotasResponse.ValueData(key=key, value=value)
                    for key, value in sorted(quotas.items())
                ],
            )
            for entity, quotas in found.items()
        ],
    )


def error_response(request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    """No entries, rather than none that fit."""
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
