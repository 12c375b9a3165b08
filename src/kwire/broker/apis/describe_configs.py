"""DescribeConfigs (api key 32), versions 0 to 4: the configs of topics, brokers, loggers, groups and metrics.

    0  whether a value is the default    1  sources and synonyms    3  types and documentation    4  flexible

Documentation is Kafka's; configs that Kafka does not have, or that are for one listener, have none. Values of passwords
and of unknown configs are never returned. The broker resource with an empty name has the dynamic configs of all
brokers. Loggers are Python's below `kwire`, which is `root`.

Source: kafka.server.ConfigHelper 3.9.1 and 4.4.0; KIP-133, KIP-226, KIP-412, KIP-569.
"""

from __future__ import annotations

from kwire.broker.apis.steps.config_changes import current, to_node_id
from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.configs.broker_configs import client_metrics_entries
from kwire.broker.configs.definitions import Resource, documentation
from kwire.broker.configs.entries import Entry
from kwire.broker.configs.groups import group_entries
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.broker.topics import check_name
from kwire.errors import BrokerError
from kwire.internal_topics.enums import ConfigResource
from kwire.messages import DescribeConfigsRequest, DescribeConfigsResponse
from kwire.messages.describe_configs_request import DescribeConfigsResource
from kwire.messages.describe_configs_response import DescribeConfigsResourceResult
from kwire.protocol.error_codes import MALFORMED, ErrorCode, refusal

DOCUMENTED = {
    ConfigResource.TOPIC: Resource.TOPIC,
    ConfigResource.BROKER: Resource.BROKER,
    ConfigResource.CLIENT_METRICS: Resource.CLIENT_METRICS,
    ConfigResource.GROUP: Resource.GROUP,
}

DESCRIBED = frozenset({*DOCUMENTED, ConfigResource.BROKER_LOGGER})


def handle(node: Node, context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource. Raises BrokerError for unknown resource types."""
    if any(resource.resource_type not in DESCRIBED for resource in request.resources):
        raise refusal(ErrorCode.INVALID_REQUEST, MALFORMED)
    results = []
    for resource in request.resources:
        result = DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=""
        )
        try:
            keys = resource.configuration_keys
            result.configs = [
                describe(request, resource.resource_type, entry, context.api_version)
                for entry in entries(node, context, resource)
                if not keys or entry.name in keys
            ]
        except BrokerError as error:
            result.error_code, result.error_message = error.code, error.what
        results.append(result)
    return DescribeConfigsResponse(results=results)


def entries(node: Node, context: RequestContext, resource: DescribeConfigsResource) -> list[Entry]:
    """Return the configs of one resource. Raises BrokerError."""
    kind, name = resource.resource_type, resource.resource_name
    if kind == ConfigResource.TOPIC:
        node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name)
        check_name(name)
        topic = node.topics.get(name)
        if topic is None:
            raise refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return node.configs.topic_entries(topic.configs)
    if kind == ConfigResource.BROKER:
        node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER)
        if not name:
            return node.configs.default_entries()
        check_own_id(node, name, f"{node.node_id} or empty string,")
        return node.configs.entries()
    if kind == ConfigResource.BROKER_LOGGER:
        node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER)
        if not name:
            raise refusal(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        check_own_id(node, name, str(node.node_id))
        return node.loggers.entries()
    if kind == ConfigResource.CLIENT_METRICS:
        node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER)
        if not name:
            raise refusal(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        return client_metrics_entries(current(node, kind, name))
    node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, name)
    if not name:
        raise refusal(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    return group_entries(node.configs, current(node, kind, name))


def check_own_id(node: Node, name: str, expected: str) -> None:
    """Raise BrokerError unless a resource's name is this broker's id. expected: in the message."""
    node_id = to_node_id(name)
    if node_id is None:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if node_id != node.node_id:
        raise refusal(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected} but received {name}")


def describe(request: DescribeConfigsRequest, kind: int, entry: Entry, version: int) -> DescribeConfigsResourceResult:
    """Describe one config. kind: ConfigResource."""
    text: str | None = None
    if kind == ConfigResource.BROKER_LOGGER:
        text = ""  # in every response
    elif request.include_documentation and kind in DOCUMENTED:
        text = documentation(DOCUMENTED[ConfigResource(kind)], entry.name)
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.is_default and version == 0,  # later versions have the source
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        config_type=entry.kind,
        documentation=text,
        synonyms=[
            DescribeConfigsResponse.DescribeConfigsSynonym(name=name, value=value, source=source)
            for name, value, source in (entry.synonyms if request.include_synonyms else ())
        ],
    )


def error_response(request: DescribeConfigsRequest, code: ErrorCode, message: str) -> DescribeConfigsResponse:
    """Build a response with the same error for every resource."""
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResponse.DescribeConfigsResult(
                error_code=code, error_message=message, resource_type=r.resource_type, resource_name=r.resource_name
            )
            for r in request.resources
        ]
    )
