"""Generated from DescribeClusterRequest.json, Kafka 2.8.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeClusterRequest"]


class DescribeClusterRequest(base.Message, kw_only=True):
    """Request, api key 60; versions 0-2; flexible 0+; listeners broker, controller, zkBroker."""

    include_cluster_authorized_operations: bool = False
    """bool; versions 0+."""
    endpoint_type: int = 1
    """int8; versions 1+; default 1."""
    include_fenced_brokers: bool = False
    """bool; versions 2+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 60
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 2)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeClusterRequest", "apiKey": 60,
  "validVersions": "0-2", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "IncludeClusterAuthorizedOperations", "type": "bool", "versions": "0+"},
    {"name": "EndpointType", "type": "int8", "versions": "1+", "default": "1"},
    {"name": "IncludeFencedBrokers", "type": "bool", "versions": "2+"}
  ]
}
"""
