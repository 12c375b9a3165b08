"""The options that limit the micro-batches of a streaming query. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kwire.errors import OptionError
from kwire.spark.options.option import Option
from kwire.spark.options.values import positive

__all__ = ["RATE_LIMITS", "RateLimits", "parse_duration", "parse_rate_limits"]

DEFAULT_TRIGGER_DELAY_MS = 15 * 60 * 1000
UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """maxOffsetsPerTrigger, minOffsetsPerTrigger (None: no limit) and maxTriggerDelay in milliseconds."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = DEFAULT_TRIGGER_DELAY_MS

    def __post_init__(self) -> None:
        if self.max_offsets is not None and self.min_offsets is not None and self.min_offsets > self.max_offsets:
            raise OptionError(
                f"Option 'minOffsetsPerTrigger' ({self.min_offsets}) is above maxOffsetsPerTrigger ({self.max_offsets})"
            )


def parse_duration(name: str, text: str) -> int:
    """Parse `15m`, `30 s` or `500ms`, as Spark does, into milliseconds. Raises OptionError."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text.strip()[len(digits) :].strip() or "ms"
    if not digits.isdecimal() or unit not in UNITS_MS:
        raise OptionError(f"Option '{name}': expected a duration such as 15m, 30s or 500ms, got '{text}'")
    return int(digits) * UNITS_MS[unit]


MAX_OFFSETS = Option[int | None](
    name="maxOffsetsPerTrigger",
    parse=positive,
    default=None,
    value="long",
    shown_default="none",
    query="streaming",
    meaning="Maximum number of offsets in a micro-batch, divided among partitions in proportion to their backlogs.",
)
MIN_OFFSETS = Option[int | None](
    name="minOffsetsPerTrigger",
    parse=positive,
    default=None,
    value="long",
    shown_default="none",
    query="streaming",
    meaning="Minimum number of offsets in a micro-batch. The first micro-batch after a start does not wait for it.",
)
MAX_DELAY = Option[int](
    name="maxTriggerDelay",
    parse=parse_duration,
    default=DEFAULT_TRIGGER_DELAY_MS,
    value="duration: `15m`, `30s`, `500ms`",
    shown_default="15m",
    query="streaming",
    meaning="Maximum time to wait for `minOffsetsPerTrigger`.",
)
RATE_LIMITS: tuple[Option[object], ...] = (MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY)


def parse_rate_limits(given: Mapping[str, str]) -> RateLimits:
    """Parse the limits among a query's options. given: keys in lower case. Raises OptionError."""
    return RateLimits(
        max_offsets=MAX_OFFSETS.of(given), min_offsets=MIN_OFFSETS.of(given), max_delay_ms=MAX_DELAY.of(given)
    )
