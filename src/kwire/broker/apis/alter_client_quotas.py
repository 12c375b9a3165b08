"""AlterClientQuotas (api key 49), versions 0 and 1: set and remove quotas, with a result for each entity (KIP-546).

    1  flexible

Changes apply from the next request. connection_creation_rate is stored but not enforced.

Source: kafka.server.ControllerApis.handleAlterClientQuotas, org.apache.kafka.controller.ClientQuotaControlManager.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.security.quotas import Quotas
from kwire.errors import BrokerError
from kwire.messages import AlterClientQuotasRequest, AlterClientQuotasResponse
from kwire.messages.alter_client_quotas_request import EntryData
from kwire.messages.alter_client_quotas_response import EntryData as EntryResult
from kwire.protocol.error_codes import ErrorCode


def handle(node: Node, context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Alter the quotas of each entity."""
    node.authorize(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER)
    quotas = node.security.quotas
    return AlterClientQuotasResponse(entries=[alter(quotas, entry, request.validate_only) for entry in request.entries])


def alter(quotas: Quotas, entry: EntryData, validate_only: bool) -> EntryResult:
    """Alter the quotas of one entity."""
    parts = [(part.entity_type, part.entity_name) for part in entry.entity]
    try:
        quotas.alter(parts, entry.ops, validate_only=validate_only)
    except BrokerError as error:
        return result(entry, ErrorCode(error.code), error.what)
    return result(entry, ErrorCode.NONE, None)


def result(entry: EntryData, code: ErrorCode, what: str | None) -> EntryResult:
    """Build the result of one entity, with the client id before the user as in Kafka's hash maps."""
    return EntryResult(
        error_code=code,
        error_message=what,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in sorted(entry.entity, key=lambda part: part.entity_type)
        ],
    )


def error_response(request: AlterClientQuotasRequest, code: ErrorCode, message: str) -> AlterClientQuotasResponse:
    """Build a response with the same error for every entity."""
    return AlterClientQuotasResponse(entries=[result(entry, code, message) for entry in request.entries])
