"""The state of a cluster by its admin APIs. No client may read the metadata log.

    part         request                          permission
    brokers      DescribeCluster                  none
    topics       Metadata                         DESCRIBE on each topic
    configs      DescribeConfigs                  DESCRIBE_CONFIGS on each topic, and on the cluster
    quotas       DescribeClientQuotas             DESCRIBE_CONFIGS on the cluster
    users        DescribeUserScramCredentials     DESCRIBE on the cluster
    acls         DescribeAcls                     DESCRIBE on the cluster
    features     ApiVersions                      none
    voters       DescribeQuorum                   DESCRIBE on the cluster
    tokens       DescribeDelegationToken          none for the account's own

Configs are what the metadata log has of them: dynamic configs of topics and brokers. What a part lacks is in UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from kwire.client.admin.requests import AdminRequests
from kwire.client.admin.tokens import described
from kwire.client.client import Client
from kwire.errors import BrokerError, UnsupportedVersion
from kwire.identifiers import render_uuid
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import (
    Acl,
    Endpoint,
    Node,
    Partition,
    ScramCredential,
    Topic,
    Voter,
)
from kwire.internal_topics.enums import (
    ConfigResource,
    Operation,
    PatternType,
    Permission,
    ResourceType,
    ScramMechanism,
    label,
)
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kwire.protocol import HIDDEN
from kwire.protocol.error_codes import ErrorCode

__all__ = ["UNKNOWN", "DescribedCluster", "describe_cluster", "described_rows"]

NO_ID = UUID(int=0)
NO_ID_TEXT = render_uuid(NO_ID)
METADATA, METADATA_VERSION = 3, 12
DESCRIBE_CLUSTER, FENCED_VERSION = 60, 2
SOURCES = {("topic", True): 1, ("broker", True): 2, ("broker", False): 3}
"""ConfigSource of the dynamic configs of a resource, by its type and whether it has a name."""
RESOURCES_AT_ONCE = 500
ANY = 1

UNKNOWN: Mapping[ClusterPart, tuple[str, ...]] = {
    ClusterPart.BROKERS: (
        "epoch",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
        "features",
        "incarnation_id",
    ),
    ClusterPart.CONTROLLERS: ("features", "incarnation_id"),
    ClusterPart.PARTITIONS: (
        "partition_epoch",
        "directories",
        "recovering",
        "adding_replicas",
        "removing_replicas",
        "elr",
        "last_known_elr",
    ),
    ClusterPart.USERS: ("salt", "stored_key", "server_key"),
    ClusterPart.ACLS: ("acl_id",),
}
"""Values in the rows of each part that the admin APIs do not tell."""


@dataclass(slots=True, kw_only=True)
class DescribedCluster:
    """The state, the cluster's id, and the requests it was made from."""

    state: ClusterState
    requests: AdminRequests
    cluster_id: str | None = None


def describe_cluster(
    client: Client, parts: Iterable[ClusterPart] = tuple(ClusterPart), *, topics: bool = True
) -> DescribedCluster:
    """Return these parts of the cluster, by default all. topics: without them, only configs of brokers.

    Parts that the account may not see are empty, and named in `requests.unseen`. Raises BrokerError, ConnectionFailed.
    """
    description = DescribedCluster(state=ClusterState(), requests=AdminRequests())
    wanted = set(parts)
    if ClusterPart.CONFIGS in wanted or ClusterPart.TOPICS in wanted:
        wanted |= {ClusterPart.TOPICS, ClusterPart.BROKERS, ClusterPart.CONFIGS}
    if ClusterPart.BROKERS in wanted:
        wanted.add(ClusterPart.TOPICS)  # how many partitions each broker leads
    if not topics:
        wanted.discard(ClusterPart.TOPICS)
    done = set[Step]()
    for part, step in STEPS.items():
        if part not in wanted or step in done:
            continue
        done.add(step)
        try:
            step(client, description)
        except (BrokerError, UnsupportedVersion) as error:
            if isinstance(error, BrokerError) and error.code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
                continue
            description.requests.without(part.value, error)
    return description


