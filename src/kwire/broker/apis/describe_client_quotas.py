"""DescribeClientQuotas (api key 48), versions 0 and 1: list the quotas of entities that match a filter (KIP-546).

    1  flexible

Source: kafka.server.KafkaApis.handleDescribeClientQuotasRequest, org.apache.kafka.image.ClientQuotasImage.describe.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.messages import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from kwire.protocol.error_codes import ErrorCode

ORDER = ("connection_creation_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage")
"""The keys, less producer_byte_rate, as Kafka's hash map lists up to three of a new entity; tests of clients see it."""


def place_of(quota: tuple[str, float]) -> int:
    """Return the place of a quota in the list of its entity."""
    return ORDER.index(quota[0]) if quota[0] in ORDER else len(ORDER)


def handle(node: Node, context: RequestContext, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """List the matching quotas."""
    node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER)
    matching = node.security.quotas.find(request.components, strict=request.strict)
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            DescribeClientQuotasResponse.EntryData(
                entity=[
                    DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
                    for kind, name in sorted(entity)
                ],
                values=[
                    DescribeClientQuotasResponse.ValueData(key=key, value=value)
                    for key, value in sorted(quotas.items(), key=place_of)
                ],
            )
            for entity, quotas in matching.items()
        ],
    )


def error_response(request: DescribeClientQuotasRequest, code: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    """Build an error response; its entries are null."""
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
