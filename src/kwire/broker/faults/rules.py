"""The faults of a broker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from kwire.broker.faults.conditions import (
    Apis,
    Conditions,
    Served,
    When,
    is_integer,
    parse_conditions,
    parse_nodes,
    parse_trigger,
    served_versions,
)
from kwire.broker.faults.effects import HALF, Effect, Kind
from kwire.broker.faults.fault import Fault
from kwire.broker.faults.names import FETCH, METADATA_APIS, SHARE_FETCH, api_name, parse_error
from kwire.broker.faults.plan import Plan, Step
from kwire.errors import OptionError

if TYPE_CHECKING:
    from kwire.broker.faults.conditions import Seen
    from kwire.messages.base import Message

__all__ = ["Faults"]

KEPT = 10_000
COUNTED = 100
"""How many faults that are used up go on counting requests: the newest ones."""
THROTTLE = "throttle_time_ms"
TURNS = ("skip", "on_call", "every", "probability", "seed", "times")
OF_CONNECTIONS = ("node", *TURNS)


class Faults:
    """The faults of a broker, in the order in which they were added; none by default. Thread-safe.

    Each method adds a fault and returns it: its `hits`, `wait(n)`, `release()` and `remove()` are for the test. `api`
    is the name of an API, several names, or "*" for all; other conditions are keyword arguments, see When. The faults
    that match a request apply to it in their order, up to the first that answers it: only those count the request.
    Observers see every request. A fault that is used up still counts requests, until it is removed. Methods raise
    OptionError for a fault that can never apply.

    served: the versions that the broker serves, by API. nodes: ids of the nodes that there are, None if unknown.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self.nodes: Collection[int] | None = None
        self._all: dict[int, Fault] = {}
        self._active: list[Fault] = []
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self.is_empty = True

    # Instead of the broker's response

    def fail(self, api: Apis, error: str | int, *, whole: bool = False, **when: Unpack[When]) -> Fault:
        """Respond with an error, given by Kafka's name or number, instead of handling the request.

        If conditions select a topic, partition, group or transactional id that has an error of its own in the response,
        only that one gets it, and the broker handles the rest of the request; whole: the response as a whole gets it.
        """
        effect = Effect(kind=Kind.FAIL, error=parse_error(error), whole=whole)
        return self._add(effect, api, when, error=effect.error.name if effect.error else error, whole=whole or None)

    def respond(
        self, api: str, response: Mapping[str, Any] | Message | Callable[[Any], Any], **when: Unpack[When]
    ) -> Fault:
        """Respond with a response of one's own instead of handling the request.

        response: values by field name, others have their defaults; a message; or a function of the request that returns
        either.
        """
        from kwire.broker.faults.responses import parse_reply

        reply = parse_reply(*self._one_api(api, when), response)
        return self._add(Effect(kind=Kind.RESPOND, reply=reply), api, when, response=_shown(response))

    def drop(self, api: Apis, *, after: bool = False, **when: Unpack[When]) -> Fault:
        """Close the connection instead of responding. after: handle the request first, so only its response is lost."""
        return self._add(Effect(kind=Kind.DROP, after=after), api, when, after=after or None)

    def silence(self, api: Apis, *, after: bool = False, **when: Unpack[When]) -> Fault:
        """Never respond, and keep the connection open: it gets no further response either.

        after: handle the request first. Once the fault is removed, connections that it silenced are closed.
        """
        return self._add(Effect(kind=Kind.SILENCE, after=after), api, when, after=after or None)

    # Beside it

    def change(
        self, api: str, changes: Mapping[str, Any] | Callable[[Any, Any], object], **when: Unpack[When]
    ) -> Fault:
        """Change the broker's response.

        changes: values by path, such as {"throttle_time_ms": 500} or {"topics.*.partitions.0.leader_id": -1}; or a
        function of request and response.
        """
        from kwire.broker.faults.responses import parse_changes

        edit = parse_changes(*self._one_api(api, when), changes)
        return self._add(Effect(kind=Kind.CHANGE, edit=edit), api, when, changes=_shown(changes))

    def throttle(self, api: str, throttle_ms: int, **when: Unpack[When]) -> Fault:
        """Respond with a throttle time, by which clients pause. The broker does not: it reads their next request."""
        from kwire.broker.faults.responses import parse_changes

        if not is_integer(throttle_ms) or throttle_ms < 0:
            raise OptionError(f"invalid throttle_ms {throttle_ms}: must be 0 or more")
        edit = parse_changes(*self._one_api(api, when), {THROTTLE: throttle_ms})
        return self._add(Effect(kind=Kind.THROTTLE, edit=edit), api, when, throttle_ms=throttle_ms)

    def delay(self, api: Apis, delay_ms: float, *, after: bool = False, **when: Unpack[When]) -> Fault:
        """Delay the handling of the request, by the broker's clock. after: handle it, and delay the response."""
        if isinstance(delay_ms, bool) or not isinstance(delay_ms, int | float) or not delay_ms >= 0:
            raise OptionError(f"invalid delay_ms {delay_ms}: must be 0 or more")
        effect = Effect(kind=Kind.DELAY, delay_ms=delay_ms, after=after)
        return self._add(effect, api, when, delay_ms=delay_ms, after=after or None)

    def hold(self, api: Apis, *, after: bool = False, **when: Unpack[When]) -> Fault:
        """Hold the request until `release` or `remove` of the fault. after: handle it, and hold the response."""
        return self._add(Effect(kind=Kind.HOLD, after=after), api, when, after=after or None)

    def cut(self, api: Apis, sent_bytes: int | None = None, **when: Unpack[When]) -> Fault:
        """Send the first half of the response, or sent_bytes of it, and close the connection."""
        if sent_bytes is not None and (not is_integer(sent_bytes) or sent_bytes < 1):
            raise OptionError(f"invalid sent_bytes {sent_bytes}: must be 1 or more")
        effect = Effect(kind=Kind.CUT, sent_bytes=HALF if sent_bytes is None else sent_bytes, after=True)
        return self._add(effect, api, when, sent_bytes=sent_bytes)

    def slow(self, api: Apis, bytes_per_second: int, **when: Unpack[When]) -> Fault:
        """Send the response slowly, in pieces."""
        if not is_integer(bytes_per_second) or bytes_per_second < 1:
            raise OptionError(f"invalid bytes_per_second {bytes_per_second}: must be 1 or more")
        effect = Effect(kind=Kind.SLOW, bytes_per_second=bytes_per_second, after=True)
        return self._add(effect, api, when, bytes_per_second=bytes_per_second)

    def corrupt(self, api: Apis = "Fetch", **when: Unpack[When]) -> Fault:
        """Change a byte of the records in the response, so that their checksum does not match.

        A topic or a partition in the conditions selects the records.
        """
        conditions = parse_conditions(api, when, self._served)
        if conditions.api_keys is None or not conditions.api_keys <= {FETCH, SHARE_FETCH}:
            raise OptionError(f"cannot corrupt {api!r}: only responses of Fetch and ShareFetch carry records")
        return self._add(Effect(kind=Kind.CORRUPT, after=True), api, when)

    def refuse(self, **when: Unpack[When]) -> Fault:
        """Reset new connections as soon as they are made. when: node, and conditions on their turn."""
        for name in when:
            if name not in OF_CONNECTIONS:
                raise OptionError(
                    f"refuse takes no {name!r}, only {', '.join(OF_CONNECTIONS)}: it is about connections"
                )
        return self._keep(Effect(kind=Kind.REFUSE), None, when, {})

    def observe(self, api: Apis, **when: Unpack[When]) -> Fault:
        """Count requests, without an effect. `times` has no limit by default."""
        return self._add(Effect(kind=Kind.OBSERVE), api, when, times=None)

    # All of them

    def clear(self) -> None:
        """Remove all faults, and release what they hold."""
        with self._changed:
            faults = list(self._all.values())
            self._all.clear()
            self._active.clear()
            self.is_empty = True
        for fault in faults:
            fault.remove()

    @property
    def pending(self) -> list[Fault]:
        """The faults that may apply to future requests."""
        return [fault for fault in self.all if fault.is_active]

    @property
    def all(self) -> list[Fault]:
        """All faults since the last `clear`, also those that are used up or removed: at most KEPT."""
        with self._changed:
            return list(self._all.values())

    def get(self, number: int) -> Fault | None:
        """Return a fault by its number, None if there is none."""
        return self._all.get(number)

    def forget(self, fault: Fault) -> None:
        """Remove a fault, and forget its counts."""
        fault.remove()
        with self._changed:
            self._all.pop(fault.number, None)
            self._prune()

    @property
    def unmatched(self) -> list[Fault]:
        """The faults whose conditions no request has met, and no connection."""
        return [fault for fault in self.all if not fault.calls]

    def conditions(self, api: Apis, when: When) -> Conditions:
        """Return conditions on single requests. Raises OptionError for those on their turn, such as `skip`."""
        for name in when:
            if name in TURNS:
                raise OptionError(f"{name} is a condition of faults only: name what the request has")
        self._check_nodes(when)
        return parse_conditions(api, when, self._served)

    def _add(self, effect: Effect, api: Apis, when: When, times: int | None = 1, **given: Any) -> Fault:
        for name in ("after", "whole"):
            if not isinstance(given.get(name) or False, bool):
                raise OptionError(f"invalid {name} {given[name]!r}: must be true or false")
        conditions = parse_conditions(api, when, self._served)
        if effect.kind is Kind.FAIL and conditions.api_keys is not None:
            self._check_errors(conditions, effect.whole)
        shown = {"api": api, **{name: value for name, value in given.items() if value is not None}}
        return self._keep(effect, conditions, when, shown, times)

    def _keep(
        self, effect: Effect, conditions: Conditions | None, when: When, given: dict[str, Any], times: int | None = 1
    ) -> Fault:
        self._check_nodes(when)
        trigger = parse_trigger(when, times)
        fault = Fault(
            effect=effect, conditions=conditions, trigger=trigger, changed=self._changed, given={**given, **when}
        )
        with self._changed:
            fault.number = next(self._numbers)
            self._all[fault.number] = fault
            self._active.append(fault)
            self.is_empty = False
            if len(self._all) > KEPT:
                oldest = next((each for each in self._all.values() if not each.is_active), fault)
                del self._all[oldest.number]
        return fault

    def _check_nodes(self, when: When) -> None:
        unknown = sorted((parse_nodes(when.get("node")) or frozenset()) - set(self.nodes or ()))
        if unknown and self.nodes is not None:
            known = ", ".join(map(str, sorted(self.nodes)))
            raise OptionError(f"node {unknown[0]} can never match: the nodes are {known}")

    def _prune(self) -> None:
        """Forget the faults that were removed, and the oldest of many that are used up."""
        self._active = [fault for fault in self._active if not fault.is_removed]
        spent = [fault for fault in self._active if not fault.is_active]
        if len(spent) > COUNTED:
            forgotten = set(map(id, spent[:-COUNTED]))
            self._active = [fault for fault in self._active if id(fault) not in forgotten]
        self.is_empty = not self._active

    def _one_api(self, api: Apis, when: When) -> tuple[int, range]:
        """Return the key of the only API, and its versions that the conditions leave. Raises OptionError."""
        conditions = parse_conditions(api, when, self._served)
        if conditions.api_keys is None or len(conditions.api_keys) != 1:
            raise OptionError(f"one API is needed, whose fields are named, not {api!r}")
        (key,) = conditions.api_keys
        return key, served_versions(self._served[key], conditions.versions)

    def _check_errors(self, conditions: Conditions, whole: bool) -> None:
        """Raise OptionError if an error can only be set for the whole response, and a partition is selected."""
        from kwire.broker.faults.shapes import error_level

        if whole or "partition" not in conditions.kinds:
            return
        for key in conditions.api_keys or ():
            versions = served_versions(self._served[key], conditions.versions)
            if key not in METADATA_APIS and not any(error_level(key, each, conditions.kinds) for each in versions):
                raise OptionError(
                    f"{api_name(key)} has no error for a partition: use whole=True for the whole response"
                )

    # On the broker's thread

    def concerns(self, api_key: int, *, parts: bool = False) -> bool:
        """Return whether a fault may apply to requests of an API. parts: only by what they name, such as topics."""
        if self.is_empty:
            return False
        given = [each.conditions for each in self._active if each.conditions is not None]
        return any((each.api_keys is None or api_key in each.api_keys) and (each.kinds or not parts) for each in given)

    def take(self, seen: Seen) -> Plan | None:
        """Return what faults do with a request, and count it; None if nothing."""
        plan = Plan(message=seen.message)
        with self._changed:
            for fault in self._active:
                if fault.effect.kind is Kind.OBSERVE:
                    fault.applies_to(seen)
            rest: Seen | None = seen
            for fault in self._active:
                if rest is not None and fault.effect.kind is not Kind.OBSERVE and fault.applies_to(rest):
                    rest = plan.add(Step(fault, fault.hold() if fault.holds else None), rest)
            self._prune()
        is_idle = rest is seen and not (plan.before or plan.after or plan.marked)
        return None if is_idle else plan

    def refuses_connection(self, node_id: int) -> bool:
        """Return whether a new connection to a node is to be reset, and count it."""
        if self.is_empty:
            return False
        with self._changed:
            faults = (each for each in self._active if each.effect.kind is Kind.REFUSE and not each.is_removed)
            nodes = ((fault, parse_nodes(fault.given.get("node"))) for fault in faults)
            is_refused = any(fault.fires() for fault, ids in nodes if ids is None or node_id in ids)
            self._prune()
        return is_refused


def _shown(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else repr(value)
