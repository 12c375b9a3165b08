"""Kafka's protocol error codes -> Python source of their enum. The facts: errors.csv of the newest release."""

from __future__ import annotations

import csv
import io

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


def error_codes_source(facts: str, release: str) -> str:
    """The module with the enum. facts: the text of errors.csv (code, name, retriable); release: of which Kafka."""
    errors = sorted((int(row["code"]), row["name"], row["retriable"]) for row in csv.DictReader(io.StringIO(facts)))
    members = "".join(f"    {name} = {code}\n" for code, name, _ in errors)
    retriable = "".join(f"        ErrorCode.{name},\n" for _, name, again in errors if again == "true")
    return _HEAD.format(kafka=release) + members + _TAIL + retriable + "    }\n)\n"
