"""Generated from ListClientMetricsResourcesResponse.json, Kafka 3.7.2 to 4.0.2, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ClientMetricsResource", "ListClientMetricsResourcesResponse"]


class ClientMetricsResource(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class ListClientMetricsResourcesResponse(base.Message, kw_only=True):
    """Response, api key 74; versions 0; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    client_metrics_resources: list[ClientMetricsResource] = []
    """[]ClientMetricsResource; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    ClientMetricsResource: ClassVar[type[ClientMetricsResource]] = ClientMetricsResource
    API_KEY: ClassVar[int | None] = 74
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "ListClientMetricsResourcesResponse", "apiKey": 74,
  "validVersions": "0", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ClientMetricsResources", "type": "[]ClientMetricsResource", "versions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"}
    ]}
  ]
}
"""
