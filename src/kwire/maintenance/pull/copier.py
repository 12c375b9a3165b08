"""Fetch partitions of a cluster into their copies, and follow what happens to them on the brokers meanwhile.

Truncation, retention, and topics that are deleted or created again end in an event of the manifest, or in a failure of
the partition; no error of one partition ends the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kwire.client.client import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, Client
from kwire.client.cluster import Cluster
from kwire.client.fetcher import MISSING, Diverged, FetchedBatches, Fetcher, FetchError
from kwire.client.partition_state import common_end, fetch_leader_epochs
from kwire.errors import BrokerError, ConnectionFailed, CorruptBatch, KwireError
from kwire.identifiers import TopicPartition
from kwire.maintenance.pull.cluster import Bounds, PulledTopic, SourceCluster
from kwire.maintenance.pull.manifest import now
from kwire.maintenance.pull.state import CopyState
from kwire.maintenance.pull.target import Target
from kwire.protocol.error_codes import ErrorCode
from kwire.records import RejectedRecords

__all__ = ["Copier"]

CHECKPOINT_S = 10.0


class Copier:
    """Copies partitions of `source` to `target`, and keeps `state` up to date.

    follow: whether to go on with records above the high watermarks that the copies began with.
    """

    def __init__(
        self, client: Client, source: SourceCluster, target: Target, state: CopyState, *, follow: bool = False
    ) -> None:
        self.source, self.target, self.state = source, target, state
        self._client, self._follow = client, follow
        self._fetcher = Fetcher(client)

    def close(self) -> None:
        """Close the connections that are not the client's."""
        self._fetcher.close()

    # ---- partitions

    def add_topics(self, topics: Sequence[PulledTopic]) -> None:
        """Use the configs of topics for their copies."""
        for each in topics:
            self.state.topics[each.topic.name] = each
            self.target.set_config(each.topic.name, each.log_config)

    def set_aside_recreated(self, key: TopicPartition) -> None:
        """Set aside the copy of an earlier topic of the same name."""
        topic_id = self.state.topics[key[0]].topic.topic_id
        if topic_id is not None and self.target.topic_id(key) not in (None, topic_id):
            self.state.happened("recreated", key, end_offset=self.target.set_aside(key))

    def open(self, key: TopicPartition, bounds: Bounds) -> None:
        """Open or create the copy of a partition, and fetch it."""
        now_ms, topic_id = now(), self.state.topics[key[0]].topic.topic_id
        self.state.failures.pop(key, None)
        self.set_aside_recreated(key)
        copy = self.state.copies[key] = self.target.copy(key, bounds, topic_id=topic_id, now_ms=now_ms)
        if copy.is_empty and bounds.log_start_offset == bounds.high_watermark:
            copy.begin_at(bounds.high_watermark, now_ms=now_ms)
        if self._follow or not copy.is_at_end:
            self._fetcher.add(key, copy.position())

    # ---- results of fetches

    def _step(self, progress: Callable[[int], None]) -> None:
        """Handle the next response."""
        for result in self._fetcher.poll():
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
        copy = self.state.copies[result.key]
        follow = self._follow
        if follow:
            copy.high_watermark = max(copy.high_watermark, result.fetched.high_watermark)
        is_whole = follow or result.after.offset <= copy.high_watermark
        n = copy.append(result.fetched.records, up_to=None if is_whole else copy.high_watermark, now_ms=now())
        self.state.copied_bytes += n
        self.target.appended(result.key)
        if not is_whole:
            copy.high_watermark = copy.log.log_end_offset  # compaction left no batch between it and the high watermark
        if not follow and copy.is_complete:
            self._fetcher.remove(result.key)
        return n

    def _truncate(self, result: Diverged) -> None:
        """Follow a leader that does not have the end of the copy (KIP-101, KIP-320)."""
        copy = self.state.copies[result.key]
        log = copy.log
        _, own_end = log.end_offset_for(result.leader_epoch)
        end = min(result.end_offset, log.log_end_offset, own_end if own_end >= 0 else log.log_end_offset)
        self._cut(result.key, end)

    def _cut(self, key: TopicPartition, offset: int) -> None:
        copy = self.state.copies[key]
        if offset < copy.log.log_end_offset:
            self.state.happened("truncated", key, offset, copy.log.log_end_offset)
            copy = self.state.copies[key] = self.target.truncate(key, offset, now_ms=now())
            copy.high_watermark = min(copy.high_watermark, self._offset(key, LATEST_TIMESTAMP))  # of the new leader
        if self._follow or not copy.is_complete:
            self._fetcher.seek(key, copy.position())
        else:
            self._fetcher.remove(key)

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
        copy = self.state.copies[key]
        start, end = self._offset(key, EARLIEST_TIMESTAMP), self._offset(key, LATEST_TIMESTAMP)
        position = copy.position()
        if position.offset < start:
            self.state.happened("gap", key, position.offset, start)
            if copy.is_empty:
                copy.log_start_offset = start
            if not self._follow and start >= copy.high_watermark:
                copy.high_watermark = copy.log.log_end_offset  # nothing is left of what the run began with
                self._fetcher.remove(key)
                return
            self._fetcher.seek(key, position._replace(offset=start, leader_epoch=-1))
        elif position.offset > end:
            # a new leader may not know its high watermark yet, but it knows where the epochs end
            theirs = fetch_leader_epochs(self._client, key, start)
            shared = common_end(copy.log.leader_epochs.entries, copy.log.log_end_offset, theirs, end)
            self._cut(key, end if shared is None else shared)
        else:
            self._fetcher.seek(key, position)

    def _offset(self, key: TopicPartition, timestamp: int) -> int:
        limit_ms = self.source.limit_ms
        offsets, errors = self._client.find_offsets({key: timestamp}, isolation="read_uncommitted", limit_ms=limit_ms)
        for error in errors.values():
            raise error
        return offsets[key].offset

    def _find_topic(self, key: TopicPartition, error: KwireError) -> None:
        """Handle a topic that was deleted, or deleted and created again."""
        topic = self.source.metadata().topics.get(key[0])
        if topic is None or key[1] not in topic.partitions:
            self.state.happened("deleted", key, end_offset=self.state.copies[key].log.log_end_offset)
            self._fetcher.remove(key)
            if not self.state.copies[key].is_complete:
                self._fail(key, error)
        elif topic.topic_id != self.state.copies[key].log.topic_id:
            self._fetcher.remove(key)
            self.add_topics(self.source.configs([topic]))
            bounds, errors = self.source.bounds([topic], [key[1]])
            for error in errors.values():
                raise error
            for limits in bounds.values():
                self.open(key, limits)
        else:
            self._fail(key, error)

    def _give_up(self, seconds: float) -> None:
        """End the partitions that are still fetched: there was nothing to copy for that many seconds."""
        for key in [key for key in self.state.copies if key in self._fetcher]:
            copy = self.state.copies[key]
            what = f"{key[0]}-{key[1]}: no records from offset {copy.position().offset} on for {seconds:.0f} s"
            what += f"; the high watermark was {copy.high_watermark}"
            self._fail(key, BrokerError(what, ErrorCode.REQUEST_TIMED_OUT))

    def _fail(self, key: TopicPartition, error: KwireError) -> None:
        self.state.failures[key] = error
        self._fetcher.remove(key)

    def follow_cluster(self, cluster: Cluster) -> None:
        """Fetch partitions again whose leader is back, and partitions of topics that were created again."""
        leaders = cluster.leaders
        for key, error in list(self.state.failures.items()):
            if key not in leaders or key not in self.state.copies:
                continue
            if isinstance(error, (BrokerError, ConnectionFailed)) and self._client.is_retriable(error):
                del self.state.failures[key]
                self._fetcher.add(key, self.state.copies[key].position())
        for key, copy in list(self.state.copies.items()):
            topic = cluster.topics.get(key[0])
            is_made = bool(self.state.topics[key[0]].made_from)
            if topic is not None and topic.topic_id not in (None, copy.log.topic_id) and not is_made:
                self._find_topic(key, BrokerError(f"{key[0]}-{key[1]}", ErrorCode.UNKNOWN_TOPIC_ID))

    # ---- until the end

    def run(
        self,
        *,
        checkpoint: Callable[[], None],
        stop: Callable[[], bool] = lambda: False,
        progress: Callable[[int], None] = lambda n: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """Fetch until every partition is complete or has failed; with follow, until stop().

        checkpoint: called every CHECKPOINT_S. progress: called with bytes copied. look: called between responses.
        """
        checkpoint_at = time.monotonic() + CHECKPOINT_S
        patience_s = self._client.settings.default_api_timeout_ms / 1000
        copied, give_up_at = self.state.copied_bytes, time.monotonic() + patience_s
        while (self._follow or len(self._fetcher)) and not stop():
            look()
            self._step(progress)
            if self.state.copied_bytes != copied:
                copied, give_up_at = self.state.copied_bytes, time.monotonic() + patience_s
            elif not self._follow and time.monotonic() > give_up_at:
                self._give_up(patience_s)
            if time.monotonic() > checkpoint_at:
                checkpoint()
                checkpoint_at = time.monotonic() + CHECKPOINT_S
