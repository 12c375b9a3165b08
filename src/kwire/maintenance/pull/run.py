"""Copy topics of a running cluster into a log directory, batch for batch.

The brokers' stored batches arrive unchanged in Fetch responses; a log directory is built around them as a follower
does: segments, indexes, producer snapshots, leader epochs, checkpoints. Offsets, timestamps, producer ids, sequences,
transaction markers, epochs and compression are those of the source.

    TARGET/orders-0, ...           partitions, with their topic ids
    TARGET/kwire-manifest.json     what was copied, with hashes; see kwire.maintenance.pull.manifest

A run copies up to the high watermarks that it finds at its start, those of the groups' and transactions' topics first:
no committed offset lies beyond the copied records. A later run, also after a crash, continues at the end of each log.
The copy keeps records that retention or compaction remove from the source after they were copied.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.cluster import Cluster, Topic
from kwire.client.fetcher import MISSING, Diverged, FetchedBatches, Fetcher, FetchError
from kwire.client.partition_state import fetch_leader_epochs
from kwire.errors import BrokerError, CorruptBatch, KwireError, OptionError, UnsupportedVersion
from kwire.identifiers import TopicPartition, render_uuid
from kwire.log.log_config import LogConfig
from kwire.log.paths import StorageOptions
from kwire.maintenance.pull import coordinators
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.coordinators import Described
from kwire.maintenance.pull.directory_target import DirectoryTarget
from kwire.maintenance.pull.manifest import ClusterEntry, Event, Manifest, PartitionEntry, TopicEntry
from kwire.maintenance.pull.partition_copy import PartitionCopy
from kwire.maintenance.pull.store_target import StoreTarget
from kwire.maintenance.pull.target import Target
from kwire.protocol.error_codes import ErrorCode
from kwire.records import RejectedRecords
from kwire.storage.checkpoints import LeaderEpoch
from kwire.storage.file_system import FileSystem
from kwire.storage.writable_store import is_local, open_writable_store

__all__ = ["Pull", "PullOptions", "PullResult", "copy_all", "pull", "start"]

CHECKPOINT_S = 10.0
METADATA_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PullOptions:
    """Options of a pull.

    topics: patterns (*, ?) of topic names; all topics by default. partitions: numbers, all by default. groups: copy the
    internal topics of groups and transactions as well. cluster: describe users, ACLs, quotas and configs of brokers in
    the manifest. follow: go on with new records, and new topics and partitions, until stop().
    """

    topics: Sequence[str] = ()
    partitions: Sequence[int] | None = None
    groups: bool = True
    cluster: bool = True
    follow: bool = False


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


@dataclass(slots=True, kw_only=True)
class Pull:
    """A run of pull(). done: partitions that other processes have copied."""

    client: Client
    source: SourceCluster
    target: Target
    options: PullOptions
    cluster: Cluster
    earlier: Manifest | None
    began_ms: int
    fetcher: Fetcher
    topics: dict[str, PulledTopic] = field(default_factory=dict)
    made_from: dict[str, list[str]] = field(default_factory=dict)
    written: dict[TopicPartition, dict[bytes, bytes]] = field(default_factory=dict)
    described: ClusterEntry | None = None
    copies: dict[TopicPartition, PartitionCopy] = field(default_factory=dict)
    done: dict[TopicPartition, PartitionEntry] = field(default_factory=dict)
    failures: dict[TopicPartition, KwireError] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    copied_bytes: int = 0

    # ---- partitions

    def begin(self, topics: Sequence[Topic]) -> None:
        """Open the copies of topics and fetch them."""
        self._describe([topic for topic in topics if topic.name not in self.topics])
        for key, found in self.bounds(topics).items():
            self.open(key, found)

    def bounds(self, topics: Sequence[Topic]) -> dict[TopicPartition, Bounds]:
        """Return the offsets to copy of partitions that are not open."""
        chosen = self.options.partitions
        keys = [(topic.name, n) for topic in topics for n in topic.partitions if chosen is None or n in chosen]
        # internal topics first: see SourceCluster.select
        internal = {topic.name for topic in topics if topic.is_internal}
        bounds: dict[TopicPartition, Bounds] = {}
        for group in ([key for key in keys if key[0] in internal], [key for key in keys if key[0] not in internal]):
            bounds |= self.source.bounds([key for key in group if key not in self.copies])
        return bounds

    def _describe(self, topics: Sequence[Topic]) -> None:
        """Look up the configs of topics, and use them for their copies."""
        for each in self.source.configs(topics):
            self.topics[each.topic.name] = each
            self.target.set_config(each.topic.name, log_config(each.configs))

    def set_aside_recreated(self, key: TopicPartition) -> None:
        """Set aside the copy of an earlier topic of the same name."""
        topic_id = self.topics[key[0]].topic.topic_id
        if topic_id is not None and self.target.topic_id(key) not in (None, topic_id):
            self._happened("recreated", key, end_offset=self.target.set_aside(key))

    def open(self, key: TopicPartition, bounds: Bounds) -> None:
        """Open or create the copy of a partition, and fetch it."""
        now_ms, topic_id = now(), self.topics[key[0]].topic.topic_id
        self.set_aside_recreated(key)
        copy = self.copies[key] = self.target.copy(
            key,
            topic_id=topic_id,
            log_start_offset=bounds.log_start_offset,
            high_watermark=bounds.high_watermark,
            now_ms=now_ms,
        )
        if copy.is_empty and bounds.log_start_offset == bounds.high_watermark:
            copy.begin_at(bounds.high_watermark, now_ms=now_ms)
        if self.options.follow or not copy.is_at_end:
            self.fetcher.add(key, copy.position())

    # ---- what the account may not read

    def describe(self) -> None:
        """Describe the cluster, and write logs of coordinators' topics that the account may not read."""
        if self.options.cluster:
            self.described = self.source.describe()
        for name in sorted(coordinators.DESCRIBED & self.source.unreadable):
            entry = None if self.earlier is None else self.earlier.topics.get(name)
            if entry is not None and not entry.made_from:
                self.source.hide(f"topic {name}: its copy has nothing later than the run that could read it")
                continue
            count = len(entry.partitions if entry is not None else self._partitions_of(name)) or coordinators.PARTITIONS
            try:
                found = coordinators.describe(self.client, name, count)
            except (BrokerError, UnsupportedVersion) as error:
                self.source.hide(f"contents of topic {name}: {error}")
                continue
            for what, reason in found.requests.unseen.items():
                self.source.hide(f"{what}: {reason}")
            if any(found.values) or entry is not None:
                self._write(name, found)

    def _partitions_of(self, name: str) -> Collection[int]:
        topic = self.cluster.topics.get(name)
        return () if topic is None else topic.partitions

    def _write(self, name: str, described: Described) -> None:
        """Bring the log of a coordinator's topic to what the admin APIs say."""
        self.target.set_config(name, log_config(coordinators.CONFIGS))
        keys = [(name, number) for number in range(len(described.values))]
        existing = {key: found for key in keys if (found := self.target.topic_id(key)) is not None}
        topic_id = next(iter(existing.values()), None) or uuid.uuid4()
        if name not in self.made_from:
            self.written |= coordinators.read_values(self.target.url, existing, self.target.options)
        for key, values in zip(keys, described.values, strict=True):
            if key not in self.copies:
                self.copies[key] = self.target.copy(
                    key, topic_id=topic_id, log_start_offset=0, high_watermark=0, now_ms=now()
                )
            copy, written = self.copies[key], self.written.setdefault(key, {})
            data = coordinators.changes(written, values, base_offset=copy.log.log_end_offset, now_ms=now())
            self.copied_bytes += copy.append(memoryview(data), up_to=None, now_ms=now())
            copy.high_watermark = copy.log.log_end_offset
            self.target.appended(key)
        topic = Topic(name=name, topic_id=topic_id, is_internal=True, partitions={})
        self.topics[name] = PulledTopic(topic=topic, configs=coordinators.CONFIGS)
        self.made_from[name] = described.requests.apis

    def set_aside_made(self) -> None:
        """Set aside logs made from admin APIs whose topics the account may read now."""
        for name in sorted(coordinators.DESCRIBED - self.source.unreadable):
            topic = self.cluster.topics.get(name)
            entry = None if self.earlier is None else self.earlier.topics.get(name)
            if not self.options.groups or topic is None or (entry is not None and not entry.made_from):
                continue
            for number in range(max(coordinators.PARTITIONS, len(entry.partitions if entry is not None else ()))):
                key = name, number
                if self.target.topic_id(key) not in (None, topic.topic_id) and (end := self.target.set_aside(key)):
                    self._happened("readable", key, end_offset=end)
            if self.earlier is not None:
                self.earlier.topics.pop(name, None)

    def _happened(
        self, kind: str, key: TopicPartition, first: int | None = None, end_offset: int | None = None
    ) -> None:
        self.events.append(
            Event(time_ms=now(), kind=kind, topic=key[0], partition=key[1], first_offset=first, end_offset=end_offset)
        )

    # ---- results of fetches

    def step(self, progress: Callable[[int], None]) -> None:
        """Handle the next response."""
        for result in self.fetcher.poll():
            try:
                match result:
                    case FetchedBatches():
                        progress(self._append(result))
                    case Diverged():
                        self._truncate(result)
                    case FetchError():
                        self._solve(result)
            except (CorruptBatch, RejectedRecords, BrokerError) as error:
                self._fail(result.key, error)

    def _append(self, result: FetchedBatches) -> int:
        copy = self.copies[result.key]
        follow = self.options.follow
        if follow:
            copy.high_watermark = max(copy.high_watermark, result.fetched.high_watermark)
        is_whole = follow or result.after.offset <= copy.high_watermark
        n = copy.append(result.fetched.records, up_to=None if is_whole else copy.high_watermark, now_ms=now())
        self.copied_bytes += n
        self.target.appended(result.key)
        if not is_whole:
            copy.high_watermark = copy.log.log_end_offset  # compaction left no batch between it and the high watermark
        if not follow and copy.is_complete:
            self.fetcher.remove(result.key)
        return n

    def _truncate(self, result: Diverged) -> None:
        """Follow a leader that does not have the end of the copy (KIP-101, KIP-320)."""
        copy = self.copies[result.key]
        log = copy.log
        _, own_end = log.end_offset_for(result.leader_epoch)
        end = min(result.end_offset, log.log_end_offset, own_end if own_end >= 0 else log.log_end_offset)
        self._cut(result.key, end)

    def _cut(self, key: TopicPartition, offset: int) -> None:
        copy = self.copies[key]
        if offset < copy.log.log_end_offset:
            self._happened("truncated", key, offset, copy.log.log_end_offset)
            copy = self.copies[key] = self.target.truncate(key, offset, now_ms=now())
            latest = self.client.list_offsets({key: LATEST_TIMESTAMP}, isolation="read_uncommitted")[key].offset
            copy.high_watermark = min(copy.high_watermark, latest)  # of the new leader
        if self.options.follow or not copy.is_complete:
            self.fetcher.seek(key, copy.position())
        else:
            self.fetcher.remove(key)

    def _solve(self, result: FetchError) -> None:
        """Handle an error of a partition; what cannot be solved is recorded as its failure."""
        code = result.error.code if isinstance(result.error, BrokerError) else None
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._find_range(result.key)
        elif code in MISSING:
            self._find_topic(result.key, result.error)
        else:
            self._fail(result.key, result.error)

    def _find_range(self, key: TopicPartition) -> None:
        """Continue where the leader's log begins, or ends, if it is not where the copy ends."""
        copy = self.copies[key]
        start = self.client.list_offsets({key: EARLIEST_TIMESTAMP})[key].offset
        end = self.client.list_offsets({key: LATEST_TIMESTAMP}, isolation="read_uncommitted")[key].offset
        position = copy.position()
        if position.offset < start:
            self._happened("gap", key, position.offset, start)
            if copy.is_empty:
                copy.log_start_offset = start
            if not self.options.follow and start >= copy.high_watermark:
                copy.high_watermark = copy.log.log_end_offset  # nothing is left of what the run began with
                self.fetcher.remove(key)
                return
            self.fetcher.seek(key, position._replace(offset=start, leader_epoch=-1))
        elif position.offset > end:
            # a new leader may not know its high watermark yet, but it knows where the epochs end
            theirs = fetch_leader_epochs(self.client, key, start)
            shared = common_end(copy.log.leader_epochs.entries, copy.log.log_end_offset, theirs, end)
            self._cut(key, end if shared is None else shared)
        else:
            self.fetcher.seek(key, position)

    def _find_topic(self, key: TopicPartition, error: KwireError) -> None:
        """Handle a topic that was deleted, or deleted and created again."""
        self.cluster = self.source.metadata()
        topic = self.cluster.topics.get(key[0])
        if topic is None or key[1] not in topic.partitions:
            self._happened("deleted", key, end_offset=self.copies[key].log.log_end_offset)
            self.fetcher.remove(key)
            if not self.copies[key].is_complete:
                self._fail(key, error)
        elif topic.topic_id != self.copies[key].log.topic_id:
            self.fetcher.remove(key)
            self._describe([topic])
            for found, bounds in self.source.bounds([key]).items():
                self.open(found, bounds)
        else:
            self._fail(key, error)

    def give_up(self, seconds: float) -> None:
        """End the partitions that are still fetched: there was nothing to copy for that many seconds."""
        for key in [key for key in self.copies if key in self.fetcher]:
            copy = self.copies[key]
            what = f"{key[0]}-{key[1]}: no records from offset {copy.position().offset} on for {seconds:.0f} s"
            what += f"; the high watermark was {copy.high_watermark}"
            self._fail(key, BrokerError(what, ErrorCode.REQUEST_TIMED_OUT))

    def _fail(self, key: TopicPartition, error: KwireError) -> None:
        self.failures[key] = error
        self.fetcher.remove(key)

    # ---- periodic work

    def look_for_new(self) -> None:
        """Copy topics and partitions that were created since, and describe the cluster again."""
        self.cluster = self.source.metadata()
        if self.options.groups:
            self.source.find_unreadable(self.cluster, self.topics)
        self.describe()
        topics = self.source.select(self.cluster)
        new = [
            topic
            for topic in topics
            if any((topic.name, number) not in self.copies for number in topic.partitions) and not topic.error_code
        ]
        if new:
            self.begin(new)
        for topic in topics:
            for number in topic.partitions:
                copy = self.copies.get((topic.name, number))
                if copy is not None and topic.topic_id not in (None, copy.log.topic_id):
                    key = topic.name, number
                    self._find_topic(key, BrokerError(f"{topic.name}-{number}", ErrorCode.UNKNOWN_TOPIC_ID))

    def checkpoint(self) -> None:
        """Write the checkpoints and the manifest."""
        self.target.checkpoint(self.manifest, now_ms=now())

    @property
    def is_complete(self) -> bool:
        """Whether the partitions are copied up to their high watermarks."""
        found = [each.is_complete for each in self.copies.values()] + [each.is_complete for each in self.done.values()]
        return bool(found) and not self.failures and all(found)

    def manifest(self) -> Manifest:
        """Return the state of the copy, with the topics of earlier runs."""
        earlier = self.earlier
        topics: dict[str, TopicEntry] = {} if earlier is None else dict(earlier.topics)
        written = self.done | {key: copy.entry() for key, copy in sorted(self.copies.items())}
        found: dict[str, dict[int, PartitionEntry]] = {name: {} for name in self.topics}
        for (name, number), entry in written.items():
            found[name][number] = entry
        for name, pulled in sorted(self.topics.items()):
            topic_id = None if pulled.topic.topic_id is None else render_uuid(pulled.topic.topic_id)
            before = topics.get(name)
            others = {} if before is None or before.id != topic_id else before.partitions
            partitions = dict(sorted((others | found[name]).items()))
            topics[name] = TopicEntry(
                id=topic_id, configs=pulled.configs, partitions=partitions, made_from=self.made_from.get(name, [])
            )
        return Manifest(
            cluster_id=self.cluster.cluster_id,
            bootstrap_servers=[f"{host}:{port}" for host, port in self.client.settings.bootstrap_servers],
            began_ms=self.began_ms,
            written_ms=now(),
            complete=self.is_complete and all(entry.is_complete for entry in written.values()),
            topics=topics,
            hidden=self.source.hidden,
            events=[*(() if earlier is None else earlier.events), *self.events],
            cluster=self.described or (None if earlier is None else earlier.cluster),
        )


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
        run.set_aside_made()
        run.describe()
        run.begin(topics)
        run.checkpoint()
        copy_all(run, stop, progress)
        is_clean = True
    except KeyboardInterrupt:
        is_clean = True
        raise
    finally:
        run.fetcher.close()
        place.close(run.manifest, clean=is_clean)
    return PullResult(
        manifest=run.manifest(),
        copied={key: copy.entry() for key, copy in sorted(run.copies.items())},
        copied_bytes=run.copied_bytes,
        events=run.events,
        failures=run.failures,
        is_complete=run.is_complete,
    )


