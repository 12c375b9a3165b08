"""AlterConfigs (api key 33), versions 0 to 2: replace all configs of topics, brokers or groups.

Resources that a request names twice get an error; Kafka 4.4.0 does not respond to such a request.

Source: kafka.server.ControllerApis.handleLegacyAlterConfigs, ConfigurationControlManager.legacyAlterConfigs 3.9.1.
"""

from __future__ import annotations

from kwire.broker.apis.steps.config_changes import change, check_once, current, repeated
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.messages import AlterConfigsRequest, AlterConfigsResponse
from kwire.protocol.error_codes import ErrorCode, refusal


def handle(node: Node, context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the configs of each resource."""
    responses = []
    several = repeated(request.resources)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        response = AlterConfigsResponse.AlterConfigsResourceResponse(
            error_message=None, resource_type=kind, resource_name=name
        )
        try:
            check_once(kind, name, several)
            given = {config.name: config.value for config in resource.configs}
            if len(given) < len(resource.configs):
                raise refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            nulls = [key for key, value in given.items() if value is None]
            if nulls:
                raise refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
            removed = {key: None for key in current(node, kind, name) if key not in given}
            change(node, context, kind, name, {**removed, **given}, validate_only=request.validate_only)
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.what
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


def error_response(request: AlterConfigsRequest, code: ErrorCode, message: str) -> AlterConfigsResponse:
    """Build a response with the same error for every resource."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=r.resource_type, resource_name=r.resource_name
            )
            for r in request.resources
        ]
    )
