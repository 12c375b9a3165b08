"""The cluster that a cut directory becomes: nodes, replicas, topics, settings, and the metadata log that says so."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kwire.errors import LogError, Malformed
from kwire.identifiers import TopicPartition, new_uuid, parse_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Partition, Topic
from kwire.internal_topics.enums import ConfigResource, Operation, PatternType, Permission, ResourceType
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.metadata_versions import MetadataRelease, release_of, release_of_features
from kwire.internal_topics.names import METADATA_TOPIC
from kwire.internal_topics.topic_records import new_cluster
from kwire.log.reading.log_directory import LogDirectory
from kwire.log.reading.partition_log import PartitionLog
from kwire.log.topics.cluster_metadata import replay_cluster
from kwire.maintenance.accepted_configs import accepted_configs, accepted_records
from kwire.maintenance.adopt.topic_configs import default_configs
from kwire.maintenance.pull.manifest import MANIFEST, ClusterEntry, Manifest
from kwire.maintenance.restore.points import AtTime, RestorePoint
from kwire.maintenance.restore.survey import Survey
from kwire.maintenance.verify.root_files import CLAIMING_CHECKPOINTS, claims_above, partitions_without_directory
from kwire.storage.checkpoints import CLEANER_OFFSETS, RECOVERY_POINTS, parse_offset_checkpoint

__all__ = ["DEFAULT_RELEASE", "Source", "assign_replicas", "open_source", "restored_cluster"]

DEFAULT_RELEASE = "3.9"
REPLICAS = 3  # where the source does not say
PRODUCER_ID_MARGIN = 1_000_000
"""Producer ids above the largest known one that the old cluster may have given to producers that wrote nothing yet."""
KEPT_KINDS = (
    "ClientQuotaRecord",
    "AccessControlEntryRecord",
    "UserScramCredentialRecord",
    "DelegationTokenRecord",
    "ConfigRecord",
)


@dataclass(kw_only=True)
class Source:
    """A directory to restore. manifest: of a copy. cluster: of its metadata log at the cut, None without one."""

    directory: LogDirectory
    manifest: Manifest | None
    cluster: ClusterState | None
    warnings: list[str] = field(default_factory=list)

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; None if it is unknown."""
        if self.manifest is not None and self.manifest.cluster_id:
            return self.manifest.cluster_id
        return self.directory.meta_properties.get("cluster.id")

    def check_end(self, log: PartitionLog, end: int) -> None:
        """Raise LogError if a log that is not a copy ended later: an end below its checkpoints has lost records."""
        key = log.topic, log.partition
        if self.end_offset(key) is not None:
            return  # what a copy does not have yet is a warning
        claims = claims_above(end, log, recovery_point=self.recovery_points.get(key), epochs=log.leader_epochs)
        if claims:
            known = ", ".join(each.text for each in claims)
            what = f"{log.topic}-{log.partition}: the log ends at offset {end}, but {known}: records are lost"
            remedy = "restore its files, or run kwire log repair, which accepts the loss"
            raise LogError(f"{what}; {remedy}", log.url)

    def check_directories(self) -> None:
        """Raise LogError if a partition with records has no directory any more, by the checkpoints or the manifest."""
        checkpoints = {name: self.checkpoint(name) for name in CLAIMING_CHECKPOINTS}
        for key, claim in partitions_without_directory(self.directory, checkpoints).items():
            if claim.offset and key[0] != METADATA_TOPIC:
                what = f"{key[0]}-{key[1]}: no such directory, but {claim.text}: records are lost"
                remedy = "restore its files, or run kwire log repair, which accepts the loss"
                raise LogError(f"{what}; {remedy}", self.directory.url)
        topics = {} if self.manifest is None else self.manifest.topics
        for topic, entry in topics.items():
            for partition, copied in entry.partitions.items():
                if copied.segments and (topic, partition) not in self.directory:
                    what = f"{topic}-{partition}: no such directory, but the manifest has its segments"
                    raise LogError(f"{what}; pull it again", self.directory.url)

    @cached_property
    def recovery_points(self) -> Mapping[TopicPartition, int]:
        """The offsets up to which a broker had flushed logs."""
        return self.checkpoint(RECOVERY_POINTS)

    def checkpoint(self, name: str) -> Mapping[TopicPartition, int]:
        """Return the offsets in one of the directory's checkpoints; an unreadable one counts as empty (F-03)."""
        try:
            return parse_offset_checkpoint(self.directory.read_file(name) or b"0\n0\n")
        except (LogError, Malformed):
            return {}

    def end_offset(self, key: TopicPartition) -> int | None:
        """Return the high watermark up to which a copy has a partition; None if it is not a copy."""
        topic = None if self.manifest is None else self.manifest.topics.get(key[0])
        entry = None if topic is None else topic.partitions.get(key[1])
        return None if entry is None else entry.high_watermark

    def is_made(self, topic: str) -> bool:
        """Return whether a copy has a topic made from responses of admin APIs."""
        entry = None if self.manifest is None else self.manifest.topics.get(topic)
        return entry is not None and bool(entry.made_from)

    def topic_id(self, topic: str, ids: Sequence[uuid.UUID | None]) -> uuid.UUID:
        """Return the id of a topic. ids: those in the directories of its partitions. Raises LogError if they differ."""
        known = {each for each in ids if each is not None}
        if len(known) > 1:
            raise LogError(f"partitions of topic {topic} have different topic ids", self.directory.url)
        if known:
            return known.pop()
        entry = None if self.manifest is None else self.manifest.topics.get(topic)
        if entry is not None and entry.id is not None:
            try:
                return parse_uuid(entry.id)
            except Malformed as error:
                raise LogError(f"topic {topic}: {error.what}", f"{self.directory.url}/{MANIFEST}") from error
        stored = None if self.cluster is None else self.cluster.topics.get(topic)
        return new_uuid() if stored is None else stored.topic_id

    def configs(self, topic: str, replicas: int) -> Mapping[str, str]:
        """Return the configs of a topic; those that keep everything if they are unknown."""
        if self.cluster is not None and topic in self.cluster.topics:
            return self.cluster.configs_of(ConfigResource.TOPIC, topic)
        entry = None if self.manifest is None else self.manifest.topics.get(topic)
        if entry is not None and entry.configs is not None:
            return entry.configs
        configs = default_configs(topic, is_compacted=topic in self.compacted_topics, replicas=replicas)
        text = ", ".join(f"{name}={value}" for name, value in configs.items())
        self.warnings.append(f"configs of topic {topic} are unknown; it gets {text}")
        return configs

    @property
    def compacted_topics(self) -> set[str]:
        """Names of the topics that a broker's cleaner worked on."""
        return {topic for topic, _ in self.checkpoint(CLEANER_OFFSETS)}

    def replicas(self, key: TopicPartition) -> Sequence[int]:
        """Return the nodes with a replica of a partition, none if they are unknown."""
        topic = None if self.cluster is None else self.cluster.topics.get(key[0])
        partition = None if topic is None else topic.partitions.get(key[1])
        return () if partition is None else partition.replicas

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions that the cluster knows, 0 without one."""
        stored = None if self.cluster is None else self.cluster.topics.get(topic)
        return 0 if stored is None else max(stored.partitions, default=-1) + 1

    def release(self) -> MetadataRelease:
        """Return the features of the source's metadata log; without one, the features of DEFAULT_RELEASE."""
        stored = None if self.cluster is None else release_of_features(self.cluster.features)
        described = None if self.manifest is None else self.manifest.cluster
        copied = None if described is None else release_of_features(described.features or {})
        return stored or copied or release_of(DEFAULT_RELEASE)

    def others(self) -> list[VersionedMessage]:
        """Return the records of users, ACLs, quotas, tokens, and of configs that are not a topic's or one broker's."""
        if self.cluster is None and self.manifest is not None and self.manifest.cluster is not None:
            return described_records(self.manifest.cluster)
        records: list[VersionedMessage] = []
        for message, version in () if self.cluster is None else self.cluster.snapshot_records():
            if type(message).__name__ not in KEPT_KINDS:
                continue
            resource_type = getattr(message, "resource_type", None)
            is_brokers = resource_type == ConfigResource.BROKER.value and getattr(message, "resource_name", "")
            if resource_type != ConfigResource.TOPIC.value and not is_brokers:
                records.append((message, version))
        return records


