"""Generated from ElectPreferredLeadersResponse.json, Kafka 2.2.2 to 2.3.1, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ElectPreferredLeadersResponse", "PartitionResult", "ReplicaElectionResult"]


class PartitionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    partition_id: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = ""
    """string; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ReplicaElectionResult(base.Struct, kw_only=True):
    """Versions 0+."""

    topic: str = ""
    """string; versions 0+; topicName."""
    partition_result: list[PartitionResult] = []
    """[]PartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ElectPreferredLeadersResponse(base.Message, kw_only=True):
    """Response, api key 43; versions 0; flexible none."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    replica_election_results: list[ReplicaElectionResult] = []
    """[]ReplicaElectionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    PartitionResult: ClassVar[type[PartitionResult]] = PartitionResult
    ReplicaElectionResult: ClassVar[type[ReplicaElectionResult]] = ReplicaElectionResult
    API_KEY: ClassVar[int | None] = 43
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, -1)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ElectPreferredLeadersResponse", "apiKey": 43,
  "validVersions": "0", "flexibleVersions": "none",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ReplicaElectionResults", "type": "[]ReplicaElectionResult", "versions": "0+", "fields": [
      {"name": "Topic", "type": "string", "versions": "0+", "entityType": "topicName"},
      {"name": "PartitionResult", "type": "[]PartitionResult", "versions": "0+", "fields": [
        {"name": "PartitionId", "type": "int32", "versions": "0+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
        {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+"}
      ]}
    ]}
  ]
}
"""
