"""ListConfigResources (api key 74), versions 0 and 1: list resources that have configs, by type (KIP-714, KIP-1142).

    1  topics, brokers and their loggers; version 0 lists client metrics subscriptions

An empty list of types selects all. A type that has no configs is UNSUPPORTED_VERSION. A group is
listed if it has a config.

Source: kafka.server.KafkaApis.handleListConfigResources 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.node import Node
from kwire.internal_topics.enums import ConfigResource
from kwire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from kwire.protocol.error_codes import ErrorCode, refusal

TYPES = (
    ConfigResource.GROUP,
    ConfigResource.CLIENT_METRICS,
    ConfigResource.BROKER_LOGGER,
    ConfigResource.BROKER,
    ConfigResource.TOPIC,
)
"""Resource types in the order of Kafka's responses."""


def handle(node: Node, context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources of the selected types."""
    node.authorize(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER)
    selected = (
        {ConfigResource.CLIENT_METRICS} if context.api_version == 0 else set(request.resource_types) or set(TYPES)
    )
    if selected - set(TYPES):
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, "Unsupported resource type")
    resources = []
    for kind in TYPES:
        if kind in selected:
            resources += [
                ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
                for name in names(node, kind)
            ]
    return ListConfigResourcesResponse(config_resources=resources)


def names(node: Node, kind: ConfigResource) -> list[str]:
    """Return the names of the resources of one type."""
    if kind == ConfigResource.TOPIC:
        return [topic.name for topic in node.topics]
    if kind in (ConfigResource.BROKER, ConfigResource.BROKER_LOGGER):
        return [str(node_id) for node_id in node.members.running]
    return sorted(name for each, name in node.cluster.configs if each == kind.label)
