"""Generated from UnregisterControllerRequest.json, Kafka 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["UnregisterControllerRequest"]


class UnregisterControllerRequest(base.Message, kw_only=True):
    """Request, api key 94; versions 0; flexible 0+; listeners broker, controller."""

    controller_id: int = 0
    """int32; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    API_KEY: ClassVar[int | None] = 94
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "UnregisterControllerRequest", "apiKey": 94,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "controller"],
  "fields": [
    {"name": "ControllerId", "type": "int32", "versions": "0+"}
  ]
}
"""
