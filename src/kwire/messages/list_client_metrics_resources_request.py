"""Generated from ListClientMetricsResourcesRequest.json, Kafka 3.7.2 to 4.0.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ListClientMetricsResourcesRequest"]


class ListClientMetricsResourcesRequest(base.Message, kw_only=True):
    """Request, api key 74; versions 0; flexible 0+; listeners broker."""

    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 74
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ListClientMetricsResourcesRequest", "apiKey": 74,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker"],
  "fields": []
}
"""
