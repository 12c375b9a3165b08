"""Generated from ListTransactionsResponse.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListTransactionsResponse", "TransactionState"]


class TransactionState(base.Struct, kw_only=True):
    """Versions 0+."""

    transactional_id: str = ""
    """string; versions 0+; transactionalId."""
    producer_id: int = 0
    """int64; versions 0+; producerId."""
    transaction_state: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListTransactionsResponse(base.Message, kw_only=True):
    """Response, api key 66; versions 0-2; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    unknown_state_filters: list[str] = []
    """[]string; versions 0+."""
    transaction_states: list[TransactionState] = []
    """[]TransactionState; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    TransactionState: ClassVar[type[TransactionState]] = TransactionState
    API_KEY: ClassVar[int | None] = 66
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListTransactionsResponse", "apiKey": 66,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "UnknownStateFilters", "type": "[]string", "versions": "0+"},
    {"name": "TransactionStates", "type": "[]TransactionState", "versions": "0+", "fields": [
      {"name": "TransactionalId", "type": "string", "versions": "0+", "entityType": "transactionalId"},
      {"name": "ProducerId", "type": "int64", "versions": "0+", "entityType": "producerId"},
      {"name": "TransactionState", "type": "string", "versions": "0+"}
    ]}
  ]
}
"""
