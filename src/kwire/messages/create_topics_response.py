"""Generated from CreateTopicsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["CreatableTopicConfigs", "CreatableTopicResult", "CreateTopicsResponse"]


class CreatableTopicConfigs(base.Struct, kw_only=True):
    """Versions 5+."""

    name: str = ""
    """string; versions 5+."""
    value: str | None = ""
    """string; versions 5+; nullable."""
    read_only: bool = False
    """bool; versions 5+."""
    config_source: int = -1
    """int8; versions 5+; default -1; ignorable."""
    is_sensitive: bool = False
    """bool; versions 5+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class CreatableTopicResult(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 7+; ignorable."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 1+; nullable; ignorable."""
    num_partitions: int = -1
    """int32; versions 5+; default -1; ignorable."""
    replication_factor: int = -1
    """int16; versions 5+; default -1; ignorable."""
    configs: list[CreatableTopicConfigs] | None = []
    """[]CreatableTopicConfigs; versions 5+; nullable; ignorable."""
    topic_config_error_code: int = 0
    """int16; versions 5+; tag 0; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topics")
class CreateTopicsResponse(base.Message, kw_only=True):
    """Response, api key 19; versions 0-7; flexible 5+."""

    throttle_time_ms: int = 0
    """int32; versions 2+; ignorable."""
    topics: base.Keyed[CreatableTopicResult] = base.keyed()
    """[]CreatableTopicResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    CreatableTopicConfigs: ClassVar[type[CreatableTopicConfigs]] = CreatableTopicConfigs
    CreatableTopicResult: ClassVar[type[CreatableTopicResult]] = CreatableTopicResult
    API_KEY: ClassVar[int | None] = 19
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 7)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(5, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "CreateTopicsResponse", "apiKey": 19,
  "validVersions": "0-7", "flexibleVersions": "5+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "2+", "ignorable": true},
    {"name": "Topics", "type": "[]CreatableTopicResult", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "TopicId", "type": "uuid", "versions": "7+", "ignorable": true},
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "ErrorMessage", "type": "string", "versions": "1+", "nullableVersions": "0+", "ignorable": true},
      {"name": "TopicConfigErrorCode", "type": "int16", "versions": "5+", "tag": 0, "taggedVersions": "5+", "ignorable": true},
      {"name": "NumPartitions", "type": "int32", "versions": "5+", "default": "-1", "ignorable": true},
      {"name": "ReplicationFactor", "type": "int16", "versions": "5+", "default": "-1", "ignorable": true},
      {"name": "Configs", "type": "[]CreatableTopicConfigs", "versions": "5+", "nullableVersions": "5+", "ignorable": true, "fields": [
        {"name": "Name", "type": "string", "versions": "5+"},
        {"name": "Value", "type": "string", "versions": "5+", "nullableVersions": "5+"},
        {"name": "ReadOnly", "type": "bool", "versions": "5+"},
        {"name": "ConfigSource", "type": "int8", "versions": "5+", "default": "-1", "ignorable": true},
        {"name": "IsSensitive", "type": "bool", "versions": "5+"}
      ]}
    ]}
  ]
}
"""
