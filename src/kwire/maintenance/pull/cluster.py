"""What a cluster has to copy, as far as the account may see it: topics, their configs, offsets, groups."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from kwire.client.admin.cluster import describe_cluster
from kwire.client.admin.requests import NOT_ALLOWED
from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, raise_for
from kwire.client.cluster import Cluster, Topic
from kwire.errors import BrokerError, KwireError, OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.names import COORDINATOR_TOPICS
from kwire.maintenance.pull.manifest import AclEntry, ClusterEntry, QuotaEntry, UserEntry
from kwire.messages import DescribeConfigsRequest, DescribeConfigsResponse
from kwire.messages.describe_configs_response import DescribeConfigsResourceResult
from kwire.protocol import HIDDEN
from kwire.protocol.error_codes import ErrorCode

__all__ = ["Bounds", "PulledTopic", "SourceCluster"]

TOPIC_RESOURCE = 2
TOPIC_CONFIG_SOURCE = 1  # DescribeConfigs: set on the topic itself
DESCRIBED_PARTS = (
    ClusterPart.CONFIGS,
    ClusterPart.QUOTAS,
    ClusterPart.USERS,
    ClusterPart.ACLS,
    ClusterPart.FEATURES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledTopic:
    """A topic to copy. configs: those set on the topic, None if the account may not see them."""

    topic: Topic
    configs: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Log start offset and high watermark of a partition."""

    log_start_offset: int
    high_watermark: int


