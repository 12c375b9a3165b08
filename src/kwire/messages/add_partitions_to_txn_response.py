"""Generated from AddPartitionsToTxnResponse.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = [
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopicResult",
]


class AddPartitionsToTxnPartitionResult(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("partition_index",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("errorCode", "partition_error_code", 0, 3),)

    partition_index: int = 0
    """int32; versions 0+; map key."""
    partition_error_code: int = 0
    """int16; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("results_by_partition")
class AddPartitionsToTxnTopicResult(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("name",)

    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (("results", "results_by_partition", 0, 3),)

    name: str = ""
    """string; versions 0+; map key; topicName."""
    results_by_partition: base.Keyed[AddPartitionsToTxnPartitionResult] = base.keyed()
    """[]AddPartitionsToTxnPartitionResult; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("topic_results")
class AddPartitionsToTxnResult(base.Struct, kw_only=True):
    """Versions 4+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("transactional_id",)

    transactional_id: str = ""
    """string; versions 4+; map key; transactionalId."""
    topic_results: base.Keyed[AddPartitionsToTxnTopicResult] = base.keyed()
    """[]AddPartitionsToTxnTopicResult; versions 4+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("results_by_transaction", "results_by_topic_v3_and_below")
class AddPartitionsToTxnResponse(base.Message, kw_only=True):
    """Response, api key 24; versions 0-5; flexible 3+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 4+; ignorable."""
    results_by_transaction: base.Keyed[AddPartitionsToTxnResult] = base.keyed()
    """[]AddPartitionsToTxnResult; versions 4+."""
    results_by_topic_v3_and_below: base.Keyed[AddPartitionsToTxnTopicResult] = base.keyed()
    """[]AddPartitionsToTxnTopicResult; versions 0-3."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    AddPartitionsToTxnPartitionResult: ClassVar[type[AddPartitionsToTxnPartitionResult]] = (
        AddPartitionsToTxnPartitionResult
    )
    AddPartitionsToTxnTopicResult: ClassVar[type[AddPartitionsToTxnTopicResult]] = AddPartitionsToTxnTopicResult
    AddPartitionsToTxnResult: ClassVar[type[AddPartitionsToTxnResult]] = AddPartitionsToTxnResult
    API_KEY: ClassVar[int | None] = 24
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    FORMER_NAMES: ClassVar[tuple[tuple[str, str, int, int], ...]] = (
        ("results", "results_by_topic_v3_and_below", 0, 3),
    )
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "AddPartitionsToTxnResponse", "apiKey": 24,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "commonStructs": [
    {"name": "AddPartitionsToTxnPartitionResult", "versions": "0+", "fields": [
      {"name": "PartitionIndex", "type": "int32", "versions": "0+", "mapKey": true},
      {"name": "PartitionErrorCode", "type": "int16", "versions": "0+"}
    ]},
    {"name": "AddPartitionsToTxnTopicResult", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+", "mapKey": true, "entityType": "topicName"},
      {"name": "ResultsByPartition", "type": "[]AddPartitionsToTxnPartitionResult", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "4+", "ignorable": true},
    {"name": "ResultsByTransaction", "type": "[]AddPartitionsToTxnResult", "versions": "4+", "fields": [
      {"name": "TransactionalId", "type": "string", "versions": "4+", "mapKey": true, "entityType": "transactionalId"},
      {"name": "TopicResults", "type": "[]AddPartitionsToTxnTopicResult", "versions": "4+"}
    ]},
    {"name": "ResultsByTopicV3AndBelow", "type": "[]AddPartitionsToTxnTopicResult", "versions": "0-3"}
  ]
}
"""