def described_rows(
    description: DescribedCluster, part: ClusterPart, *, redact: bool = True
) -> Iterator[dict[str, object]]:
    """Yield the rows of cluster_rows, with None for what the admin APIs do not tell."""
    for row in cluster_rows(description.state, part, redact=redact):
        unknown = dict.fromkeys(UNKNOWN.get(part, ()))
        yield {name: None if value == NO_ID_TEXT else value for name, value in (row | unknown).items()}


def _check(code: int, what: str) -> None:
    if code:
        raise BrokerError(f"{what}: {ErrorCode(code).name}", code)


def _brokers(client: Client, description: DescribedCluster) -> None:
    state = description.state
    try:
        with_fenced = client.connection().version_for(DESCRIBE_CLUSTER) >= FENCED_VERSION
        request = DescribeClusterRequest(include_fenced_brokers=with_fenced)
        described = description.requests.one(client, request, DescribeClusterResponse)
    except UnsupportedVersion:  # before 2.8
        cluster = client.metadata([])
        description.cluster_id = cluster.cluster_id
        for node_id, (host, port) in cluster.brokers.items():
            state.brokers[node_id] = _node(node_id, [Endpoint(name="", host=host, port=port)])
        return
    _check(described.error_code, "DescribeCluster")
    description.cluster_id = described.cluster_id
    for each in described.brokers:
        endpoints = [Endpoint(name="", host=each.host, port=each.port)]
        state.brokers[each.broker_id] = _node(each.broker_id, endpoints, rack=each.rack, fenced=each.is_fenced)


def _node(node_id: int, endpoints: Iterable[Endpoint], *, rack: str | None = None, fenced: bool = False) -> Node:
    return Node(
        node_id=node_id, incarnation_id=NO_ID, endpoints=tuple(endpoints), features={}, rack=rack, fenced=fenced
    )


def _topics(client: Client, description: DescribedCluster) -> None:
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    version = min(METADATA_VERSION, client.connection().version_for(METADATA))
    if version < 4:
        request.allow_auto_topic_creation = True
        request.topics = [] if version == 0 else None
    response = description.requests.one(client, request, MetadataResponse, version=version)
    for topic in response.topics:
        if topic.name is None:
            continue
        if topic.error_code:
            description.requests.without(f"topic {topic.name!r}", ErrorCode(topic.error_code))
            continue
        description.state.topics[topic.name] = Topic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions={
                each.partition_index: Partition(
                    partition=each.partition_index,
                    replicas=tuple(each.replica_nodes),
                    isr=tuple(each.isr_nodes),
                    leader=each.leader_id,
                    leader_epoch=each.leader_epoch,
                )
                for each in topic.partitions
            },
        )


def _configs(client: Client, description: DescribedCluster) -> None:
    resources = [(ConfigResource.TOPIC, name) for name in sorted(description.state.topics)]
    for at in range(0, len(resources), RESOURCES_AT_ONCE):
        _describe_configs(client, description, resources[at : at + RESOURCES_AT_ONCE], None)
    description.requests.every(
        client,
        "configs",
        lambda node: _describe_configs(client, description, [(ConfigResource.BROKER, str(node))], node),
    )
    _describe_configs(client, description, [(ConfigResource.BROKER, "")], None)


def _describe_configs(
    client: Client, description: DescribedCluster, resources: list[tuple[ConfigResource, str]], node_id: int | None
) -> None:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in resources
        ]
    )
    response = description.requests.one(client, request, DescribeConfigsResponse, node_id=node_id)
    for result in response.results:
        resource = ConfigResource.of(result.resource_type)
        if (resource, result.resource_name) not in resources:
            continue
        kind = label(resource)
        if result.error_code:
            description.requests.without(f"configs of {kind} {result.resource_name!r}", ErrorCode(result.error_code))
            continue
        # a response repeats what a resource inherits: a topic has the dynamic configs of its broker, for example
        own = SOURCES[kind, result.resource_name != ""]
        dynamic = {
            each.name: HIDDEN if each.value is None else each.value
            for each in result.configs
            if each.config_source == own
        }
        if dynamic:
            description.state.configs[kind, result.resource_name] = dynamic


