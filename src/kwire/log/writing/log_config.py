"""Topic configs: Kafka's names, limits and defaults, as text and as values.

`LogConfig.parse({"retention.ms": "1000"})` validates configs and adds the defaults; `.render()` returns Kafka's names
and texts. Fields have the names of the configs, with underscores for dots.
Limits are from 3.9.1, so directories of every release can be read; 4.4.0 is stricter for new configs, and so is the
broker. Source: org.apache.kafka.storage.internals.log.LogConfig, TopicConfig, ServerLogConfigs 3.9.1 and 4.4.0.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kwire.errors import OptionError
from kwire.records import Compression

__all__ = ["LogConfig"]

MAX_INT32, MAX_INT64 = (1 << 31) - 1, (1 << 63) - 1
MAX_ARRAY_BYTES = MAX_INT32 - 8
"""The largest array size that every JVM supports."""
CODECS = {"producer", "uncompressed", *(codec.text for codec in Compression if codec)}
POLICIES = ("compact", "delete")
VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:\.\d+)?(?:-IV\d+)?", re.ASCII)
MAGIC_1_SINCE, MAGIC_2_SINCE = (0, 10), (0, 11)

T = TypeVar("T")
Parse = Callable[[str], Any]


def whole(low: int, high: int) -> Parse:
    """Return a parser of integers from low to high."""

    def parse(text: str) -> int:
        digits = text.strip()
        if not re.fullmatch(r"[+-]?\d{1,20}", digits, re.ASCII) or not low <= int(digits) <= high:
            raise ValueError(f"an integer from {low} to {high}")
        return int(digits)

    return parse


def ratio(text: str) -> float:
    """Parse a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError("a number from 0 to 1")
    return value


def switch(text: str) -> bool:
    """Parse true or false."""
    value = text.strip().lower()
    if value not in ("true", "false"):
        raise ValueError("true or false")
    return value == "true"


def one_of(*names: str) -> Parse:
    """Return a parser of one of these names."""

    def parse(text: str) -> str:
        name = text.strip()
        if name not in names:
            raise ValueError("one of " + ", ".join(names))
        return name

    return parse


def policies(text: str) -> frozenset[str]:
    """Parse delete, compact, both separated by a comma, or an empty list, which keeps everything."""
    names = frozenset(part.strip() for part in text.split(",") if part.strip())
    if not names <= set(POLICIES):
        raise ValueError("compact, delete or both")
    return names


def format_version(text: str) -> str:
    """Parse a Kafka release, which implies a record format."""
    version = text.strip()
    if not VERSION.fullmatch(version):
        raise ValueError("a Kafka release such as 0.10.2 or 3.0-IV1")
    return version


def gzip_level(text: str) -> int:
    """Parse a level from 1 to 9, or -1 for the default of the codec."""
    level = whole(-1, 9)(text)
    if level == 0:
        raise ValueError("a level from 1 to 9, or -1")
    return int(level)


INT = whole(0, MAX_INT32)
LONG = whole(0, MAX_INT64)
ANY_LONG = whole(-(1 << 63), MAX_INT64)


