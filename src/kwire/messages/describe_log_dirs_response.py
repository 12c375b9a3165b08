"""Generated from DescribeLogDirsResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeLogDirsPartition", "DescribeLogDirsResponse", "DescribeLogDirsResult", "DescribeLogDirsTopic"]


class DescribeLogDirsPartition(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_index: int = 0
    """int32; versions 0+."""
    partition_size: int = 0
    """int64; versions 0+."""
    offset_lag: int = 0
    """int64; versions 0+."""
    is_future_key: bool = False
    """bool; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeLogDirsTopic(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+; topicName."""
    partitions: list[DescribeLogDirsPartition] = []
    """[]DescribeLogDirsPartition; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeLogDirsResult(base.Struct, kw_only=True):
    """Versions 0+."""

    error_code: int = 0
    """int16; versions 0+."""
    log_dir: str = ""
    """string; versions 0+."""
    topics: list[DescribeLogDirsTopic] = []
    """[]DescribeLogDirsTopic; versions 0+."""
    total_bytes: int = -1
    """int64; versions 4+; default -1; ignorable."""
    usable_bytes: int = -1
    """int64; versions 4+; default -1; ignorable."""
    is_cordoned: bool = False
    """bool; versions 5+; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeLogDirsResponse(base.Message, kw_only=True):
    """Response, api key 35; versions 0-5; flexible 2+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 3+; ignorable."""
    results: list[DescribeLogDirsResult] = []
    """[]DescribeLogDirsResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeLogDirsPartition: ClassVar[type[DescribeLogDirsPartition]] = DescribeLogDirsPartition
    DescribeLogDirsTopic: ClassVar[type[DescribeLogDirsTopic]] = DescribeLogDirsTopic
    DescribeLogDirsResult: ClassVar[type[DescribeLogDirsResult]] = DescribeLogDirsResult
    API_KEY: ClassVar[int | None] = 35
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(2, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeLogDirsResponse", "apiKey": 35,
  "validVersions": "0-5", "flexibleVersions": "2+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "3+", "ignorable": true},
    {"name": "Results", "type": "[]DescribeLogDirsResult", "versions": "0+", "fields": [
      {"name": "ErrorCode", "type": "int16", "versions": "0+"},
      {"name": "LogDir", "type": "string", "versions": "0+"},
      {"name": "Topics", "type": "[]DescribeLogDirsTopic", "versions": "0+", "fields": [
        {"name": "Name", "type": "string", "versions": "0+", "entityType": "topicName"},
        {"name": "Partitions", "type": "[]DescribeLogDirsPartition", "versions": "0+", "fields": [
          {"name": "PartitionIndex", "type": "int32", "versions": "0+"},
          {"name": "PartitionSize", "type": "int64", "versions": "0+"},
          {"name": "OffsetLag", "type": "int64", "versions": "0+"},
          {"name": "IsFutureKey", "type": "bool", "versions": "0+"}
        ]}
      ]},
      {"name": "TotalBytes", "type": "int64", "versions": "4+", "default": "-1", "ignorable": true},
      {"name": "UsableBytes", "type": "int64", "versions": "4+", "default": "-1", "ignorable": true},
      {"name": "IsCordoned", "type": "bool", "versions": "5+", "ignorable": true}
    ]}
  ]
}
"""
