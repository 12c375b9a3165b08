"""Waiting in tests: for requests, and for groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from kwire.broker.groups.classic_group import ClassicGroup, ClassicState
from kwire.broker.patience import Patience, check_count
from kwire.errors import OptionError, counted

if TYPE_CHECKING:
    from kwire.broker.faults import Faults
    from kwire.broker.faults.conditions import Apis, Conditions, When
    from kwire.broker.groups.store import GroupStore
    from kwire.broker.request_log import LoggedRequest, RequestLog

__all__ = ["GroupState", "group_state", "wait_for_request", "wait_until_stable"]

POLL_S = 0.005
STABLE = ClassicState.STABLE.value
MISSING = "missing"


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a group. kind: classic, consumer (KIP-848) or share (KIP-932). members: client ids by member id."""

    group: str
    kind: str
    state: str
    members: Mapping[str, str]

    def __str__(self) -> str:
        """Return the state and the number of members."""
        return f"{self.state} with {counted(len(self.members), 'member')}" if self.kind else self.state


def group_state(store: GroupStore, group_id: str) -> GroupState:
    """Return the state of a group, on the broker's thread; a missing one has no kind."""
    shared = store.is_share_group(group_id)
    group = store.share_group(group_id) if shared else store.find(group_id)
    if group is None:
        return GroupState(group=group_id, kind="", state=MISSING, members={})
    kind = "classic" if isinstance(group, ClassicGroup) else group.kind
    members = {member_id: member.client_id for member_id, member in group.members.items()}
    return GroupState(group=group_id, kind=kind, state=str(group.state), members=members)


def wait_for_request(
    requests: RequestLog,
    faults: Faults,
    meets: Callable[[LoggedRequest, Conditions], bool],
    api: Apis,
    when: When,
    patience: Patience,
) -> LoggedRequest:
    """Return the first request that meets conditions; see Broker.wait_for.

    meets: called for a request of the API with a body, to look on the thread that owns the topics.
    """
    conditions = faults.conditions(api, when)

    def is_wanted(entry: LoggedRequest) -> bool:
        if entry.request is None or (conditions.api_keys is not None and entry.api_key not in conditions.api_keys):
            return False
        return meets(entry, conditions)

    found = requests.wait_for(is_wanted, patience)
    if found is None:
        words = "".join(f", {name}={value!r}" for name, value in when.items())
        raise TimeoutError(
            f"no request to {api}{words} in {patience.timeout:g} s, of {len(requests)} in the request log"
        )
    return found


def wait_until_stable(
    look: Callable[[str], GroupState], group: str, members: int | None, patience: Patience
) -> GroupState:
    """Return the state of a group once it is stable; see Broker.wait_until_stable. look: reads the state."""
    if not isinstance(group, str) or not group:
        raise OptionError(f"invalid group {group!r}: must be a group id")
    if members is not None:
        check_count("members", members)
    while True:
        state = look(group)
        if state.state == STABLE and members in (None, len(state.members)):
            return state
        if patience.left_s() <= 0:
            wanted = "stable" if members is None else f"stable with {counted(members, 'member')}"
            raise TimeoutError(f"group {group!r} is {state}, not {wanted}, after {patience.timeout:g} s")
        time.sleep(POLL_S)
