"""Compaction on the broker's own thread, a chunk at a time, so that clients get their turn in between.

Every log.cleaner.backoff.ms the dirtiest log that is due is chosen; when one was cleaned the next look comes at once.
A log that cannot be cleaned is left alone until the next start, as Kafka does it, and the log says why.
Source: kafka.log.LogCleaner 3.9.1. The cleaner itself: kwire.log.cleaner.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from typing import TYPE_CHECKING

from kwire.broker.clock import TimerHandle
from kwire.broker.warm_up import load
from kwire.errors import KwireError

if TYPE_CHECKING:
    from kwire.broker.node import Node
    from kwire.log.cleaner import Cleaner, CleanerStats

__all__ = ["Compaction"]

log = logging.getLogger("kwire.broker")

PAUSE_MS = 1
"""Between two chunks."""


class Compaction:
    """The cleaner of one node, from start() to stop()."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._timer: TimerHandle | None = None
        self._cleaner: Cleaner | None = None
        self._loading: threading.Thread | None = None

    def start(self) -> None:
        """Begin; the first look comes after one backoff."""
        if self._node.settings.log_cleaner_enable:
            self._look_later()

    def stop(self) -> None:
        """Leave a log that is being cleaned as it is: nothing of it was swapped in yet."""
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = self._node.timers.call_later(self._node.settings.log_cleaner_backoff_ms, self._look)

    def _look(self) -> None:
        logs = [each for each in self._node.log_manager.logs.values() if each.config.is_compacted]
        if not any(each.log_end_offset > each.log_start_offset for each in logs):
            self._look_later()
            return
        if self._cleaner is None:
            if not self._is_loaded():
                self._look_later()
                return
            try:
                self._cleaner = self._make_cleaner()
            except ImportError:
                log.warning("logs are not compacted: the compiled code that does it cannot be loaded")
                return
        now_ms = self._node.clock.now_ms()
        try:
            due = self._cleaner.choose(logs, now_ms)
        except KwireError:
            log.exception("choosing a log to clean failed")
            due = []
        if due:
            self._step(due[0].name, self._cleaner.steps(due[0], now_ms))
        else:
            self._look_later()

    def _is_loaded(self) -> bool:
        """Whether the cleaner's code is there; loaded beside the broker, as it takes a second."""
        if self._loading is None:
            self._loading = threading.Thread(target=load, name="kwire broker cleaner", daemon=True)
            self._loading.start()
        return not self._loading.is_alive()

    def _make_cleaner(self) -> Cleaner:
        from kwire.log.cleaner import Cleaner

        memory = self._node.settings.log_cleaner_dedupe_buffer_size
        return Cleaner(self._node.log_manager.cleaner_checkpoints, dedupe_buffer_bytes=memory)

    def _step(self, name: str, steps: Generator[int, None, CleanerStats]) -> None:
        try:
            next(steps)
        except StopIteration:
            self._timer = self._node.timers.call_later(PAUSE_MS, self._look)
        except KwireError:
            log.exception("%s cannot be cleaned", name)
            self._look_later()
        else:
            self._timer = self._node.timers.call_later(PAUSE_MS, lambda: self._step(name, steps))