def described_records(described: ClusterEntry) -> list[VersionedMessage]:
    """Return the records of ACLs, quotas and the default configs of brokers in a manifest. Raises LogError."""
    from kwire.messages import AccessControlEntryRecord, ClientQuotaRecord, ConfigRecord

    records: list[VersionedMessage] = []
    for acl in described.acls or ():
        try:
            record = AccessControlEntryRecord(
                id=new_uuid(),
                resource_type=ResourceType[acl.resource_type],
                resource_name=acl.resource_name,
                pattern_type=PatternType[acl.pattern_type],
                principal=acl.principal,
                host=acl.host,
                operation=Operation[acl.operation],
                permission_type=Permission[acl.permission],
            )
        except KeyError as error:
            raise LogError(f"ACL of {acl.principal} has an unknown word: {error}", MANIFEST) from error
        records.append((record, 0))
    for each in described.quotas or ():
        entity = [
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in each.entity.items()
        ]
        records += [(ClientQuotaRecord(entity=entity, key=key, value=value), 0) for key, value in each.quotas.items()]
    for name, config in sorted((described.broker_configs or {}).get("", {}).items()):
        if config is not None:
            broker = ConfigResource.BROKER.value
            records.append((ConfigRecord(resource_type=broker, resource_name="", name=name, value=config), 0))
    return records


