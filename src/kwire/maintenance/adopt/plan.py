"""Compute the metadata of a cluster from its brokers' old log directories. Nothing is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from kwire.errors import OptionError, counted
from kwire.identifiers import new_uuid, render_uuid
from kwire.internal_topics.cluster_state import ClusterState
from kwire.internal_topics.cluster_values import Partition, Topic, Voter
from kwire.internal_topics.enums import ConfigResource
from kwire.internal_topics.metadata_records import VersionedMessage
from kwire.internal_topics.metadata_versions import (
    ELR_VERSION,
    METADATA_VERSION,
    RELEASES,
    MetadataRelease,
    release_of_level,
)
from kwire.internal_topics.names import METADATA_TOPIC, TRANSACTIONS_TOPIC
from kwire.internal_topics.topic_records import new_cluster
from kwire.maintenance.accepted_configs import accepted_configs, accepted_records
from kwire.maintenance.adopt.inventory import Advance, FoundDirectory, Replica, find_directory
from kwire.maintenance.adopt.remains import Remains, newest_remains, read_remains
from kwire.maintenance.adopt.replicas import AdoptedPartition, place_partition, place_without_log
from kwire.maintenance.adopt.topic_configs import configs_of_copies, default_configs, features_of_copies
from kwire.maintenance.cluster_metadata import FIRST_LEADER_EPOCH
from kwire.storage.links import explain_shared, linked_twice
from kwire.storage.meta_properties import MetaProperties
from kwire.storage.staged_directory import check_target

__all__ = ["AdoptedTopic", "Adoption", "NewController", "plan_adoption"]

NOT_KEPT = (METADATA_VERSION, ELR_VERSION, "kraft.version")
PRODUCER_ID_MARGIN = 1_000_000
"""Above the highest known producer id: brokers have handed out ids that no record has yet."""
KEPT_KINDS = frozenset(
    {
        "ConfigRecord",
        "ClientQuotaRecord",
        "AccessControlEntryRecord",
        "UserScramCredentialRecord",
        "DelegationTokenRecord",
    }
)


@dataclass(slots=True, kw_only=True)
class AdoptedTopic:
    """A topic as it will be. has_new_id: whether its directories had none. notes: what is missing."""

    name: str
    topic_id: UUID
    configs: dict[str, str]
    partitions: dict[int, AdoptedPartition] = field(default_factory=dict)
    has_new_id: bool = False
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewController:
    """A directory of a controller that does not exist yet. path: missing or empty. directory_id: it will have."""

    path: str
    node_id: int
    directory_id: UUID = field(default_factory=new_uuid)


@dataclass(slots=True, kw_only=True)
class Adoption:
    """A plan to adopt log directories.

    problems: what prevents it. notes: what is missing. assumptions: what the directories do not tell. cluster: the
    metadata to write, as a snapshot at end_offset in leader_epoch. voters: of a dynamic quorum; a static one has none
    here. remains: the old metadata in use.
    """

    cluster_id: str
    release: MetadataRelease
    directories: list[FoundDirectory]
    controllers: list[NewController]
    topics: dict[str, AdoptedTopic]
    cluster: ClusterState
    end_offset: int
    leader_epoch: int
    voters: list[Voter]
    remains: Remains | None
    problems: list[str]
    notes: list[str]
    assumptions: list[str]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing, and nothing prevents it."""
        topics = self.topics.values()
        parts = (each for topic in topics for each in topic.partitions.values())
        return not (self.problems or self.notes or any(t.notes for t in topics) or any(p.notes for p in parts))

    def metadata_directories(self) -> dict[str, MetaProperties]:
        """Return the log directory of each node that gets the metadata log, with the ids of its meta.properties."""
        return {each.path: each.properties for each in metadata_directories(self.directories)}


def metadata_directories(directories: Iterable[FoundDirectory]) -> Iterable[FoundDirectory]:
    """Return the directory of each node that gets the metadata log: the one that has it, or the first."""
    by_node: dict[int, FoundDirectory] = {}
    for each in directories:
        if each.node_id not in by_node or each.metadata_log is not None:
            by_node[each.node_id] = each
    return by_node.values()


