"""Generated from DescribeUserScramCredentialsRequest.json, Kafka 2.7.2 to 4.4.0, by kwire.codegen; change the generator."""

from __future__ import annotations

from typing import ClassVar

from kwire.messages import base

__all__ = ["DescribeUserScramCredentialsRequest", "UserName"]


class UserName(base.Struct, kw_only=True):
    """Versions 0+."""

    name: str = ""
    """string; versions 0+."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []


class DescribeUserScramCredentialsRequest(base.Message, kw_only=True):
    """Request, api key 50; versions 0; flexible 0+; listeners broker, controller, zkBroker."""

    users: list[UserName] | None = []
    """[]UserName; versions 0+; nullable."""
    unknown_tagged_fields: list[tuple[int, bytes]] = []

    UserName: ClassVar[type[UserName]] = UserName
    API_KEY: ClassVar[int | None] = 50
    VALID_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 0)
    FLEXIBLE_VERSIONS: ClassVar[base.Versions] = base.Versions(0, 32767)
    DEFINITION: ClassVar[str] = """\
{
  "type": "request", "name": "DescribeUserScramCredentialsRequest", "apiKey": 50,
  "validVersions": "0", "flexibleVersions": "0+",
  "listeners": ["broker", "controller", "zkBroker"],
  "fields": [
    {"name": "Users", "type": "[]UserName", "versions": "0+", "nullableVersions": "0+", "fields": [
      {"name": "Name", "type": "string", "versions": "0+"}
    ]}
  ]
}
"""
