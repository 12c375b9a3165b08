"""Topic configs under Kafka's names."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwire.errors import OptionError
from kwire.log import LogConfig


def test_defaults_equal_kafkas() -> None:
    config = LogConfig()
    assert config == LogConfig.parse({})
    text = config.render()
    assert text["segment.bytes"] == "1073741824"
    assert text["retention.ms"] == "604800000"
    assert text["cleanup.policy"] == "delete"
    assert text["max.message.bytes"] == "1048588"
    assert text["min.cleanable.dirty.ratio"] == "0.5"
    assert text["preallocate"] == "false"
    assert text["flush.messages"] == "9223372036854775807"
    assert config.magic == 2


def test_configs_are_parsed_and_rendered_with_kafkas_names() -> None:
    given = {
        "cleanup.policy": "compact, delete",
        "retention.ms": "-1",
        "compression.type": "uncompressed",
        "preallocate": "TRUE",
        "message.timestamp.type": "LogAppendTime",
        "min.cleanable.dirty.ratio": "0.01",
    }
    config = LogConfig.parse(given)
    assert config.cleanup_policy == {"compact", "delete"}
    assert config.is_compacted
    assert (config.retention_ms, config.preallocate, config.codec) == (-1, True, "none")
    assert LogConfig.parse(config.render()) == config
    assert config.render()["cleanup.policy"] == "compact,delete"
    assert config.replace(retention_ms=5).retention_ms == 5
    assert config.replace_parsed({"retention.ms": "6"}).cleanup_policy == config.cleanup_policy


def test_small_segments_have_their_own_config() -> None:
    assert LogConfig().max_segment_bytes == 1 << 30
    assert LogConfig.parse({"internal.segment.bytes": "20000"}).max_segment_bytes == 20_000
    assert "internal.segment.bytes" not in LogConfig().render()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "-2"),
        ("retention.ms", "1.5"),
        ("retention.ms", ""),
        ("retention.ms", "9223372036854775808"),
        ("segment.bytes", "13"),
        ("segment.bytes", "2147483648"),
        ("segment.ms", "0"),
        ("cleanup.policy", "shrink"),
        ("compression.type", "brotli"),
        ("compression.gzip.level", "0"),
        ("message.timestamp.type", "createtime"),
        ("message.format.version", "new"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("preallocate", "1"),
        ("no.such.setting", "1"),
    ],
)
def test_an_invalid_config_is_reported(name: str, text: str) -> None:
    with pytest.raises(OptionError, match=name.replace(".", r"\.")):
        LogConfig.parse({name: text})


def test_values_are_validated_from_every_source() -> None:
    with pytest.raises(OptionError, match=r"segment\.bytes"):
        LogConfig(segment_bytes=3)
    with pytest.raises(OptionError, match="unknown topic config"):
        LogConfig().replace(segment_byte=3)
    with pytest.raises(OptionError, match=r"min\.compaction\.lag\.ms"):
        LogConfig(min_compaction_lag_ms=6, max_compaction_lag_ms=5)


@pytest.mark.parametrize(
    ("version", "magic"),
    [
        ("0.8.2", 0),
        ("0.9.0.1", 0),
        ("0.10.0-IV1", 1),
        ("0.10.2", 1),
        ("0.11.0", 2),
        ("1.0", 2),
        ("2.8", 2),
        ("4.4.0", 2),
    ],
)
def test_a_release_selects_a_record_format(version: str, magic: int) -> None:
    assert LogConfig.parse({"message.format.version": version}).magic == magic


@pytest.mark.parametrize(("codec", "level"), [("gzip", -1), ("lz4", 9), ("zstd", 3), ("snappy", None), ("none", None)])
def test_compression_levels_apply_to_their_codec(codec: str, level: int | None, tmp_path: Path) -> None:
    text = "uncompressed" if codec == "none" else codec
    assert LogConfig.parse({"compression.type": text}).compression_level == level


@pytest.mark.parametrize("text", ["0", "0.0", "1", "1.0"])
def test_a_ratio_includes_its_bounds(text: str) -> None:
    assert LogConfig.parse({"min.cleanable.dirty.ratio": text}).min_cleanable_dirty_ratio == float(text)
    with pytest.raises(OptionError, match="a number from 0 to 1"):
        LogConfig.parse({"min.cleanable.dirty.ratio": "-0.1"})
