"""ListConfigResources (api key 74), versions 0 and 1: the resources that have configs, by type (KIP-714, KIP-1142).

    1  topics, brokers and their loggers too; in version 0 the API lists client metrics subscriptions

An empty list of types selects all. A type without configs is UNSUPPORTED_VERSION. Configs of groups are not supported:
that type is always empty.
Source: kafka.server.KafkaApis.handleListConfigResources 4.4.0.
"""

from __future__ import annotations

from kwire.broker.authorization import CLUSTER, Operation, ResourceType
from kwire.broker.context import RequestContext
from kwire.broker.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE
from kwire.broker.node import Node
from kwire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse
from kwire.protocol.error_codes import ErrorCode, refusal

BROKER_LOGGER_RESOURCE, GROUP_RESOURCE = 8, 32
TYPES = (GROUP_RESOURCE, CLIENT_METRICS_RESOURCE, BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, TOPIC_RESOURCE)
"""In the order of Kafka's responses."""


def handle(node: Node, context: RequestContext, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List the resources of the types asked for."""
    if not node.may(context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER):
        raise refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    wanted = {CLIENT_METRICS_RESOURCE} if context.api_version == 0 else set(request.resource_types) or set(TYPES)
    if wanted - set(TYPES):
        raise refusal(ErrorCode.UNSUPPORTED_VERSION, "Unsupported resource type")
    resources = []
    for kind in TYPES:
        if kind in wanted:
            resources += [
                ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
                for name in names(node, kind)
            ]
    return ListConfigResourcesResponse(config_resources=resources)


def names(node: Node, kind: int) -> list[str]:
    """The resources of one type."""
    if kind == TOPIC_RESOURCE:
        return [topic.name for topic in node.topics]
    if kind in (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE):
        return [str(node.node_id)]
    return sorted(name for each, name in node.image.configs if each == kind)
