"""Generated from DescribeClusterResponse.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeClusterBroker", "DescribeClusterResponse"]


class DescribeClusterBroker(base.Struct, kw_only=True):
    """Versions 0+."""

    MAP_KEYS: ClassVar[tuple[str, ...]] = ("broker_id",)

    broker_id: int = 0
    """int32; versions 0+; map key; brokerId."""
    host: str = ""
    """string; versions 0+."""
    port: int = 0
    """int32; versions 0+."""
    rack: str | None = None
    """string; versions 0+; nullable; default null."""
    is_fenced: bool = False
    """bool; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


@base.with_find("brokers")
class DescribeClusterResponse(base.Message, kw_only=True):
    """Response, api key 60; versions 0-2; flexible 0+."""

    throttle_time_ms: int = 0
    """int32; versions 0+."""
    error_code: int = 0
    """int16; versions 0+."""
    error_message: str | None = None
    """string; versions 0+; nullable; default null."""
    endpoint_type: int = 1
    """int8; versions 1+; default 1."""
    cluster_id: str = ""
    """string; versions 0+."""
    controller_id: int = -1
    """int32; versions 0+; default -1; brokerId."""
    brokers: base.Keyed[DescribeClusterBroker] = base.keyed()
    """[]DescribeClusterBroker; versions 0+."""
    cluster_authorized_operations: int = -2147483648
    """int32; versions 0+; default -2147483648."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    DescribeClusterBroker: ClassVar[type[DescribeClusterBroker]] = DescribeClusterBroker
    API_KEY: ClassVar[int | None] = 60
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "response", "name": "DescribeClusterResponse", "apiKey": 60,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "fields": [
    {"name": "ThrottleTimeMs", "type": "int32", "versions": "0+"},
    {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    {"name": "ErrorMessage", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
    {"name": "EndpointType", "type": "int8", "versions": "1+", "default": "1"},
    {"name": "ClusterId", "type": "string", "versions": "0+"},
    {"name": "ControllerId", "type": "int32", "versions": "0+", "default": "-1", "entityType": "brokerId"},
    {"name": "Brokers", "type": "[]DescribeClusterBroker", "versions": "0+", "fields": [
      {"name": "BrokerId", "type": "int32", "versions": "0+", "mapKey": true, "entityType": "brokerId"},
      {"name": "Host", "type": "string", "versions": "0+"},
      {"name": "Port", "type": "int32", "versions": "0+"},
      {"name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null"},
      {"name": "IsFenced", "type": "bool", "versions": "2+"}
    ]},
    {"name": "ClusterAuthorizedOperations", "type": "int32", "versions": "0+", "default": "-2147483648"}
  ]
}
"""