def _quotas(client: Client, description: DescribedCluster) -> None:
    response = description.requests.one(client, DescribeClientQuotasRequest(), DescribeClientQuotasResponse)
    _check(response.error_code, "DescribeClientQuotas")
    for entry in response.entries or ():
        entity = tuple(sorted((each.entity_type, each.entity_name) for each in entry.entity))
        description.state.quotas[entity] = {each.key: each.value for each in entry.values}


def _users(client: Client, description: DescribedCluster) -> None:
    request = DescribeUserScramCredentialsRequest(users=[])  # null makes some brokers fail to refuse it
    response = description.requests.one(client, request, DescribeUserScramCredentialsResponse)
    _check(response.error_code, "DescribeUserScramCredentials")
    for result in response.results:
        for each in result.credential_infos:
            description.state.users[result.user, label(ScramMechanism.of(each.mechanism))] = ScramCredential(
                salt=b"", iterations=each.iterations, stored_key=b"", server_key=b""
            )


def _acls(client: Client, description: DescribedCluster) -> None:
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    response = description.requests.one(client, request, DescribeAclsResponse)
    if response.error_code == ErrorCode.SECURITY_DISABLED:
        return
    _check(response.error_code, "DescribeAcls")
    acls = [
        Acl(
            resource_type=ResourceType.of(resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=PatternType.of(resource.pattern_type),
            principal=each.principal,
            host=each.host,
            operation=Operation.of(each.operation),
            permission_type=Permission.of(each.permission_type),
        )
        for resource in response.resources
        for each in resource.acls
    ]
    description.state.acls = {UUID(int=number): acl for number, acl in enumerate(acls)}  # ids are not told


def _features(client: Client, description: DescribedCluster) -> None:
    response = description.requests.one(
        client, ApiVersionsRequest(client_software_name="kwire", client_software_version="1"), ApiVersionsResponse
    )
    _check(response.error_code, "ApiVersions")
    for each in response.finalized_features:
        if each.name == "kraft.version":
            description.state.kraft_version = each.max_version_level
        else:
            description.state.features[each.name] = each.max_version_level


def _quorum(client: Client, description: DescribedCluster) -> None:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    response = description.requests.one(client, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    _check(response.error_code, "DescribeQuorum")
    nodes = {
        node.node_id: tuple(Endpoint(name=each.name, host=each.host, port=each.port) for each in node.listeners)
        for node in response.nodes
    }
    for of_topic in response.topics:
        for each in of_topic.partitions:
            _check(each.error_code, "DescribeQuorum")
            description.state.leader = each.leader_id
            for voter in each.current_voters:
                endpoints = nodes.get(voter.replica_id, ())
                description.state.voters[voter.replica_id] = Voter(
                    node_id=voter.replica_id, directory_id=voter.replica_directory_id, endpoints=endpoints
                )
                description.state.controllers[voter.replica_id] = _node(voter.replica_id, endpoints)


def _tokens(client: Client, description: DescribedCluster) -> None:
    request = DescribeDelegationTokenRequest(owners=None)
    response = description.requests.one(client, request, DescribeDelegationTokenResponse)
    _check(response.error_code, "DescribeDelegationToken")
    for each in response.tokens:
        description.state.tokens[each.token_id] = described(each)


Step = Callable[[Client, DescribedCluster], None]
STEPS: dict[ClusterPart, Step] = {  # in an order in which later steps know what they need
    ClusterPart.BROKERS: _brokers,
    ClusterPart.TOPICS: _topics,
    ClusterPart.PARTITIONS: _topics,
    ClusterPart.CONFIGS: _configs,
    ClusterPart.QUOTAS: _quotas,
    ClusterPart.USERS: _users,
    ClusterPart.ACLS: _acls,
    ClusterPart.FEATURES: _features,
    ClusterPart.CONTROLLERS: _quorum,
    ClusterPart.VOTERS: _quorum,
    ClusterPart.TOKENS: _tokens,
}
