"""Generated from StreamsGroupTargetAssignmentMemberValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["StreamsGroupTargetAssignmentMemberValue", "TaskIds"]


class TaskIds(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupTargetAssignmentMemberValue(base.Message, kw_only=True):
    """Coordinator-value, record type 21; versions 0; flexible 0+."""

    active_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    standby_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    warmup_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TaskIds: ClassVar[type[TaskIds]] = TaskIds
    API_KEY: ClassVar[int | None] = 21
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "StreamsGroupTargetAssignmentMemberValue", "apiKey": 21,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TaskIds", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "ActiveTasks", "type": "[]TaskIds", "versions": "0+"},
    {"name": "StandbyTasks", "type": "[]TaskIds", "versions": "0+"},
    {"name": "WarmupTasks", "type": "[]TaskIds", "versions": "0+"}
  ]
}
"""
