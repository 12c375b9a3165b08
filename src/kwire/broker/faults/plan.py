"""What faults do with one request, in the order in which it happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.faults.effects import Kind
from kwire.broker.faults.names import METADATA_APIS, SESSION_APIS

if TYPE_CHECKING:
    from kwire.broker.faults.conditions import Seen
    from kwire.broker.faults.entities import Entity
    from kwire.broker.faults.fault import Fault, Gate
    from kwire.messages.base import Message
    from kwire.protocol.error_codes import ErrorCode

__all__ = ["Plan", "Step"]


class Step(msgspec.Struct, frozen=True):
    """A fault that applies to a request. gate: what the request waits for, if it is held."""

    fault: Fault
    gate: Gate | None = None


class Plan(msgspec.Struct, kw_only=True):
    """The faults that apply to a request. Made once, when the request arrives; later ones do not apply to it.

    message: the request that the broker handles. before, after: effects on both sides of that. answer: takes the place
    of the broker. failed: parts of the request that get an error. marked: tests for elements of the response that do.
    top_error: the error of a Metadata response as a whole, in versions that have one.
    """

    message: Message
    before: list[Step] = []
    answer: Step | None = None
    failed: list[tuple[Message, ErrorCode]] = []
    marked: list[tuple[Callable[[Entity], bool], ErrorCode]] = []
    top_error: ErrorCode | None = None
    is_all_failed: bool = False
    after: list[Step] = []

    def add(self, step: Step, seen: Seen) -> Seen | None:
        """Add a fault that applies to a request. Returns what later faults see of it, None if they see nothing."""
        effect = step.fault.effect
        if effect.kind is Kind.FAIL and seen.api_key in METADATA_APIS:
            self._fail_metadata(step)
            return seen
        if effect.kind is Kind.FAIL and not effect.whole:
            return self._fail_elements(step, seen)
        if effect.answers:
            self.answer = step
            return None
        (self.before if effect.waits and not effect.after else self.after).append(step)
        return seen

    def _fail_metadata(self, step: Step) -> None:
        """Give an error to topics or partitions of the broker's response; clients need the rest to find brokers."""
        effect, conditions = step.fault.effect, step.fault.conditions
        assert conditions is not None
        assert effect.error is not None
        is_whole = effect.whole or not conditions.kinds
        self.marked.append(((lambda _: True) if is_whole else conditions.selects, effect.error))
        if is_whole:
            self.top_error = effect.error

    def _fail_elements(self, step: Step, seen: Seen) -> Seen | None:
        """Give an error to the elements that the fault selects, or to the whole response if they have none."""
        from kwire.broker.faults.entities import divide
        from kwire.broker.faults.shapes import error_level

        conditions, code = step.fault.conditions, step.fault.effect.error
        assert conditions is not None
        assert code is not None
        named = error_level(seen.api_key, seen.version, conditions.kinds)
        if named is None:
            self.answer = step
            return None
        if seen.api_key in SESSION_APIS:  # its handler sets the error: it knows the partitions of a session
            self.marked.append((conditions.selects, code))
            rest = [each for each in seen.entities if not conditions.selects(each)]
            return msgspec.structs.replace(seen, found=rest) if rest else None
        matched, other = divide(seen.message, seen.api_key, seen.version, named, conditions.selects, seen.topics)
        if matched is not None:
            self.failed.append((matched, code))
        if other is None:
            self.is_all_failed = True
            return None
        self.message = other
        return msgspec.structs.replace(seen, message=other, found=None)
