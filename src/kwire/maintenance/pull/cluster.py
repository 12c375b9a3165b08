"""Content of a cluster to copy, as far as the account may see it: topics, their configs, offsets, groups."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from kwire.client.admin.cluster import describe_cluster
from kwire.client.admin.requests import NOT_ALLOWED, AdminRequests
from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client, raise_for
from kwire.client.cluster import Cluster, Topic
from kwire.errors import BrokerError, ConnectionFailed, KwireError, OptionError
from kwire.identifiers import TopicPartition
from kwire.internal_topics.cluster_rows import ClusterPart, cluster_rows
from kwire.internal_topics.names import COORDINATOR_TOPICS
from kwire.log.files.file_names import check_topic
from kwire.log.writing.log_config import LogConfig
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
    """A topic to copy.

    configs: those set on the topic, None if the account may not see them. made_from: the admin APIs that its contents
    come from, if the account may not read it.
    """

    topic: Topic
    configs: dict[str, str] | None
    made_from: Sequence[str] = ()

    @property
    def log_config(self) -> LogConfig:
        """The configs that a log needs; those that this release does not know or accept are ignored."""
        accepted: dict[str, str] = {}
        for name, value in (self.configs or {}).items():
            try:
                LogConfig.parse({name: value})
            except OptionError:
                continue
            accepted[name] = value
        return LogConfig.parse(accepted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Log start offset and high watermark of a partition."""

    log_start_offset: int
    high_watermark: int


