"""What quotas are measured with: Kafka's sampled rate and token bucket, to the millisecond.

    sampled rate    sum of the last samples over the time they cover; a rate above the quota has to wait until it would
                    have fallen to it
    token bucket    tokens refilled at the quota's rate, up to samples x window x quota; below zero, wait for zero

A sample begins with the first value after the last one ended, so its window can reach back further than the others
together; with fewer samples than configured, the missing ones count as elapsed.
Source: org.apache.kafka.common.metrics.stats.SampledStat, Rate, TokenBucket; server.quota.QuotaUtils 3.9.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["SampledRate", "TokenBucket", "round_half_up"]


@dataclass(slots=True)
class Sample:
    """Values of one window. start_ms, last_ms: of the window and of its last value."""

    start_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        """Begin again."""
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class SampledRate:
    """A rate per second over `count` samples of window_ms each."""

    __slots__ = ("_count", "_current", "_samples", "_window_ms")

    def __init__(self, count: int, window_ms: int) -> None:
        self._count, self._window_ms = count, window_ms
        self._samples: list[Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value."""
        if not self._samples:
            self._samples.append(Sample(now_ms, now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def _advance(self, now_ms: int) -> Sample:
        self._current = (self._current + 1) % (self._count + 1)  # one more, for the sample that overlaps the window
        if self._current == len(self._samples):
            self._samples.append(Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def window_ms(self, now_ms: int) -> int:
        """The time that the rate is over."""
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._count * self._window_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self._count - 1 - elapsed_ms // self._window_ms
        return max(1, elapsed_ms + max(0, missing) * self._window_ms)

    def measure(self, now_ms: int) -> float:
        """The rate per second."""
        window_ms = self.window_ms(now_ms)
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """How long to wait until the rate is the quota again, 0 where it is not above."""
        rate = self.measure(now_ms)
        return 0 if rate <= quota else round_half_up((rate - quota) / quota * self.window_ms(now_ms))


class TokenBucket:
    """Tokens, full at the start. burst_s: seconds of refilling that it holds."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens, self._updated_ms = 0.0, 0

    def take(self, value: float, quota: float, now_ms: int) -> None:
        """Take tokens, also more than there are."""
        self._refill(quota, now_ms)
        self._tokens = min(self._burst_s * quota, self._tokens - value)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return how long it takes to refill the bucket to zero tokens, 0 if it holds any."""
        self._refill(quota, now_ms)
        return max(0, round_half_up(-self._tokens / quota * 1000))

    def _refill(self, quota: float, now_ms: int) -> None:
        self._tokens = min(self._burst_s * quota, self._tokens + quota * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms


def round_half_up(value: float) -> int:
    """Round as Java's Math.round."""
    return math.floor(value + 0.5)
