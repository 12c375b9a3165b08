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

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.cluster import Cluster, Topic
from kwire.client.fetcher import MISSING, Diverged, FetchedBatches, Fetcher, FetchError
from kwire.client.partition_state import common_end, fetch_leader_epochs
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, KwireError, OptionError
from kwire.identifiers import TopicPartition, render_uuid
from kwire.log.reading.paths import StorageOptions
from kwire.log.writing.log_config import LogConfig
from kwire.maintenance.pull import coordinators
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.coordinators import Described
from kwire.maintenance.pull.directory_target import DirectoryTarget
from kwire.maintenance.pull.manifest import ClusterEntry, Event, Manifest, PartitionEntry, TopicEntry
from kwire.maintenance.pull.partition_copy import PartitionCopy
from kwire.maintenance.pull.store_target import StoreTarget
from kwire.maintenance.pull.survey import Known, Surveyor, describe
from kwire.maintenance.pull.target import Target
from kwire.protocol.error_codes import ErrorCode
from kwire.records import RejectedRecords
from kwire.storage.file_system import FileSystem
from kwire.storage.writable_store import is_local, open_writable_store

__all__ = ["Pull", "PullOptions", "PullResult", "copy_all", "pull", "start"]

CHECKPOINT_S = 10.0
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
    """A run of pull().

    surveyor: looks for what is new beside the copying, None for a run that copies given partitions. done: partitions
    that other processes have copied.
    """

    client: Client
    source: SourceCluster
    surveyor: Surveyor | None = None
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
        self._add(self.source.configs([topic for topic in topics if topic.name not in self.topics]))
        for key, found in self.bounds(topics).items():
            self.open(key, found)

    def bounds(self, topics: Sequence[Topic]) -> dict[TopicPartition, Bounds]:
        """Return the offsets to copy of partitions that are not open; what has none is a failure."""
        bounds, errors = self.source.bounds(topics, self.options.partitions, self.copies)
        self.failures |= errors
        return bounds

    def _add(self, topics: Sequence[PulledTopic]) -> None:
        """Use the configs of topics for their copies."""
        for each in topics:
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
        self.failures.pop(key, None)
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
        assert self.surveyor is not None
        found = describe(self.surveyor.source, self.cluster, self.known())
        self._use(*found)

    def known(self) -> Known:
        """Return what the run has."""
        assert self.surveyor is not None
        earlier = {} if self.earlier is None else self.earlier.topics
        exact = [name for name, each in earlier.items() if not each.made_from]
        made = {}
        for name in coordinators.DESCRIBED & self.surveyor.source.unreadable - set(exact):
            self._read_made(name, len(earlier[name].partitions) if name in earlier else coordinators.PARTITIONS)
            count = sum(topic == name for topic, _ in self.written)
            made[name] = [frozenset(self.written[name, number]) for number in range(count)]
        return Known(
            topics=frozenset(self.topics.keys() - self.made_from.keys()),
            partitions=frozenset(self.copies),
            chosen=self.options.partitions,
            cluster=self.described or (None if self.earlier is None else self.earlier.cluster),
            made=made,
            exact=exact,
        )

    def _read_made(self, name: str, count: int) -> None:
        """Read what the copy has of a coordinator's topic that was made from admin APIs."""
        keys = [(name, number) for number in range(count)]
        if any(key in self.written for key in keys):
            return
        existing = {key for key in keys if self.target.topic_id(key) is not None}
        if existing:
            self.written |= {key: {} for key in keys}
            self.written |= coordinators.read_values(self.target.url, existing, self.target.options)

    def _use(self, described: ClusterEntry | None, made: Mapping[str, Described]) -> None:
        self.described = described or self.described
        for name, each in made.items():
            if any(each.values) or (self.earlier is not None and name in self.earlier.topics):
                self._write(name, each)

    def _write(self, name: str, described: Described) -> None:
        """Bring the log of a coordinator's topic to what the admin APIs say."""
        self.target.set_config(name, log_config(coordinators.CONFIGS))
        keys = [(name, number) for number in range(len(described.values))]
        topic_id = next(filter(None, map(self.target.topic_id, keys)), None) or uuid.uuid4()
        if name not in self.made_from:
            self._read_made(name, len(keys))
        for key, values in zip(keys, described.values, strict=True):
            if key not in self.copies:
                self.copies[key] = self.target.copy(
                    key, topic_id=topic_id, log_start_offset=0, high_watermark=0, now_ms=now()
                )
            copy, written = self.copies[key], self.written.setdefault(key, {})
            end = copy.log.log_end_offset
            data = coordinators.changes(written, values, described.kept, base_offset=end, now_ms=now())
            self.copied_bytes += copy.append(memoryview(data), up_to=None, now_ms=now())
            copy.high_watermark = copy.log.log_end_offset
            self.target.appended(key)
        topic = Topic(name=name, topic_id=topic_id, is_internal=True, partitions={})
        self.topics[name] = PulledTopic(topic=topic, configs=coordinators.CONFIGS)
        self.made_from[name] = described.requests.apis

    def set_aside_made(self) -> None:
        """Set aside logs made from admin APIs whose topics the account may read now."""
        assert self.surveyor is not None
        for name in sorted(coordinators.DESCRIBED - self.surveyor.source.unreadable):
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
            except (CorruptBatch, RejectedRecords, BrokerError, ConnectionFailed) as error:
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
            copy.high_watermark = min(copy.high_watermark, self._offset(key, LATEST_TIMESTAMP))  # of the new leader
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
        start, end = self._offset(key, EARLIEST_TIMESTAMP), self._offset(key, LATEST_TIMESTAMP)
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

    def _offset(self, key: TopicPartition, timestamp: int) -> int:
        limit_ms = self.source.limit_ms
        found, errors = self.client.find_offsets({key: timestamp}, isolation="read_uncommitted", limit_ms=limit_ms)
        for error in errors.values():
            raise error
        return found[key].offset

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
            self._add(self.source.configs([topic]))
            bounds, errors = self.source.bounds([topic], [key[1]])
            for error in errors.values():
                raise error
            for found in bounds.values():
                self.open(key, found)
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
        """Begin to look for new topics and partitions, and to describe the cluster again, in another thread."""
        assert self.surveyor is not None
        self.surveyor.begin(self.known())

    def use_survey(self) -> None:
        """Copy what a survey that has ended found, and fetch partitions again whose leader is back."""
        assert self.surveyor is not None
        try:
            found = self.surveyor.take()
        except (BrokerError, ConnectionFailed) as error:
            if not self.client.is_retriable(error):
                raise
            LOGGER.warning("cannot look for new topics: %s; trying again", error)
            return
        if found is None:
            return
        self.cluster = found.cluster
        self._use(found.described, found.made)
        self._add(found.topics)
        self.failures |= found.errors
        for key, bounds in found.bounds.items():
            self.open(key, bounds)
        self._retry(found.cluster)
        for key, copy in list(self.copies.items()):
            topic = found.cluster.topics.get(key[0])
            if topic is not None and topic.topic_id not in (None, copy.log.topic_id) and key[0] not in self.made_from:
                self._find_topic(key, BrokerError(f"{key[0]}-{key[1]}", ErrorCode.UNKNOWN_TOPIC_ID))

    def _retry(self, cluster: Cluster) -> None:
        leaders = cluster.leaders
        for key, error in list(self.failures.items()):
            if key not in leaders or key not in self.copies or not isinstance(error, (BrokerError, ConnectionFailed)):
                continue
            if self.client.is_retriable(error):
                del self.failures[key]
                self.fetcher.add(key, self.copies[key].position())

    def checkpoint(self) -> None:
        """Write the checkpoints and the manifest."""
        self.target.checkpoint(self.manifest, now_ms=now())

    @property
    def is_complete(self) -> bool:
        """Whether the partitions are copied up to their high watermarks."""
        found = [each.is_complete for each in self.copies.values()] + [each.is_complete for each in self.done.values()]
        return bool(found) and not self.failures and all(found)

    @property
    def hidden(self) -> list[str]:
        """What could not be seen, and why."""
        found = self.source.hidden
        if self.surveyor is not None:
            found = found + self.surveyor.source.hidden + self.surveyor.source.away
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Close the connections that are not the client's."""
        self.fetcher.close()
        if self.surveyor is not None:
            self.surveyor.close()

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
            bootstrap_servers=servers_of(self.client),
            began_ms=self.began_ms,
            written_ms=now(),
            complete=self.is_complete and all(entry.is_complete for entry in written.values()),
            topics=topics,
            hidden=self.hidden,
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
        run.close()
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
        configs = {name: log_config(each.configs) for name, each in described.items()}
        place.open(cluster_id=cluster.cluster_id, configs=configs, earlier=earlier)
        unless_done.pop_all()
    run = Pull(
        client=client,
        source=source,
        surveyor=Surveyor(beside),
        target=place,
        options=options,
        cluster=cluster,
        earlier=earlier,
        began_ms=now(),
        fetcher=Fetcher(client),
        topics=described,
        failures=beside.not_copied(cluster),
    )
    return run, topics


def copy_all(run: Pull, stop: Callable[[], bool], progress: Callable[[int], None]) -> None:
    """Fetch until every partition is complete or has failed; with follow, until stop()."""
    checkpoint_at, metadata_at = time.monotonic() + CHECKPOINT_S, time.monotonic() + METADATA_S
    patience_s = run.client.settings.default_api_timeout_ms / 1000
    copied, give_up_at = run.copied_bytes, time.monotonic() + patience_s
    while (run.options.follow or len(run.fetcher)) and not stop():
        if run.options.follow:
            if time.monotonic() > metadata_at:
                run.look_for_new()
                metadata_at = time.monotonic() + METADATA_S
            run.use_survey()
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


def servers_of(client: Client) -> list[str]:
    """Return the bootstrap servers of a client."""
    return [f"{host}:{port}" for host, port in client.settings.bootstrap_servers]


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
