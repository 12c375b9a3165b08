"""AlterClientQuotas (api key 49), versions 0 and 1: set and remove quotas, a result an entity (KIP-546).

    1  flexible

They take effect at the next request, except connection_creation_rate, which is stored only.
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
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Entity by entity."""
    if not node.may(context, Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no access to the cluster")
    assert node.security is not None  # a broker has one
    quotas = node.security.quotas
    return AlterClientQuotasResponse(entries=[alter(quotas, entry, request.validate_only) for entry in request.entries])


def alter(quotas: Quotas, entry: EntryData, validate_only: bool) -> EntryResult:
    """One entity."""
    parts = [(part.entity_type, part.entity_name) for part in entry.entity]
    try:
        quotas.alter(parts, entry.ops, validate_only=validate_only)
    except BrokerError as error:
        return result(entry, ErrorCode(error.code), error.what)
    return result(entry, ErrorCode.NONE, None)


def result(entry: EntryData, code: ErrorCode, what: str | None) -> EntryResult:
    """The answer about one entity."""
    return EntryResult(
        error_code=code,
        error_message=what,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=part.entity_type, entity_name=part.entity_name)
            for part in entry.entity
        ],
    )


def error_response(request: AlterClientQuotasRequest, code: ErrorCode, message: str) -> AlterClientQuotasResponse:
    """The same error for every entity."""
    return AlterClientQuotasResponse(entries=[result(entry, code, message) for entry in request.entries])