def plan_adoption(
    paths: Sequence[str],
    *,
    release: MetadataRelease | None = None,
    controllers: Sequence[NewController] = (),
    strays: bool = False,
    advance: Advance = lambda n: None,
) -> Adoption:
    """Compute the metadata for old log directories.

    paths: of one or of several brokers; the paths of a broker in the order of its log.dirs. release: whose features the
    cluster gets; by default the features in the old metadata or in a copy's manifest, or those of the oldest release
    that allows the directories. controllers: new nodes. strays: whether to adopt
    partitions that Kafka set aside. advance: called with the bytes read. Raises OptionError for paths that are not log
    directories, LogError.
    """
    directories = [find_directory(path, is_only=len(paths) == 1, strays=strays, advance=advance) for path in paths]
    problems = [each for directory in directories for each in directory.problems]
    notes = [each for directory in directories for each in directory.notes]
    cluster_id = check_identities(directories, controllers, problems)
    all_remains = [read_remains(each.metadata_log) for each in directories if each.metadata_log is not None]
    notes += [note for each in all_remains for note in each.notes]
    remains = newest_remains(all_remains)
    old = None if remains is None else remains.cluster
    assumptions: list[str] = []
    if old is None:
        assumptions.append("users, ACLs, quotas and configs of brokers are unknown: there will be none")
    if old is None and release is None:
        release = features_of_copies(each.path for each in directories) or oldest_release(directories, assumptions)
    release = features_of(release, old, assumptions)
    topics = plan_topics(directories, old, problems, notes, assumptions)
    accepted = accepted_configs({each.name: each.configs for each in topics.values()}, release, assumptions)
    for topic in topics.values():
        topic.configs = accepted[topic.name]
    cluster = new_cluster(
        [
            Topic(
                name=each.name, topic_id=each.topic_id, partitions={i: p.partition for i, p in each.partitions.items()}
            )
            for each in topics.values()
        ],
        release,
        configs=accepted,
        next_producer_id=next_producer_id(directories, old),
        others=[] if old is None else accepted_records(kept_records(old), release, assumptions),
    )
    return Adoption(
        cluster_id=cluster_id,
        release=release,
        directories=directories,
        controllers=list(controllers),
        topics=topics,
        cluster=cluster,
        end_offset=max(cluster.end_offset, *(each.end_offset + 1 for each in all_remains), 1),
        leader_epoch=max(FIRST_LEADER_EPOCH, *(each.leader_epoch + 1 for each in all_remains), 0),
        voters=plan_voters(directories, controllers, old, assumptions),
        remains=remains,
        problems=problems,
        notes=notes,
        assumptions=assumptions,
    )


def oldest_release(directories: Sequence[FoundDirectory], assumptions: list[str]) -> MetadataRelease:
    """Return the oldest release whose features allow these directories: every later release starts with them."""
    nodes = [each.node_id for each in directories]
    release = RELEASES["3.7"] if len(nodes) > len(set(nodes)) else RELEASES["3.3"]  # with several log.dirs
    assumptions.append(
        f"the features of the old cluster are unknown: it gets the features of Kafka {release.name}, with which later "
        "releases start as well; raise them with kafka-features.sh upgrade, or run this again with --kafka-version"
    )
    return release


def features_of(release: MetadataRelease | None, old: ClusterState | None, assumptions: list[str]) -> MetadataRelease:
    """Return the features to finalize: as in the old metadata, raised to a given release, or lowered to an older."""
    if old is None:
        assert release is not None
        return release
    level = old.features.get(METADATA_VERSION, 0)
    if release is not None and release.level < level:
        return release
    features = {name: number for name, number in old.features.items() if name not in NOT_KEPT}
    if old.features.get(ELR_VERSION):
        assumptions.append(
            "eligible leader replicas will be disabled; when all brokers are in sync, enable them with "
            f"kafka-features.sh upgrade --feature {ELR_VERSION}={old.features[ELR_VERSION]}"
        )
    if release is not None:
        level = release.level
        features = {**release.other_features, **features}
    return release_of_level(level, features)


