"""Copy topics of a running cluster into a log directory, batch for batch.

The brokers' stored batches arrive unchanged in Fetch responses; a log directory is built around them as a follower
does: segments, indexes, producer snapshots, leader epochs, checkpoints. Offsets, timestamps, producer ids, sequences,
transaction markers, epochs and compression are the same as in the source.

    TARGET/orders-0, ...           partitions, with their topic ids
    TARGET/kwire-manifest.json     what was copied, with hashes; see kwire.maintenance.pull.manifest

A run copies up to the high watermarks that it finds at its start, the groups' and transactions' topics first:
no committed offset lies beyond the copied records. A later run, also after a crash, continues at the end of each log.
The copy keeps records that retention or compaction remove from the source after they were copied.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from kwire.client.client import Client
from kwire.client.cluster import Cluster, Topic
from kwire.errors import BrokerError, ConnectionFailed, KwireError, OptionError
from kwire.identifiers import TopicPartition
from kwire.log.reading.paths import StorageOptions
from kwire.maintenance.pull import coordinators
from kwire.maintenance.pull.cluster import Bounds, SourceCluster
from kwire.maintenance.pull.copier import Copier
from kwire.maintenance.pull.directory_target import DirectoryTarget
from kwire.maintenance.pull.made_logs import MadeLogs
from kwire.maintenance.pull.manifest import Event, Manifest, PartitionEntry, now
from kwire.maintenance.pull.state import CopyState
from kwire.maintenance.pull.store_target import StoreTarget
from kwire.maintenance.pull.survey import Known, Surveyor, describe
from kwire.maintenance.pull.target import Target
from kwire.storage.file_system import FileSystem
from kwire.storage.writable_store import is_local, open_writable_store

__all__ = ["Pull", "PullOptions", "PullResult", "pull", "start"]

METADATA_S = 10.0
LOGGER = logging.getLogger("kwire.client.pull")
ONE_PARTITION_MS = 2000
"""How long --follow waits for a partition's leader before it goes on with others, and asks again at the next survey."""
SURVEY_MS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """Options of a pull.

    topics: patterns (*, ?) of topic names; all topics by default. partitions: numbers, all by default. groups: copy the
    internal topics of groups and transactions as well. cluster: describe users, ACLs, quotas and configs of brokers in
    the manifest. follow: go on with new records, and new topics and partitions, until stop(). Raises OptionError.
    """

    topics: Sequence[str] = ()
    partitions: Sequence[int] | None = None
    groups: bool = True
    cluster: bool = True
    follow: bool = False

    def __post_init__(self) -> None:
        """Raise OptionError for a string of topics, whose letters would be patterns, and for one partition."""
        if isinstance(self.topics, str):
            raise OptionError(f"topics: expected a list of names and patterns, got the string {self.topics!r}")
        if self.partitions is not None and not isinstance(self.partitions, Collection):
            raise OptionError(f"partitions: expected a list of numbers, got {self.partitions!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PullResult:
    """Result of a pull.

    manifest: of the whole copy. copied, copied_bytes, events: of this run. failures: partitions that could not be
    copied to their end.
    """

    manifest: Manifest
    copied: Mapping[TopicPartition, PartitionEntry]
    copied_bytes: int
    events: Sequence[Event]
    failures: Mapping[TopicPartition, KwireError]
    is_complete: bool


class Pull:
    """A run of pull(): decides what to copy, at its beginning and, with options.follow, again and again.

    state: what the copy has. surveyor: looks for what is new, beside the copying.
    """

    def __init__(self, options: PullOptions, cluster: Cluster, surveyor: Surveyor, copier: Copier) -> None:
        self.options, self.state = options, copier.state
        self._cluster, self._surveyor, self._copier = cluster, surveyor, copier
        self._made = MadeLogs(copier.target, copier.state)
        self._look_at = 0.0

    def close(self) -> None:
        """Close the connections that are not the client's."""
        self._copier.close()
        self._surveyor.close()

    # ---- the beginning

    def set_aside(self, key: TopicPartition) -> None:
        """Set aside the copy of an earlier topic of the same name."""
        self._copier.set_aside_recreated(key)

    def bounds(self, topics: Sequence[Topic]) -> dict[TopicPartition, Bounds]:
        """Return the offsets to copy of partitions that are not open; what has none is a failure."""
        bounds, errors = self._copier.source.bounds(topics, self.options.partitions, self.state.copies)
        self.state.failures |= errors
        return bounds

    def begin(self, topics: Sequence[Topic]) -> None:
        """Open the copies of topics and fetch them."""
        unknown = [topic for topic in topics if topic.name not in self.state.topics]
        self._copier.add_topics(self._copier.source.configs(unknown))
        for key, bounds in self.bounds(topics).items():
            self._copier.open(key, bounds)

    def describe(self) -> None:
        """Describe the cluster, and write logs of coordinators' topics that the account may not read."""
        source = self._surveyor.source
        if self.options.groups:
            self._made.set_aside(self._cluster, coordinators.DESCRIBED - source.unreadable)
        described, made = describe(source, self._cluster, self._known())
        self.state.described = described or self.state.described
        self._made.write(made)

    def copy(self, stop: Callable[[], bool], progress: Callable[[int], None]) -> None:
        """Fetch until every partition is complete or has failed; with follow, until stop()."""
        self._look_at = time.monotonic() + METADATA_S
        look = self._look if self.options.follow else lambda: None
        self._copier.run(checkpoint=self.checkpoint, stop=stop, progress=progress, look=look)

    # ---- what is new

    def _known(self) -> Known:
        earlier = {} if self.state.earlier is None else self.state.earlier.topics
        exact = [name for name, each in earlier.items() if not each.made_from]
        return Known(
            topics=frozenset(name for name, each in self.state.topics.items() if not each.made_from),
            partitions=frozenset(self.state.copies),
            chosen=self.options.partitions,
            cluster=self.state.described,
            made=self._made.keys_of(coordinators.DESCRIBED & self._surveyor.source.unreadable - set(exact)),
            exact=exact,
        )

    def _look(self) -> None:
        """Begin a survey if it is time to, in another thread; copy what one that has ended found."""
        if time.monotonic() > self._look_at:
            self._surveyor.begin(self._known())
            self._look_at = time.monotonic() + METADATA_S
        try:
            survey = self._surveyor.take()
        except (BrokerError, ConnectionFailed) as error:
            if not self._surveyor.source.client.is_retriable(error):
                raise
            LOGGER.warning("cannot look for new topics: %s; trying again", error)
            return
        if survey is None:
            return
        self.state.described = survey.described or self.state.described
        self._made.write(survey.made)
        self._copier.add_topics(survey.topics)
        self.state.failures |= survey.errors
        for key, bounds in survey.bounds.items():
            self._copier.open(key, bounds)
        self._copier.follow_cluster(survey.cluster)

    # ---- the manifest

    def checkpoint(self) -> None:
        """Write the checkpoints and the manifest."""
        self._copier.target.checkpoint(self.manifest, now_ms=now())

    def manifest(self) -> Manifest:
        """Return the manifest of the copy as it is now."""
        beside = self._surveyor.source
        hidden = [*self._copier.source.hidden, *beside.hidden, *beside.away]
        return self.state.manifest(list(dict.fromkeys(hidden)))


def pull(
    client: Client,
    target: str | Target,
    options: PullOptions | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda n: None,
    file_system: FileSystem | None = None,
    storage_options: StorageOptions | None = None,
) -> PullResult:
    """Copy topics of a cluster into a new log directory, or continue an earlier copy.

    target: a path, or the URL of an object store, whose driver gets storage_options.
    stop: called between responses; with options.follow, the run ends when it returns True. progress: called with bytes
    copied.
    Raises OptionError for a target that is not a copy of this cluster; LogError if it cannot be written; BrokerError,
    ConnectionFailed if the cluster cannot be reached. What is copied until then stays, and a later run continues there.
    Errors of single partitions are in the result.
    """
    place = target if isinstance(target, Target) else open_target(target, storage_options or {}, file_system)
    run, topics = start(client, place, options or PullOptions())
    is_clean = False
    try:
        run.describe()
        run.begin(topics)
        run.checkpoint()
        run.copy(stop, progress)
        is_clean = True
    except KeyboardInterrupt:
        is_clean = True
        raise
    finally:
        run.close()
        place.close(run.manifest, clean=is_clean)
    state = run.state
    return PullResult(
        manifest=run.manifest(),
        copied=state.entries(),
        copied_bytes=state.copied_bytes,
        events=state.events,
        failures=state.failures,
        is_complete=state.is_complete,
    )


def start(client: Client, place: Target, options: PullOptions) -> tuple[Pull, list[Topic]]:
    """Open the target, and return a run and its topics. Raises as pull()."""

    def source_of(client: Client, *, limit_ms: int | None) -> SourceCluster:
        return SourceCluster(
            client=client,
            patterns=options.topics,
            with_groups=options.groups,
            with_cluster=options.cluster,
            limit_ms=limit_ms,
        )

    source = source_of(client, limit_ms=ONE_PARTITION_MS if options.follow else None)
    cluster = source.metadata()
    source.require_matches(cluster)
    beside = source_of(client.another(limit_ms=SURVEY_MS), limit_ms=ONE_PARTITION_MS)
    with ExitStack() as unless_done:
        unless_done.callback(beside.client.close)
        if options.groups:
            beside.find_unreadable(cluster)
        topics = [topic for topic in beside.select(cluster) if not topic.error_code]
        earlier = place.read_manifest(cluster.cluster_id)
        described = {each.topic.name: each for each in source.configs(topics)}
        if earlier is None:
            place.begin(Manifest.begun(cluster.cluster_id, servers_of(client), now()))
        configs = {name: each.log_config for name, each in described.items()}
        place.open(cluster_id=cluster.cluster_id, configs=configs, earlier=earlier)
        unless_done.pop_all()
    state = CopyState(
        cluster_id=cluster.cluster_id,
        servers=servers_of(client),
        earlier=earlier,
        topics=described,
        failures=beside.not_copied(cluster),
    )
    run = Pull(options, cluster, Surveyor(beside), Copier(client, source, place, state, follow=options.follow))
    return run, topics


def open_target(url: str, options: StorageOptions, files: FileSystem | None = None) -> Target:
    """Return the target at a path or URL. Raises LogError, OptionError for a URL that is not supported."""
    if is_local(url):
        return DirectoryTarget(url.removeprefix("file://"), files or FileSystem(), now())
    return StoreTarget(open_writable_store(url, options))


def servers_of(client: Client) -> list[str]:
    """Return the bootstrap servers of a client."""
    return [f"{host}:{port}" for host, port in client.settings.bootstrap_servers]
