"""Faults for tests: errors, own responses, delays, holds, dropped connections, corrupt records and more.

    broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=0, times=2)
    held = broker.faults.hold("JoinGroup", group="billing")
    held.wait(1); held.release()

    rules        Faults: adds faults, decides which apply to a request
    fault        Fault: one of them, with its counts
    effects      what a fault does
    conditions   which requests it applies to
    plan         what the faults that apply do with one request
    entities     what requests name; dividing a request into the part that gets an error and the rest
    shapes       where messages name topics, partitions, groups and transactional ids, and carry errors
    fields       fields of messages by name
    responses    responses of one's own
    corruption   corrupt records
    names        APIs and errors by name

The broker applies them in kwire.broker.injection.
"""

from __future__ import annotations

from kwire.broker.faults.fault import Fault
from kwire.broker.faults.names import parse_api, parse_error
from kwire.broker.faults.rules import Faults

__all__ = ["Fault", "Faults", "parse_api", "parse_error"]
