"""IncrementalAlterConfigs (api key 44), versions 0 and 1: set, delete, append to and subtract from single configs.

Resources are topics, brokers, their loggers, client metrics subscriptions and groups.

Source: kafka.server.ControllerApis, ConfigurationControlManager.incrementalAlterConfigs 3.9.1 and 4.4.0;
KIP-339, KIP-714.
"""

from __future__ import annotations

from kwire.broker.apis.steps.config_changes import change, check_logger_resource, check_once, current, repeated
from kwire.broker.configs.definitions import ConfigType, Resource, definitions
from kwire.broker.configs.entries import ConfigOperation
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.errors import BrokerError
from kwire.internal_topics.enums import ConfigResource
from kwire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kwire.messages.incremental_alter_configs_request import AlterConfigsResource
from kwire.protocol.error_codes import ErrorCode, refusal

KINDS: dict[int, str] = {
    ConfigResource.TOPIC: Resource.TOPIC,
    ConfigResource.BROKER: Resource.BROKER,
    ConfigResource.CLIENT_METRICS: Resource.CLIENT_METRICS,
}
"""Resources whose configs may be lists. Kafka refuses to append to the lists of groups."""


def handle(
    node: Node, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Alter the configs of each resource."""
    responses = []
    several = repeated(request.resources)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        response = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
            error_message=None, resource_type=kind, resource_name=name
        )
        try:
            check_once(kind, name, several)
            check_configs(resource)
            if kind == ConfigResource.BROKER_LOGGER:
                check_logger_resource(node, context, name)
                node.loggers.check(resource.configs)
                if not request.validate_only:
                    node.loggers.alter(resource.configs)
            else:
                changes = new_values(node, resource)
                change(node, context, kind, name, changes, validate_only=request.validate_only)
        except BrokerError as error:
            response.error_code, response.error_message = error.code, error.what
        responses.append(response)
    return IncrementalAlterConfigsResponse(responses=responses)


def check_configs(resource: AlterConfigsResource) -> None:
    """Raise BrokerError for configs that are named twice, and for missing values."""
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise refusal(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and config.config_operation != ConfigOperation.DELETE
    ]
    if nulls:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def new_values(node: Node, resource: AlterConfigsResource) -> dict[str, str | None]:
    """Return the values after the operations, None for deleted configs. Raises BrokerError."""
    now = current(node, resource.resource_type, resource.resource_name)
    changes: dict[str, str | None] = {}
    for config in resource.configs:
        name, value, operation = config.name, config.value, config.config_operation
        if operation == ConfigOperation.DELETE or value is None:
            changes[name] = None
            continue
        if operation == ConfigOperation.SET:
            changes[name] = value
            continue
        if operation not in (ConfigOperation.APPEND, ConfigOperation.SUBTRACT):
            raise refusal(ErrorCode.INVALID_REQUEST, f"Unknown operation type {operation}")
        definition = definitions(KINDS[resource.resource_type]).get(name) if resource.resource_type in KINDS else None
        if definition is None or definition.kind != ConfigType.LIST:
            raise refusal(ErrorCode.INVALID_CONFIG, not_a_list(resource.resource_type, name, operation))
        default = definition.default or ""
        if resource.resource_type == ConfigResource.TOPIC:
            default = node.settings.topic_defaults().get(name, default)
        items = [item.strip() for item in now.get(name, default).split(",") if item.strip()]
        given = [item.strip() for item in value.split(",") if item.strip()]
        if operation == ConfigOperation.APPEND:
            items += [item for item in given if item not in items]
        else:
            items = [item for item in items if item not in given]
        changes[name] = ",".join(items)
    return changes


def not_a_list(kind: int, name: str, operation: int) -> str:
    """Error message for APPEND and SUBTRACT on a config that is not a list."""
    verb = ConfigOperation(operation).name
    if kind == ConfigResource.BROKER:
        return f"Config value {verb.lower()} is not allowed for config key: {name}"
    return f"Can't {verb} to key {name} because its type is not LIST."


def error_response(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str
) -> IncrementalAlterConfigsResponse:
    """Build a response with the same error for every resource."""
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                error_code=code, error_message=message, resource_type=r.resource_type, resource_name=r.resource_name
            )
            for r in request.resources
        ]
    )