def check_identities(
    directories: Sequence[FoundDirectory], controllers: Sequence[NewController], problems: list[str]
) -> str:
    """Return the cluster id; add to problems where directories do not belong together. Raises OptionError."""
    ids: dict[str, str] = {}
    seen: dict[str, str] = {}
    places: dict[tuple[int, str, int], str] = {}
    metadata: dict[int, str] = {}
    for each in directories:
        if each.properties.cluster_id:
            ids.setdefault(each.properties.cluster_id, each.path)
        for key in (each.path, each.properties.directory_id):
            if key in seen:
                raise OptionError(f"{each.path}: the same directory as {seen[key]}, by its path or its directory.id")
        seen[each.path] = seen[each.properties.directory_id] = each.path
        for replica in each.replicas:
            place = (each.node_id, replica.topic, replica.partition)
            if place in places:
                problems.append(
                    f"{replica.path}: node {each.node_id} has this partition in {places[place]} too; if the "
                    "directories are of two brokers, correct node.id in one meta.properties, else move one away"
                )
            places[place] = each.path
        if each.metadata_log is not None:
            if each.node_id in metadata:
                problems.append(f"{each.path}: node {each.node_id} has a metadata log in {metadata[each.node_id]} too")
            metadata[each.node_id] = each.path
    shared = linked_twice(each.path for each in directories)
    problems += [f"{path}: {explain_shared(other)}" for path, other in shared.items()]
    if len(ids) > 1:
        named = ", ".join(f"{cluster} ({path})" for cluster, path in ids.items())
        raise OptionError(f"directories of different clusters: {named}; adopt one cluster at a time")
    nodes = {each.node_id for each in directories}
    for controller in controllers:
        check_target(controller.path)
        if controller.node_id in nodes:
            raise OptionError(f"{controller.path}: node {controller.node_id} has another directory")
        nodes.add(controller.node_id)
    return next(iter(ids), None) or render_uuid(new_uuid())


def plan_voters(
    directories: Sequence[FoundDirectory],
    controllers: Sequence[NewController],
    old: ClusterState | None,
    assumptions: list[str],
) -> list[Voter]:
    """Return the voters of a dynamic quorum: voters of the old metadata whose directories are adopted or made anew."""
    if old is None or not old.kraft_version:
        return []
    nodes = {each.node_id: each.directory_id for each in metadata_directories(directories)}
    nodes |= {each.node_id: each.directory_id for each in controllers}
    voters = [replace(each, directory_id=nodes[each.node_id]) for each in old.voters.values() if each.node_id in nodes]
    lost = sorted(set(old.voters) - set(nodes))
    names = ", ".join(map(str, lost))
    if not voters:
        assumptions.append(
            f"the quorum was dynamic, and none of its voters {names} is given: it will be static, "
            "so set controller.quorum.voters on all nodes"
        )
    elif lost:
        assumptions.append(f"nodes {names} are no longer voters of the quorum")
    return voters


