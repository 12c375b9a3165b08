"""Generated from DescribeTransactionsRequest.json, Kafka 3.0.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeTransactionsRequest"]


class DescribeTransactionsRequest(base.Message, kw_only=True):
    """Request, api key 65; versions 0; flexible 0+; listeners broker, zkBroker."""

    transactional_ids: list[str] = []
    """[]string; versions 0+; transactionalId."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 65
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeTransactionsRequest", "apiKey": 65,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "zkBroker"],
  "fields": [
    {"name": "TransactionalIds", "type": "[]string", "versions": "0+", "entityType": "transactionalId"}
  ]
}
"""