def start(client: Client, place: Target, options: PullOptions) -> tuple[Pull, list[Topic]]:
    """Open the target, and return a run and its topics. Raises as pull()."""
    source = SourceCluster(client=client, patterns=options.topics, with_groups=options.groups)
    cluster = source.metadata()
    if options.groups:
        source.find_unreadable(cluster)
    topics = [topic for topic in source.select(cluster) if not topic.error_code]
    earlier = place.read_manifest(cluster.cluster_id)
    described = {each.topic.name: each for each in source.configs(topics)}
    if earlier is None:
        place.begin(empty_manifest(client, cluster))
    configs = {name: log_config(each.configs) for name, each in described.items()}
    place.open(cluster_id=cluster.cluster_id, configs=configs, earlier=earlier)
    run = Pull(
        client=client,
        source=source,
        target=place,
        options=options,
        cluster=cluster,
        earlier=earlier,
        began_ms=now(),
        fetcher=Fetcher(client),
        topics=described,
    )
    return run, topics


def copy_all(run: Pull, stop: Callable[[], bool], progress: Callable[[int], None]) -> None:
    """Fetch until every partition is complete or has failed; with follow, until stop()."""
    checkpoint_at, metadata_at = time.monotonic() + CHECKPOINT_S, time.monotonic() + METADATA_S
    patience_s = run.client.settings.default_api_timeout_ms / 1000
    copied, give_up_at = run.copied_bytes, time.monotonic() + patience_s
    while (run.options.follow or len(run.fetcher)) and not stop():
        if run.options.follow and time.monotonic() > metadata_at:
            run.look_for_new()
            metadata_at = time.monotonic() + METADATA_S
        run.step(progress)
        if run.copied_bytes != copied:
            copied, give_up_at = run.copied_bytes, time.monotonic() + patience_s
        elif not run.options.follow and time.monotonic() > give_up_at:
            run.give_up(patience_s)
        if time.monotonic() > checkpoint_at:
            run.checkpoint()
            checkpoint_at = time.monotonic() + CHECKPOINT_S