@dataclass(slots=True, kw_only=True)
class SourceCluster:
    """A cluster that is copied, as one thread sees it.

    patterns: of topic names, all topics if empty. with_groups: the internal topics of groups and transactions too.
    with_cluster: users, ACLs, quotas and configs of brokers too. limit_ms: how long to wait for a partition's leader.
    hidden: what the account may not see, found so far. unreadable: coordinators' topics among it. away: what could not
    be seen the last time, because a broker did not respond.
    """

    client: Client
    patterns: Sequence[str] = ()
    with_groups: bool = True
    with_cluster: bool = True
    limit_ms: int | None = None
    hidden: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    unreadable: set[str] = field(default_factory=set)

    def metadata(self) -> Cluster:
        """Return the cluster's metadata, with all topics that the account may see."""
        return self.client.metadata(None)

    def select(self, cluster: Cluster) -> list[Topic]:
        """Return the topics to copy, internal ones first: so no committed offset lies beyond the copied records."""
        topics = [topic for topic in cluster.topics.values() if self._takes(topic) and invalid_name(topic) is None]
        return sorted(topics, key=lambda topic: (not topic.is_internal, topic.name))

    def not_copied(self, cluster: Cluster) -> dict[TopicPartition, KwireError]:
        """Return the partitions of topics that no log directory can have, and why."""
        return {
            (topic.name, number): error
            for topic in cluster.topics.values()
            if self._takes(topic) and (error := invalid_name(topic)) is not None
            for number in topic.partitions
        }

    def require_matches(self, cluster: Cluster) -> None:
        """Raise OptionError if a pattern matches no topic."""
        for pattern in self.patterns:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in cluster.topics):
                names = ", ".join(sorted(cluster.topics))[:500] or "none"
                raise OptionError(f"no topic matches {pattern!r}; topics that this account may see: {names}")

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
        """Fetch a record of a topic, if a leader responds and has one. Raises BrokerError."""
        bounds, errors = self._bounds([(topic.name, number) for number in topic.partitions])
        for error in errors.values():
            if isinstance(error, BrokerError) and error.code in NOT_ALLOWED:
                raise error
        for (_, number), limits in bounds.items():
            if limits.log_start_offset < limits.high_watermark:
                start = limits.log_start_offset
                try:
                    next(self.client.read(topic.name, number, start, start + 1, isolation="read_uncommitted"))
                except (BrokerError, ConnectionFailed) as error:
                    if not self.client.is_retriable(error):
                        raise
                    continue  # another leader can tell as well
                break

    def describe(self, previous: ClusterEntry | None, away: list[str]) -> ClusterEntry:
        """Return what belongs to the cluster itself, as far as the account may see it.

        previous: the last description, from which the configs of brokers that do not respond are taken. away: gets what
        could not be seen because a broker does not respond. Raises BrokerError, ConnectionFailed.
        """
        description = describe_cluster(self.client, DESCRIBED_PARTS, topics=False)
        unseen = description.requests.unseen
        self.note(description.requests, away)
        state = description.state

        def rows(part: ClusterPart) -> list[dict[str, object]] | None:
            return None if part.value in unseen else list(cluster_rows(state, part))

        configs = {
            name: {key: None if value == HIDDEN else value for key, value in sorted(values.items())}
            for (kind, name), values in sorted(state.configs.items())
            if kind == "broker"
        }
        before = previous.broker_configs or {} if previous is not None else {}
        heard = {"", *map(str, description.requests.heard)}
        configs |= {name: each for name, each in before.items() if name not in heard}
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
        if not wanted:
            return []
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=topic.name, configuration_keys=None
                )
                for topic in wanted
            ]
        )
        by_topic: dict[str, dict[str, str]] = {}
        reasons: dict[str, str] = {}
        try:
            for result in self.client.request(request, DescribeConfigsResponse).results:
                if result.error_code:
                    reasons[result.resource_name] = ErrorCode(result.error_code).name
                    continue
                by_topic[result.resource_name] = {
                    each.name: each.value
                    for each in result.configs
                    if each.value is not None and (each.config_source == TOPIC_CONFIG_SOURCE or is_old_override(each))
                }
        except KwireError as error:
            reasons = {topic.name: str(error) for topic in wanted}
        for name, reason in reasons.items():
            self.hide(f"configs of topic {name}: {reason}")
        return [PulledTopic(topic=topic, configs=by_topic.get(topic.name)) for topic in wanted]

    def bounds(
        self, topics: Sequence[Topic], chosen: Sequence[int] | None, known: Collection[TopicPartition] = ()
    ) -> tuple[dict[TopicPartition, Bounds], dict[TopicPartition, KwireError]]:
        """Return log start offsets and high watermarks, and the errors of partitions without.

        chosen: numbers of partitions, None for all. known: partitions that are not asked for. Partitions that the
        account may not read are in neither. Raises BrokerError, ConnectionFailed.
        """
        bounds: dict[TopicPartition, Bounds] = {}
        errors: dict[TopicPartition, BrokerError | ConnectionFailed] = {}
        for internal in (True, False):  # internal topics first: see select()
            more, others = self._bounds(
                [
                    (topic.name, number)
                    for topic in topics
                    for number in topic.partitions
                    if topic.is_internal == internal
                    and (chosen is None or number in chosen)
                    and (topic.name, number) not in known
                ]
            )
            bounds |= more
            errors |= others
        for (topic, _), error in sorted(errors.items(), key=lambda item: item[0]):
            if is_forbidden(error):
                self.hide(f"topic {topic}: {ErrorCode.TOPIC_AUTHORIZATION_FAILED.name}")
        return bounds, {key: error for key, error in errors.items() if not is_forbidden(error)}

    def _bounds(
        self, keys: Collection[TopicPartition]
    ) -> tuple[dict[TopicPartition, Bounds], dict[TopicPartition, BrokerError | ConnectionFailed]]:
        latest, errors = self.client.find_offsets(
            dict.fromkeys(keys, LATEST_TIMESTAMP), isolation="read_uncommitted", limit_ms=self.limit_ms
        )
        earliest, others = self.client.find_offsets(
            dict.fromkeys(latest, EARLIEST_TIMESTAMP), isolation="read_uncommitted", limit_ms=self.limit_ms
        )
        bounds = {
            key: Bounds(log_start_offset=first.offset, high_watermark=latest[key].offset)
            for key, first in earliest.items()
        }
        return bounds, errors | others

    def note(self, requests: AdminRequests, away: list[str]) -> None:
        """Remember what the account may not see; add to `away` what no broker responded about."""
        for what, reason in requests.unseen.items():
            if what in requests.passing:
                away.append(f"{what}: {reason}")
            else:
                self.hide(f"{what}: {reason}")

    def hide(self, what: str) -> None:
        """Remember something that the account may not see."""
        if what not in self.hidden:
            self.hidden.append(what)


def invalid_name(topic: Topic) -> OptionError | None:
    """Return the error for a topic whose name, or a partition whose number, no broker of Kafka accepts."""
    try:
        for number in topic.partitions:
            check_topic(topic.name, number)
    except OptionError as error:
        return error
    return None


def is_forbidden(error: KwireError) -> bool:
    """Return whether the account may not read a topic."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def is_old_override(config: DescribeConfigsResourceResult) -> bool:
    """Return whether a config is set on the topic, in responses of version 0."""
    return config.config_source == -1 and not config.is_default
