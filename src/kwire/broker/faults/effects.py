"""Effects of faults on requests, connections and responses."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from kwire.messages.base import Message
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["HALF", "Delivery", "Effect", "Kind"]

HALF = -1
"""As a number of bytes: half of the response."""


class Kind(StrEnum):
    """Kinds of effects, named like the methods of Faults."""

    FAIL = "fail"
    RESPOND = "respond"
    CHANGE = "change"
    THROTTLE = "throttle"
    DELAY = "delay"
    HOLD = "hold"
    DROP = "drop"
    CUT = "cut"
    CORRUPT = "corrupt"
    SILENCE = "silence"
    SLOW = "slow"
    REFUSE = "refuse"
    OBSERVE = "observe"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How the bytes of a response are sent.

    sent_bytes: only that many, or HALF, then the connection ends; None for all. bytes_per_second: 0 for no limit.
    """

    sent_bytes: int | None = None
    bytes_per_second: int = 0


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a fault. after: once the request has been handled.

    error, whole: of FAIL; whole: for the whole response, although conditions select elements. reply: makes the response
    of RESPOND from the request. edit: changes the response of CHANGE and THROTTLE; gets request and response.
    sent_bytes: of CUT, also HALF.
    """

    kind: Kind
    after: bool = False
    error: ErrorCode | None = None
    whole: bool = False
    reply: Callable[[Message], Message] | None = None
    edit: Callable[[Message, Message], Any] | None = None
    delay_ms: float = 0
    sent_bytes: int = HALF
    bytes_per_second: int = 0

    @property
    def answers(self) -> bool:
        """Whether the request is not handled by the broker, unless it is about elements of the request only."""
        return self.kind in ANSWERS or (self.kind is Kind.DROP and not self.after)

    @property
    def waits(self) -> bool:
        """Whether it waits before or after the request is handled."""
        return self.kind in (Kind.DELAY, Kind.HOLD)


ANSWERS = frozenset({Kind.FAIL, Kind.RESPOND, Kind.SILENCE})