def open_target(url: str, options: StorageOptions, files: FileSystem | None = None) -> Target:
    """Return the target at a path or URL. Raises LogError, OptionError for a URL that is not supported."""
    if is_local(url):
        return DirectoryTarget(url.removeprefix("file://"), files or FileSystem(), now())
    return StoreTarget(open_writable_store(url, options))


def empty_manifest(client: Client, cluster: Cluster) -> Manifest:
    """Return the manifest of a new copy."""
    return Manifest(
        cluster_id=cluster.cluster_id,
        bootstrap_servers=[f"{host}:{port}" for host, port in client.settings.bootstrap_servers],
        began_ms=now(),
        written_ms=now(),
        complete=False,
        topics={},
    )


def common_end(ours: Sequence[LeaderEpoch], our_end: int, theirs: Sequence[LeaderEpoch], their_end: int) -> int | None:
    """Return the lower end of the newest leader epoch that both logs have; None without one."""

    def ends(epochs: Sequence[LeaderEpoch], end: int) -> dict[int, int]:
        starts = [*(each.start_offset for each in epochs[1:]), end]
        return {each.leader_epoch: start for each, start in zip(epochs, starts, strict=True)}

    our_ends, their_ends = ends(ours, our_end), ends(theirs, their_end)
    newest = max(our_ends.keys() & their_ends.keys(), default=None)
    return None if newest is None else min(our_ends[newest], their_ends[newest])


def log_config(configs: Mapping[str, str] | None) -> LogConfig:
    """Return the configs that a log needs; those that this release does not know or accept are ignored."""
    accepted: dict[str, str] = {}
    for name, value in (configs or {}).items():
        try:
            LogConfig.parse({name: value})
        except OptionError:
            continue
        accepted[name] = value
    return LogConfig.parse(accepted)


def now() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000