def open_source(path: str, point: RestorePoint) -> Source:
    """Open the source of a restore. Raises LogError."""
    directory = LogDirectory(path)
    data = directory.read_file(MANIFEST)
    source = Source(
        directory=directory,
        manifest=None if data is None else Manifest.parse(data, f"{directory.url}/{MANIFEST}"),
        cluster=None,
    )
    if (METADATA_TOPIC, 0) in directory:
        at_time = point.time_ms if isinstance(point, AtTime) else None
        try:
            source.cluster = replay_cluster(directory, at_time=at_time)
        except LogError as error:
            source.warnings.append(f"settings are taken from the end of the metadata log: {error.what}")
            source.cluster = replay_cluster(directory)
        if not source.cluster.topics:  # the metadata log begins later
            source.cluster = replay_cluster(directory)
    return source


def assign_replicas(source: Source, keys: Sequence[TopicPartition], nodes: int) -> dict[TopicPartition, list[int]]:
    """Return the nodes of each partition's replicas.

    They stay where the source has them, if all of these nodes exist; otherwise the first one is on each node in turn.
    """
    assignment = {}
    for turn, key in enumerate(sorted(keys)):
        kept = source.replicas(key)
        if kept and all(1 <= node <= nodes for node in kept):
            assignment[key] = list(kept)
            continue
        count = min(len(kept) or REPLICAS, nodes)
        assignment[key] = [(turn + number) % nodes + 1 for number in range(count)]
    return assignment


def restored_cluster(
    source: Source,
    surveys: Mapping[TopicPartition, Survey | None],
    replicas: Mapping[TopicPartition, Sequence[int]],
    topic_ids: Mapping[str, uuid.UUID],
    directory_ids: Mapping[int, str],
    *,
    largest_producer_id: int,
    release: MetadataRelease | None,
) -> ClusterState:
    """Return the content of the new metadata log.

    surveys: None for an empty partition that the source does not have. directory_ids: by node.
    """
    topics: dict[str, Topic] = {}
    for (topic, partition), survey in sorted(surveys.items()):
        nodes = tuple(replicas[topic, partition])
        topics.setdefault(topic, Topic(name=topic, topic_id=topic_ids[topic])).partitions[partition] = Partition(
            partition=partition,
            replicas=nodes,
            isr=nodes,
            leader_epoch=max(0, -1 if survey is None else survey.latest_epoch),
            directories=tuple(parse_uuid(directory_ids[node]) for node in nodes),
        )
    known = 0 if source.cluster is None else source.cluster.next_producer_id
    next_id = max(known, largest_producer_id + 1)
    configs = {
        name: source.configs(name, min(len(each.replicas) for each in topic.partitions.values()))
        for name, topic in topics.items()
    }
    release = release or source.release()
    return new_cluster(
        topics.values(),
        release,
        configs=accepted_configs(configs, release, source.warnings),
        next_producer_id=(next_id // 1000 + 1) * 1000 + PRODUCER_ID_MARGIN,
        others=accepted_records(source.others(), release, source.warnings),
    )
