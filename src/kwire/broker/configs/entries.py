"""A config as DescribeConfigs returns it: its value, where that comes from, and what else would apply.

Source: org.apache.kafka.clients.admin.ConfigEntry, AlterConfigOp; KIP-133, KIP-226.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from kwire.broker.configs.definitions import ConfigType

__all__ = ["ConfigOperation", "ConfigSource", "Entry", "Synonym"]


class ConfigSource(IntEnum):
    """Source of a value. Source: DescribeConfigsResponse.ConfigSource."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigOperation(IntEnum):
    """Operation on a config. Source: org.apache.kafka.clients.admin.AlterConfigOp.OpType."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


Synonym = tuple[str, str | None, ConfigSource]
"""The name of a config, its value, and the source of the value."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A config. synonyms: in order of precedence; the first one is in effect."""

    name: str
    value: str | None
    source: ConfigSource
    kind: ConfigType
    read_only: bool
    synonyms: list[Synonym]
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the value is the default."""
        return self.source == ConfigSource.DEFAULT