def config(default: T, parse: Parse) -> T:
    """Declare a config with its default and the parser of its text."""
    return dataclasses.field(default=default, metadata={"parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Topic configs by Kafka's names, with underscores for dots. Raises OptionError for an invalid value.

    Sizes are in bytes, times in milliseconds; -1 means no limit for retention. cleanup_policy: "delete", "compact" or
    both. producer_id_expiration_ms is a broker config, included because a log needs it (P-07).
    """

    cleanup_policy: frozenset[str] = config(frozenset({"delete"}), policies)
    compression_type: str = config("producer", one_of(*sorted(CODECS)))
    compression_gzip_level: int = config(-1, gzip_level)
    compression_lz4_level: int = config(9, whole(1, 17))
    compression_zstd_level: int = config(3, whole(-131072, 22))
    delete_retention_ms: int = config(86_400_000, LONG)
    errors_deadletterqueue_group_enable: bool = config(False, switch)
    file_delete_delay_ms: int = config(60_000, LONG)
    flush_messages: int = config(MAX_INT64, whole(1, MAX_INT64))
    flush_ms: int = config(MAX_INT64, LONG)
    follower_replication_throttled_replicas: str = config("", str)
    index_interval_bytes: int = config(4096, INT)
    internal_segment_bytes: int | None = config(None, whole(-(1 << 31), MAX_INT32))
    leader_replication_throttled_replicas: str = config("", str)
    local_retention_bytes: int = config(-2, whole(-2, MAX_INT64))
    local_retention_ms: int = config(-2, whole(-2, MAX_INT64))
    max_compaction_lag_ms: int = config(MAX_INT64, whole(1, MAX_INT64))
    max_decompressed_message_bytes: int = config(MAX_ARRAY_BYTES, whole(1, MAX_ARRAY_BYTES))
    max_message_bytes: int = config(1_048_588, INT)
    message_downconversion_enable: bool = config(True, switch)
    message_format_version: str = config("3.0-IV1", format_version)
    message_timestamp_after_max_ms: int = config(MAX_INT64, LONG)
    message_timestamp_before_max_ms: int = config(MAX_INT64, LONG)
    message_timestamp_difference_max_ms: int = config(MAX_INT64, LONG)
    message_timestamp_type: str = config("CreateTime", one_of("CreateTime", "LogAppendTime"))
    min_cleanable_dirty_ratio: float = config(0.5, ratio)
    min_compaction_lag_ms: int = config(0, LONG)
    min_insync_replicas: int = config(1, whole(1, MAX_INT32))
    preallocate: bool = config(False, switch)
    remote_copy_lag_bytes: int = config(-1, whole(-1, MAX_INT64))
    remote_copy_lag_ms: int = config(0, whole(-1, MAX_INT64))
    remote_storage_enable: bool = config(False, switch)
    remote_log_copy_disable: bool = config(False, switch)
    remote_log_delete_on_disable: bool = config(False, switch)
    retention_bytes: int = config(-1, ANY_LONG)
    retention_ms: int = config(604_800_000, whole(-1, MAX_INT64))
    segment_bytes: int = config(1 << 30, whole(14, MAX_INT32))
    segment_index_bytes: int = config(10_485_760, whole(4, MAX_INT32))
    segment_jitter_ms: int = config(0, LONG)
    segment_ms: int = config(604_800_000, whole(1, MAX_INT64))
    unclean_leader_election_enable: bool = config(False, switch)
    producer_id_expiration_ms: int = config(86_400_000, whole(1, MAX_INT32))

    def __post_init__(self) -> None:
        for name, text in self.render().items():
            read_setting(name, text)
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise OptionError(
                f"min.compaction.lag.ms is {self.min_compaction_lag_ms}, expected at most max.compaction.lag.ms, "
                f"{self.max_compaction_lag_ms}"
            )

    @classmethod
    def parse(cls, settings: Mapping[str, str]) -> LogConfig:
        """Parse configs by Kafka's names; all others have their defaults. Raises OptionError."""
        return cls().replace_parsed(settings)

    def replace_parsed(self, settings: Mapping[str, str]) -> LogConfig:
        """Return a copy with some configs replaced, by Kafka's names and as text. Raises OptionError."""
        given = {name.replace(".", "_"): read_setting(name, text) for name, text in settings.items()}
        return dataclasses.replace(self, **given)

    def replace(self, **settings: Any) -> LogConfig:
        """Return a copy with some configs replaced, by field name. Raises OptionError."""
        try:
            return dataclasses.replace(self, **settings)
        except TypeError as error:
            raise OptionError(f"unknown topic config: {error}") from None

    def render(self) -> dict[str, str]:
        """Return all configs that have a value, by Kafka's names, as Kafka's tools print them."""
        values = {name: getattr(self, name.replace(".", "_")) for name in SETTINGS}
        return {name: render_value(value) for name, value in values.items() if value is not None}

    @property
    def max_segment_bytes(self) -> int:
        """Size at which a segment is rolled: internal.segment.bytes, which may be small, or segment.bytes."""
        return self.segment_bytes if self.internal_segment_bytes is None else self.internal_segment_bytes

    @property
    def magic(self) -> int:
        """The record format implied by message.format.version: 0, 1 or 2."""
        match = VERSION.fullmatch(self.message_format_version)
        assert match is not None
        version = int(match[1]), int(match[2])
        return 0 if version < MAGIC_1_SINCE else 1 if version < MAGIC_2_SINCE else 2

    @property
    def is_compacted(self) -> bool:
        """Whether cleanup.policy contains "compact", which requires a key in every record."""
        return "compact" in self.cleanup_policy

    @property
    def compression_level(self) -> int | None:
        """The compression level, None if compression_type is not a codec with levels (KIP-390)."""
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)

    @property
    def codec(self) -> str:
        """compression_type by the names of kwire.records, where "uncompressed" is "none"."""
        return "none" if self.compression_type == "uncompressed" else self.compression_type


SETTINGS: dict[str, Parse] = {
    field.name.replace("_", "."): field.metadata["parse"] for field in dataclasses.fields(LogConfig)
}
"""The parser of each config, by Kafka's name."""


def read_setting(name: str, text: str) -> Any:
    """Parse a config. Raises OptionError for an unknown name or an invalid value."""
    parse = SETTINGS.get(name)
    if parse is None:
        raise OptionError(f"unknown topic config {name!r}")
    try:
        return parse(text)
    except ValueError as error:
        raise OptionError(f"{name} is {text[:80]!r}, expected {error}") from None


def render_value(value: Any) -> str:
    """Render a value as Kafka prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value)
