"""Requests from plain values, for any version, and responses as plain values that can be compared.

request("Fetch", 12, topics=[{"topic": "t", "partitions": [{"partition": 0}]}])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwire.messages import registry
from kwire.messages.base import Message
from kwire.protocol.error_codes import ErrorCode
from kwire.schema.model import Field, Struct

__all__ = ["VOLATILE", "error_name", "flat", "request", "response", "response_values"]

VOLATILE = frozenset(
    {
        *("throttleTimeMs", "errorMessage", "clusterId", "host", "port", "rack", "brokers", "controllerId", "nodeId"),
        *(
            "nodeEndpoints",
            "leaderId",
            "replicaNodes",
            "isrNodes",
            "offlineReplicas",
            "brokerId",
            "eligibleLeaderReplicas",
        ),
        *("logAppendTimeMs", "producerId", "sessionId", "topicAuthorizedOperations", "clusterAuthorizedOperations"),
        *("authorizedOperations", "lastKnownElr"),
    }
)
"""Fields whose values are those of a cluster, not of the protocol; checks that are about them look at them."""


def request(name: str, version: int, **values: Any) -> Message:
    """Make a request. name: without "Request". Structs are dicts; fields that the version lacks are left out."""
    cls = registry.get(f"{name}Request")
    message: Message = _build(cls, cls, cls.SPEC.struct, version, values)
    return message


def response(name: str, version: int, **values: Any) -> Message:
    """Make a response, as `request` makes requests. name: without "Response"."""
    cls = registry.get(f"{name}Response")
    message: Message = _build(cls, cls, cls.SPEC.struct, version, values)
    return message


def _build(message: Any, cls: Any, struct: Struct, version: int, values: Mapping[str, Any]) -> Any:
    fields = {field.attr: field for field in struct.class_fields}
    unknown = values.keys() - fields.keys() - {"unknown_tagged_fields"}
    assert not unknown, f"{struct.name} has no {unknown}"  # a mistake in a check
    given = {}
    for name, value in values.items():
        field = fields.get(name)
        if field is None:
            given[name] = value
        elif version in field.versions:
            given[name] = _value(message, field, version, value)
    return cls(**given)


def _value(message: Any, field: Field, version: int, value: Any) -> Any:
    if field.struct is None or value is None:
        return value
    cls = getattr(message, field.struct.name)
    if field.is_array:
        return [_build(message, cls, field.struct, version, each) for each in value]
    return _build(message, cls, field.struct, version, value) if isinstance(value, Mapping) else value


def error_name(code: int) -> str:
    """Return Kafka's name of an error code; its number if kwire does not know it."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def response_values(body: Message, version: int, drop: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of a response in Kafka's JSON form, without VOLATILE ones and those of drop.

    Error codes are names; unknown tagged fields are counted.
    """
    values = _shown(body.to_json(version=version), VOLATILE | drop)
    assert isinstance(values, dict)
    unknown: list[tuple[int, bytes]] = getattr(body, "unknown_tagged_fields")  # noqa: B009  # of the generated classes
    if unknown:
        values["unknownTaggedFields"] = len(unknown)
    return values


def _shown(value: Any, drop: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: error_name(each) if key.endswith("rrorCode") and isinstance(each, int) else _shown(each, drop)
            for key, each in value.items()
            if key not in drop
        }
    return [_shown(each, drop) for each in value] if isinstance(value, list) else value


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Return nested values by path, such as `topics.0.errorCode`; empty lists and dicts are values."""
    if isinstance(value, dict) and value:
        pairs = [(str(key), each) for key, each in value.items()]
    elif isinstance(value, list) and value:
        pairs = [(str(i), each) for i, each in enumerate(value)]
    else:
        return {path: value}
    found: dict[str, Any] = {}
    for key, each in pairs:
        found.update(flat(each, f"{path}.{key}" if path else key))
    return found
