"""Generated from StreamsGroupCurrentMemberAssignmentValue.json, Kafka 4.1.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["StreamsGroupCurrentMemberAssignmentValue", "TaskIds"]


class TaskIds(base.Struct, kw_only=True):
    """Common struct; versions 0+."""

    subtopology_id: str = ""
    """string; versions 0+."""
    partitions: list[int] = []
    """[]int32; versions 0+."""
    assignment_epochs: list[int] | None = []
    """[]int32; versions 0+; tag 0; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class StreamsGroupCurrentMemberAssignmentValue(base.Message, kw_only=True):
    """Coordinator-value, record type 22; versions 0; flexible 0+."""

    member_epoch: int = 0
    """int32; versions 0+."""
    previous_member_epoch: int = 0
    """int32; versions 0+."""
    state: int = 0
    """int8; versions 0+."""
    active_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    standby_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    warmup_tasks: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    active_tasks_pending_revocation: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    standby_tasks_pending_revocation: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    warmup_tasks_pending_revocation: list[TaskIds] = []
    """[]TaskIds; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TaskIds: ClassVar[type[TaskIds]] = TaskIds
    API_KEY: ClassVar[int | None] = 22
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "coordinator-value", "name": "StreamsGroupCurrentMemberAssignmentValue", "apiKey": 22,
  "validVersions": "0", "flexibleVersions": "0+",
  "commonStructs": [
    {"name": "TaskIds", "versions": "0+", "fields": [
      {"name": "SubtopologyId", "type": "string", "versions": "0+"},
      {"name": "Partitions", "type": "[]int32", "versions": "0+"},
      {"name": "AssignmentEpochs", "type": "[]int32", "versions": "0+", "tag": 0, "taggedVersions": "0+", "nullableVersions": "0+"}
    ]}
  ],
  "fields": [
    {"name": "MemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "PreviousMemberEpoch", "type": "int32", "versions": "0+"},
    {"name": "State", "type": "int8", "versions": "0+"},
    {"name": "ActiveTasks", "type": "[]TaskIds", "versions": "0+"},
    {"name": "StandbyTasks", "type": "[]TaskIds", "versions": "0+"},
    {"name": "WarmupTasks", "type": "[]TaskIds", "versions": "0+"},
    {"name": "ActiveTasksPendingRevocation", "type": "[]TaskIds", "versions": "0+"},
    {"name": "StandbyTasksPendingRevocation", "type": "[]TaskIds", "versions": "0+"},
    {"name": "WarmupTasksPendingRevocation", "type": "[]TaskIds", "versions": "0+"}
  ]
}
"""
