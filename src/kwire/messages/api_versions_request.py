"""Generated from ApiVersionsRequest.json, Kafka 2.0.1 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["ApiVersionsRequest"]


class ApiVersionsRequest(base.Message, kw_only=True):
    """Request, api key 18; versions 0-5; flexible 3+; listeners broker, controller, zkBroker."""

    client_software_name: str = ""
    """string; versions 3+; ignorable."""
    client_software_version: str = ""
    """string; versions 3+; ignorable."""
    cluster_id: str | None = None
    """string; versions 5+; nullable; default null; ignorable."""
    node_id: int = -1
    """int32; versions 5+; default -1; ignorable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 18
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 5)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(3, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "ApiVersionsRequest", "apiKey": 18,
  "validVersions": "0-5", "flexibleVersions": "3+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "ClientSoftwareName", "type": "string", "versions": "3+", "ignorable": true},
    {"name": "ClientSoftwareVersion", "type": "string", "versions": "3+", "ignorable": true},
    {"name": "ClusterId", "type": "string", "versions": "5+", "nullableVersions": "5+", "default": "null", "ignorable": true},
    {"name": "NodeId", "type": "int32", "versions": "5+", "default": "-1", "ignorable": true}
  ]
}
"""