@dataclass(slots=True, kw_only=True)
class SourceCluster:
    """A cluster that is copied.

    patterns: of topic names, all topics if empty. with_groups: the internal topics of groups and transactions too.
    hidden: what the account may not see, found so far. unreadable: coordinators' topics among it.
    """

    client: Client
    patterns: Sequence[str] = ()
    with_groups: bool = True
    hidden: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)

    def metadata(self) -> Cluster:
        """Return the cluster's metadata, with all topics that the account may see."""
        return self.client.metadata(None)

    def select(self, cluster: Cluster) -> list[Topic]:
        """Return the topics to copy, internal ones first: so no committed offset lies beyond the copied records.

        Raises OptionError if a pattern matches no topic.
        """
        for pattern in self.patterns:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in cluster.topics):
                names = ", ".join(sorted(cluster.topics))[:500] or "none"
                raise OptionError(f"no topic matches {pattern!r}; topics that this account may see: {names}")
        found = [topic for topic in cluster.topics.values() if self._takes(topic)]
        return sorted(found, key=lambda topic: (not topic.is_internal, topic.name))

    def _takes(self, topic: Topic) -> bool:
        if topic.name in COORDINATOR_TOPICS:
            return self.with_groups and topic.name not in self.unreadable
        return not self.patterns or any(fnmatch.fnmatchcase(topic.name, pattern) for pattern in self.patterns)

    def find_unreadable(self, cluster: Cluster, known: Collection[str] = ()) -> None:
        """Find the coordinators' topics that the account may not read. known: those that it may read.

        Raises BrokerError, ConnectionFailed.
        """
        unknown = COORDINATOR_TOPICS - set(known) - self.unreadable
        missing = unknown - cluster.topics.keys()
        # by name, the response tells a topic that is hidden from one that does not exist
        named = self.client.metadata(sorted(missing)).topics if missing else {}
        for name in sorted(unknown):
            topic = cluster.topics.get(name) or named.get(name)
            if topic is None:
                continue
            try:
                raise_for(topic.error_code if topic.error_code in NOT_ALLOWED else 0, name)
                self._read_one(topic)
            except BrokerError as error:
                if error.code not in NOT_ALLOWED:
                    raise
                self.unreadable.add(name)
                self.hide(f"topic {name}: {ErrorCode(error.code).name}")

    def _read_one(self, topic: Topic) -> None:
        """Fetch a record of a topic, if there is one. Raises BrokerError."""
        for (_, number), found in self._bounds([(topic.name, number) for number in topic.partitions]).items():
            if found.log_start_offset < found.high_watermark:
                start = found.log_start_offset
                next(self.client.read(topic.name, number, start, start + 1, isolation="read_uncommitted"))
                break

    def describe(self) -> ClusterEntry:
        """Return what belongs to the cluster itself, as far as the account may see it."""
        found = describe_cluster(self.client, DESCRIBED_PARTS, topics=False)
        unseen = found.requests.unseen
        for what, reason in unseen.items():
            self.hide(f"{what}: {reason}")
        state = found.state

        def rows(part: ClusterPart) -> list[dict[str, object]] | None:
            return None if part.value in unseen else list(cluster_rows(state, part))

        configs = {
            name: {key: None if value == HIDDEN else value for key, value in sorted(values.items())}
            for (kind, name), values in sorted(state.configs.items())
            if kind == "broker"
        }
        quotas = [QuotaEntry(entity=dict(entity), quotas=dict(each)) for entity, each in state.quotas.items()]
        return ClusterEntry(
            described_ms=time.time_ns() // 1_000_000,
            users=msgspec.convert(rows(ClusterPart.USERS), list[UserEntry] | None),
            acls=msgspec.convert(rows(ClusterPart.ACLS), list[AclEntry] | None),
            quotas=None if ClusterPart.QUOTAS in unseen else quotas,
            broker_configs=None if any(what.startswith("configs") for what in unseen) and not configs else configs,
            features=None if ClusterPart.FEATURES in unseen else dict(state.features),
        )

    def configs(self, topics: Iterable[Topic]) -> list[PulledTopic]:
        """Return the topics with their configs."""
        wanted = list(topics)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic.name, configuration_keys=None
                )
                for topic in wanted
            ]
        )
        found: dict[str, dict[str, str]] = {}
        reasons: dict[str, str] = {}
        try:
            for result in self.client.request(request, DescribeConfigsResponse).results if wanted else ():
                if result.error_code:
                    reasons[result.resource_name] = ErrorCode(result.error_code).name
                    continue
                found[result.resource_name] = {
                    each.name: each.value
                    for each in result.configs
                    if each.value is not None and (each.config_source == TOPIC_CONFIG_SOURCE or is_old_override(each))
                }
        except KwireError as error:
            reasons = {topic.name: str(error) for topic in wanted}
        for name, reason in reasons.items():
            self.hide(f"configs of topic {name}: {reason}")
        return [PulledTopic(topic=topic, configs=found.get(topic.name)) for topic in wanted]

    def bounds(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, Bounds]:
        """Return log start offsets and high watermarks; without partitions that the account may not read."""
        readable = list(keys)
        while readable:
            try:
                return self._bounds(readable)
            except BrokerError as error:
                if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise
                readable = self._allowed(readable)
        return {}

    def _bounds(self, keys: Collection[TopicPartition]) -> dict[TopicPartition, Bounds]:
        latest = self.client.list_offsets(dict.fromkeys(keys, LATEST_TIMESTAMP), isolation="read_uncommitted")
        earliest = self.client.list_offsets(dict.fromkeys(keys, EARLIEST_TIMESTAMP))
        return {key: Bounds(log_start_offset=earliest[key].offset, high_watermark=latest[key].offset) for key in keys}

    def _allowed(self, keys: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of topics whose offsets the account may list; hide the others."""
        allowed = []
        for topic in sorted({topic for topic, _ in keys}):
            ours = [key for key in keys if key[0] == topic]
            try:
                self.client.list_offsets({ours[0]: LATEST_TIMESTAMP})
                allowed += ours
            except BrokerError as error:
                if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise
                self.hide(f"topic {topic}: {ErrorCode(error.code).name}")
        return allowed

    def hide(self, what: str) -> None:
        """Remember something that the account may not see."""
        if what not in self.hidden:
            self.hidden.append(what)


def is_old_override(config: DescribeConfigsResourceResult) -> bool:
    """Return whether a config is set on the topic, in responses of version 0."""
    return config.config_source == -1 and not config.is_default
