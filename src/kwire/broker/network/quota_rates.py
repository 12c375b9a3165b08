"""Measurement of quotas: Kafka's sampled rate and token bucket, exact to the millisecond.

    sampled rate    sum of the last samples over the time they cover; above the quota, the throttle time is how long the
                    rate takes to fall to the quota
    token bucket    refilled at the quota's rate, up to samples x window x quota; below zero, the throttle time is how
                    long it takes to refill to zero

A sample begins with the first value after the previous sample, so its window can reach back further than all windows
together. If there are fewer samples than configured, the missing ones count as elapsed.

Source: org.apache.kafka.common.metrics.stats.SampledStat, Rate, TokenBucket; server.quota.QuotaUtils 3.9.1.
"""

from __future__ import annotations

import math

import msgspec

__all__ = ["SampledRate", "TokenBucket", "round_half_up"]


class Sample(msgspec.Struct):
    """The sum of values in one window. start_ms: start of the window; last_ms: time of its last value."""

    start_ms: int
    last_ms: int
    value: float = 0.0

    def reset(self, now_ms: int) -> None:
        """Start a new window."""
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
        self._current = (self._current + 1) % (self._count + 1)  # one extra sample overlaps the window
        if self._current == len(self._samples):
            self._samples.append(Sample(now_ms, now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def window_ms(self, now_ms: int) -> int:
        """Return the length of the measured time."""
        for sample in self._samples:
            if now_ms - sample.last_ms >= self._count * self._window_ms:
                sample.reset(now_ms)
        elapsed_ms = now_ms - min((sample.start_ms for sample in self._samples), default=now_ms)
        missing = self._count - 1 - elapsed_ms // self._window_ms
        return max(1, elapsed_ms + max(0, missing) * self._window_ms)

    def measure(self, now_ms: int) -> float:
        """Return the rate per second."""
        window_ms = self.window_ms(now_ms)
        return sum(sample.value for sample in self._samples) / (window_ms / 1000)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return how long the rate takes to fall to the quota, 0 if it is not above."""
        rate = self.measure(now_ms)
        return 0 if rate <= quota else round_half_up((rate - quota) / quota * self.window_ms(now_ms))


class TokenBucket:
    """A token bucket, full at the start. burst_s: capacity in seconds of refill."""

    __slots__ = ("_burst_s", "_tokens", "_updated_ms")

    def __init__(self, burst_s: float) -> None:
        self._burst_s = burst_s
        self._tokens, self._updated_ms = 0.0, 0

    def take(self, value: float, quota: float, now_ms: int) -> None:
        """Take tokens; the balance may become negative."""
        self._refill(quota, now_ms)
        self._tokens = min(self._burst_s * quota, self._tokens - value)

    def throttle_ms(self, quota: float, now_ms: int) -> int:
        """Return how long the bucket takes to refill to zero tokens, 0 if it is not below."""
        self._refill(quota, now_ms)
        return max(0, round_half_up(-self._tokens / quota * 1000))

    def _refill(self, quota: float, now_ms: int) -> None:
        self._tokens = min(self._burst_s * quota, self._tokens + quota * (now_ms - self._updated_ms) / 1000)
        self._updated_ms = now_ms


def round_half_up(value: float) -> int:
    """Round as Java's Math.round."""
    return math.floor(value + 0.5)
