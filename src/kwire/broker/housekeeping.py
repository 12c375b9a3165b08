"""What a broker does by itself, on timers: retention, checkpoints, flushing.

    every log.retention.check.interval.ms            segments over retention, files and topics that were removed
    every log.flush.offset.checkpoint.interval.ms    recovery points, high watermarks, log starts
    every log.flush.scheduler.interval.ms            logs whose flush.ms has passed, segments that were rolled
    every delegation.token.expiry.check.interval.ms  delegation tokens that have expired
    every second                                     logs that could not be written are opened again
    every ten seconds                                the metadata log: a snapshot where one is due, retention

A run that fails is logged and comes again. Source: kafka.log.LogManager.startupWithConfigOverrides 3.9.1.
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
"""Segments that were rolled are synced at least this often, even where Kafka's default says never."""
REOPEN_INTERVAL_MS = 1000
METADATA_INTERVAL_MS = 10_000


class Housekeeping:
    """The timers of one node, from start() to stop()."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._timers: dict[str, TimerHandle] = {}
        self._disk = ThreadPoolExecutor(1, "kwire broker disk")
        """Waits for segments that were rolled, so that the loop does not."""

    def start(self) -> None:
        """Begin; the first run of each comes after one interval."""
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
        self._every("opening logs again", REOPEN_INTERVAL_MS, self._node.reopen_logs)

    def _every(self, name: str, interval_ms: int, work: Callable[[], object]) -> None:
        def run() -> None:
            try:
                work()
            except KwireError:
                log.exception("%s failed", name)
            self._timers[name] = self._node.timers.call_later(interval_ms, run)

        self._timers[name] = self._node.timers.call_later(interval_ms, run)

    def stop(self) -> None:
        """No more runs."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._disk.shutdown()
