"""Generated from OffsetCommitValue.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

import uuid
from typing import ClassVar

from kwire.messages import base

__all__ = ["OffsetCommitValue"]


class OffsetCommitValue(base.Message, kw_only=True):
    """Coordinator-value, record type 1; versions 0-4; flexible 4+."""

    offset: int = 0
    """int64; versions 0+."""
    leader_epoch: int = -1
    """int32; versions 3+; default -1; ignorable."""
    metadata: str = ""
    """string; versions 0+."""
    commit_timestamp: int = 0
    """int64; versions 0+."""
    expire_timestamp: int = -1
    """int64; versions 1; default -1; ignorable."""
    topic_id: uuid.UUID = base.ZERO_UUID
    """uuid; versions 4+; tag 0; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 1
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 4)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(4, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "OffsetCommitValue", "apiKey": 1,
  "validVersions": "0-4", "flexibleVersions": "4+",
  "fields": [
    {"name": "offset", "type": "int64", "versions": "0+"},
    {"name": "leaderEpoch", "type": "int32", "versions": "3+", "default": "-1", "ignorable": true},
    {"name": "metadata", "type": "string", "versions": "0+"},
    {"name": "commitTimestamp", "type": "int64", "versions": "0+"},
    {"name": "expireTimestamp", "type": "int64", "versions": "1", "default": "-1", "ignorable": true},
    {"name": "topicId", "type": "uuid", "versions": "4+", "tag": 0, "taggedVersions": "4+", "ignorable": true}
  ]
}
"""