def next_producer_id(directories: Iterable[FoundDirectory], old: ClusterState | None) -> int:
    """Return a producer id above all that may be in use, the first of a block of 1,000."""
    highest = max([0, *(each.highest_producer_id + 1 for each in directories), old.next_producer_id if old else 0])
    return -(-highest // 1000) * 1000 + PRODUCER_ID_MARGIN


def kept_records(old: ClusterState) -> list[VersionedMessage]:
    """Return the records of the old metadata that directories do not tell: users, ACLs, quotas, other configs."""
    topic_configs = {
        ("ConfigRecord", *resource, name)
        for resource, configs in old.configs.items()
        if resource[0] == ConfigResource.TOPIC.label
        for name in configs
    }
    return [record for key, record in old.records.items() if key[0] in KEPT_KINDS and key not in topic_configs]


# ---- topics


def plan_topics(
    directories: Sequence[FoundDirectory],
    old: ClusterState | None,
    problems: list[str],
    notes: list[str],
    assumptions: list[str],
) -> dict[str, AdoptedTopic]:
    """Return the topics of the directories and of the old metadata."""
    replicas_by_topic: defaultdict[str, list[Replica]] = defaultdict(list)
    for directory in directories:
        for replica in directory.replicas:
            replicas_by_topic[replica.topic].append(replica)
    registered = {} if old is None else old.topics
    copied = configs_of_copies((each.path for each in directories), notes)
    given = sorted({each.node_id for each in directories if each.replicas or not each.metadata_log})
    names = sorted({*replicas_by_topic, *registered} - {METADATA_TOPIC})
    planned = {}
    unknown = []
    for name in names:
        topic, usable = identify(
            name, replicas_by_topic[name], registered.get(name), old is not None, problems, assumptions
        )
        known = registered.get(name)
        if known is not None and known.topic_id != topic.topic_id:
            known = None
        place_partitions(topic, usable, known, given)
        configs = None if known is None or old is None else old.configs_of(ConfigResource.TOPIC, name)
        if configs is None:
            configs = copied.get(name)
        if configs is None:
            unknown.append(name)
            configs = default_configs(
                name,
                is_compacted=any(each.is_compacted for each in usable),
                replicas=min(len(each.partition.replicas) for each in topic.partitions.values()),
            )
        topic.configs = dict(configs)
        planned[name] = topic
    if TRANSACTIONS_TOPIC not in replicas_by_topic:
        note_open_transactions(planned.values())
    if unknown:
        assumptions.append(
            f"unknown configs of {counted(len(unknown), 'topic')}: those that were compacted get "
            "cleanup.policy=compact, internal topics Kafka's own configs, all others retention.ms=-1 and "
            "retention.bytes=-1: nothing is deleted"
        )
    return planned


def identify(
    name: str,
    replicas: Sequence[Replica],
    registered: Topic | None,
    has_metadata: bool,
    problems: list[str],
    assumptions: list[str],
) -> tuple[AdoptedTopic, list[Replica]]:
    """Return the topic, still without partitions and configs, and the replicas that are of its id."""
    by_id: defaultdict[UUID, list[Replica]] = defaultdict(list)
    for each in replicas:
        if each.topic_id is not None:
            by_id[each.topic_id].append(each)
    notes = []
    if registered is not None and (registered.topic_id in by_id or not by_id):
        topic_id = registered.topic_id
    elif by_id:
        topic_id = next(iter(by_id))
        if len(by_id) > 1:
            listed = "; ".join(
                f"{render_uuid(each)} in {', '.join(sorted({one.path for one in holders}))[:300]}"
                for each, holders in by_id.items()
            )
            problems.append(f"{name}: several topic ids: {listed}; move the directories of the deleted topics away")
    else:
        topic_id = new_uuid()
    for each in replicas:
        if each.problem is not None:
            if registered is None and not by_id:
                problems.append(f"{each.problem}; the topic's id is unknown: remove the file, and a new id is assigned")
            else:
                assumptions.append(f"{each.problem}; the file is written again")
    usable = [each for each in replicas if each.topic_id in (None, topic_id)]
    if registered is not None and registered.topic_id == topic_id:
        others = [each for each in replicas if each not in usable]
        notes += [f"{each.path}: not used: its topic id is not that of the old metadata" for each in others]
    if has_metadata and registered is None:
        assumptions.append(f"{name}: not in the old metadata; adopted from its directories")
    has_new_id = registered is None and not by_id
    return AdoptedTopic(name=name, topic_id=topic_id, configs={}, has_new_id=has_new_id, notes=notes), usable


def place_partitions(
    topic: AdoptedTopic, replicas: Sequence[Replica], registered: Topic | None, given: Sequence[int]
) -> None:
    """Add the partitions of a topic; numbers without a log get one, because clients divide keys by their number."""
    replicas_by_partition: defaultdict[int, list[Replica]] = defaultdict(list)
    for each in replicas:
        replicas_by_partition[each.partition].append(each)
    known = {} if registered is None else registered.partitions
    others = sorted({each.node_id for each in replicas}) or given or all_replicas(known.values())
    for index in range(max([*replicas_by_partition, *known], default=-1) + 1):
        if index in replicas_by_partition:
            topic.partitions[index] = place_partition(index, replicas_by_partition[index], known.get(index), given)
        else:
            topic.partitions[index] = place_without_log(index, known.get(index), given, others)


def note_open_transactions(topics: Iterable[AdoptedTopic]) -> None:
    """Note transactions that no coordinator will end, since its log is missing."""
    for topic in topics:
        for each in topic.partitions.values():
            if each.replicas and each.replicas[0].open_transaction is not None:
                each.notes.append(
                    f"open transaction at offset {each.replicas[0].open_transaction}, and no {TRANSACTIONS_TOPIC}: "
                    "read_committed consumers wait there until kafka-transactions.sh abort ends it"
                )


def all_replicas(partitions: Iterable[Partition]) -> list[int]:
    """Return the nodes that have replicas of a topic in the old metadata."""
    return sorted({node for each in partitions for node in each.replicas})
