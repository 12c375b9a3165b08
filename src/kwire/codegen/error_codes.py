"""Kafka's protocol error codes -> Python source of their enum. The facts: definitions/errors.json."""

from __future__ import annotations

import json

_HEAD = '''"""Generated from Errors of Kafka {kafka}, by kwire.codegen; change the generator.

Source: org.apache.kafka.common.protocol.Errors.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ErrorCode"]


class ErrorCode(IntEnum):
    """What an `error_code` field means. A code of a newer broker keeps its number and is called ERROR_nnn."""

'''
_TAIL = '''
    @property
    def retriable(self) -> bool:
        """A client may send the request again: Kafka's exception for it is a RetriableException."""
        return self in _RETRIABLE

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode | None:
        if not isinstance(value, int) or not -(2**15) <= value < 2**15:
            return None
        unknown = int.__new__(cls, value)
        unknown._name_, unknown._value_ = f"ERROR_{value}", value
        return unknown


_RETRIABLE = frozenset(
    {
'''


def error_codes_source(facts: str) -> str:
    """The module with the enum. facts: the text of errors.json."""
    content = json.loads(facts)
    errors = sorted(content["errors"], key=lambda error: error["code"])
    members = "".join(f"    {error['name']} = {error['code']}\n" for error in errors)
    retriable = "".join(f"        ErrorCode.{error['name']},\n" for error in errors if error["retriable"])
    return _HEAD.format(kafka=content["kafka"]) + members + _TAIL + retriable + "    }\n)\n"
