"""Log compaction on the broker's thread, in small steps between requests.

Every log.cleaner.backoff.ms the dirtiest log is chosen, and again after each cleaned log. A log that cannot be cleaned
is skipped until the next start, as in Kafka, and the error is logged. The cleaner itself is kwire.log.cleaner.

Source: kafka.log.LogCleaner 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from typing import TYPE_CHECKING

from kwire.broker.clock import TimerHandle
from kwire.errors import KwireError, MissingExtra

if TYPE_CHECKING:
    from kwire.broker.clock import Clock, Timers
    from kwire.broker.configs.broker_configs import BrokerConfigs
    from kwire.log.cleaner import Cleaner, CleanerStats
    from kwire.log.writing.log_manager import LogManager

__all__ = ["Compaction"]

log = logging.getLogger("kwire.broker")

STEP_PAUSE_MS = 1
"""Pause between two steps."""


class Compaction:
    """Runs the cleaner on the logs of one directory, from start() to stop()."""

    def __init__(self, manager: LogManager, configs: BrokerConfigs, clock: Clock, timers: Timers) -> None:
        self._manager, self._configs, self._clock, self._timers = manager, configs, clock, timers
        self._timer: TimerHandle | None = None
        self._cleaner: Cleaner | None = None

    def start(self) -> None:
        """Start the timer; the first check is after one backoff."""
        if self._configs.settings.log_cleaner_enable:
            self._schedule()

    def stop(self) -> None:
        """Stop the timer. A log being cleaned is unchanged: cleaned segments are swapped in at the end."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._timer = self._timers.call_later(self._configs.settings.log_cleaner_backoff_ms, self._check)

    def _check(self) -> None:
        logs = [each for each in self._manager.logs.values() if each.config.is_compacted]
        if not any(each.log_end_offset > each.log_start_offset for each in logs):
            self._schedule()
            return
        if self._cleaner is None:
            try:
                self._cleaner = self._make_cleaner()
            except MissingExtra as missing:  # no timer: the next start may have it
                log.warning("compacted topics are not cleaned: %s", missing)
                return
        now_ms = self._clock.now_ms()
        try:
            due = self._cleaner.choose(logs, now_ms)
        except KwireError:
            log.exception("choosing a log to clean failed")
            due = []
        if due:
            self._step(due[0].name, self._cleaner.steps(due[0], now_ms))
        else:
            self._schedule()

    def _make_cleaner(self) -> Cleaner:
        from kwire.log.cleaner import Cleaner

        memory = self._configs.settings.log_cleaner_dedupe_buffer_size
        return Cleaner(self._manager.cleaner_checkpoints, dedupe_buffer_bytes=memory)

    def _step(self, name: str, steps: Generator[int, None, CleanerStats]) -> None:
        try:
            next(steps)
        except StopIteration:
            self._timer = self._timers.call_later(STEP_PAUSE_MS, self._check)
        except KwireError:
            log.exception("%s cannot be cleaned", name)
            self._schedule()
        else:
            self._timer = self._timers.call_later(STEP_PAUSE_MS, lambda: self._step(name, steps))
