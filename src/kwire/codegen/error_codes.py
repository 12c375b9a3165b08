"""Generate the enum of Kafka's protocol error codes from errors.csv of the newest release."""

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
    """Meaning of an `error_code` field. Codes of newer brokers keep their number and are named ERROR_nnn."""

'''
_TAIL = '''
    @property
    def retriable(self) -> bool:
        """Whether a client may retry the request: Kafka's exception is a RetriableException."""
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
    """Generate the module with the enum. facts: the text of errors.csv (code, name, retriable); release: of Kafka."""
    errors = sorted((int(row["code"]), row["name"], row["retriable"]) for row in csv.DictReader(io.StringIO(facts)))
    members = "".join(f"    {name} = {code}\n" for code, name, _ in errors)
    retriable = "".join(f"        ErrorCode.{name},\n" for _, name, again in errors if again == "true")
    return _HEAD.format(kafka=release) + members + _TAIL + retriable + "    }\n)\n"
