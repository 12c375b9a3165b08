"""Periodic tasks of a broker.

    log.retention.check.interval.ms            delete segments over retention, and files of deleted topics
    log.flush.offset.checkpoint.interval.ms    write checkpoints: recovery points, high watermarks, log start offsets
    log.flush.scheduler.interval.ms            flush logs whose flush.ms has passed, and rolled segments
    delegation.token.expiry.check.interval.ms  remove expired delegation tokens
    every second                               reopen logs that could not be written
    every ten seconds                          metadata log: write a snapshot if one is due, apply retention

    share.coordinator.cold.partition.snapshot.interval.ms  snapshots of states of share groups that have no recent one
    share.coordinator.state.topic.prune.interval.ms        delete records of share groups that snapshots replace

A failed run is logged and retried at the next interval.

Source: kafka.log.LogManager.startupWithConfigOverrides 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from kwire.broker.clock import TimerHandle
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.broker.node import Node

__all__ = ["Housekeeping"]

log = logging.getLogger("kwire.broker")

LONGEST_FLUSH_INTERVAL_MS = 60_000
"""Upper bound of the flush interval: rolled segments are flushed even with Kafka's default of never."""
REOPEN_INTERVAL_MS = 1000
METADATA_INTERVAL_MS = 10_000


class Housekeeping:
    """Timers of the periodic tasks, from start() to stop()."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._timers: dict[str, TimerHandle] = {}
        self._disk = ThreadPoolExecutor(1, "kwire broker disk")
        """Thread that flushes rolled segments, so the event loop does not block."""

    def start(self) -> None:
        """Start the timers; the first run of a task is after one interval."""
        settings = self._node.settings
        manager, clock = self._node.log_manager, self._node.clock
        self._every(
            "retention", settings.log_retention_check_interval_ms, lambda: manager.apply_retention(clock.now_ms())
        )
        self._every("checkpoints", settings.log_flush_offset_checkpoint_interval_ms, manager.write_checkpoints)
        flush_ms = min(settings.log_flush_scheduler_interval_ms, LONGEST_FLUSH_INTERVAL_MS)
        self._every("flush", flush_ms, lambda: manager.flush_due(clock.now_ms(), self._disk))
        self._every("metadata snapshots", METADATA_INTERVAL_MS, self._node.metadata_log.maintain)
        check_ms = settings.delegation_token_expiry_check_interval_ms
        self._every("removing expired delegation tokens", check_ms, self._node.security.tokens.remove_expired)
        # looked up each time: the coordinators of a directory that is opened again are new ones
        self._every(
            "snapshots of share groups",
            settings.share_coordinator_cold_partition_snapshot_interval_ms,
            lambda: self._node.coordinators.share_states.snapshot_cold(),
        )
        self._every(
            "deleting old states of share groups",
            settings.share_coordinator_state_topic_prune_interval_ms,
            lambda: self._node.coordinators.share_states.prune(),
        )
        self._every("opening logs again", REOPEN_INTERVAL_MS, self._node.topic_logs.reopen)

    def _every(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except KwireError:
                log.exception("%s failed", name)
            self._timers[name] = self._node.timers.call_later(interval_ms, run)

        self._timers[name] = self._node.timers.call_later(interval_ms, run)

    def stop(self) -> None:
        """Cancel the timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._disk.shutdown()
