"""Generated from ListTransactionsRequest.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListTransactionsRequest"]


class ListTransactionsRequest(base.Message, kw_only=True):
    """Request, api key 66; versions 0-2; flexible 0+; listeners broker, zkBroker."""

    state_filters: list[str] = []
    """[]string; versions 0+."""
    producer_id_filters: list[int] = []
    """[]int64; versions 0+; producerId."""
    duration_filter: int = -1
    """int64; versions 1+; default -1."""
    transactional_id_pattern: str | None = None
    """string; versions 2+; nullable; default null."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 66
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListTransactionsRequest", "apiKey": 66,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "StateFilters", "type": "[]string", "versions": "0+"},
    {"name": "ProducerIdFilters", "type": "[]int64", "versions": "0+", "entityType": "producerId"},
    {"name": "DurationFilter", "type": "int64", "versions": "1+", "default": "-1"},
    {"name": "TransactionalIdPattern", "type": "string", "versions": "2+", "nullableVersions": "2+", "default": "null"}
  ]
}
"""
