"""`kwire log dump --follow`: the batches of a cluster as they are written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwire.cli import terminal
from kwire.cli.log.directories import selected
from kwire.cli.log.selection import MAX_OFFSET, Selection
from kwire.pages.escaping import printable

if TYPE_CHECKING:
    from kwire.client.cluster_logs import ClusterLog, ClusterLogs
    from kwire.client.follower import Follower
    from kwire.records import Batch

__all__ = ["follow_batches"]

REFRESH_S = 10
"""How often the cluster is asked for new topics and partitions."""


def follow_batches(source: ClusterLogs, selection: Selection) -> Iterator[tuple[ClusterLog, Batch]]:
    """Yield the selected partitions' batches from the first selected one on, and wait for more.

    New partitions are followed from their start, once they are noticed. Ends when all topics are deleted, or
    --offsets has an end that all partitions have reached. Raises LogError, BrokerError, ConnectionFailed.
    """
    from kwire.client.follower import Follower
    from kwire.records import read_batches

    logs = {(log.topic, log.partition): log for log in selected(source, selection)}
    end = selection.end_offset if selection.end_offset <= MAX_OFFSET else None
    with Follower(source.client) as follower:
        for key, log in logs.items():
            follower.add(key, _first_offset(log, selection), end=end)
        refreshed = time.monotonic()
        while len(follower):
            for key, fetched in follower.poll():
                for batch in read_batches(fetched.records, file=logs[key].url):
                    if batch.last_offset >= fetched.start_offset:
                        yield logs[key], batch
            _report_losses(follower)
            if time.monotonic() - refreshed < REFRESH_S:
                continue
            for key, log in source.reopened().items():
                if key not in logs and selection.takes_partition(*key):
                    logs[key] = log
                    follower.add(key, _first_offset(log, selection), end=end)
                    terminal.warn(printable(f"new partition: {log.topic}-{log.partition}"))
            refreshed = time.monotonic()


def _first_offset(log: ClusterLog, selection: Selection) -> int:
    start = max(selection.first_offset, log.log_start_offset)
    if selection.since_ms is not None and selection.since_ms > 0:
        record = log.offset_for_time(selection.since_ms)
        return log.log_end_offset if record is None else max(start, record.offset)
    return start


def _report_losses(follower: Follower) -> None:
    for (topic, partition), first, end in follower.lost:
        lost = f"retention deleted offsets {first} to {end - 1} before they were read"
        terminal.warn(printable(f"{topic}-{partition}: {lost}"))
    for topic, partition in follower.deleted:
        terminal.warn(printable(f"{topic}-{partition}: the topic was deleted"))
    follower.lost.clear()
    follower.deleted.clear()
