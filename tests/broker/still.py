"""A broker whose data changes by requests only."""

from __future__ import annotations

from kwire.broker import Broker
from kwire.broker.clock import LoopTimers
from kwire.broker.node import Node

__all__ = ["StillBroker"]


class StillBroker(Broker):
    """A broker that ends no transaction, session or segment because time passes.

    For tests that compare what it serves with the directory that it was started on. Logs of real Kafka have open
    transactions, members of groups and old records; a broker, as Kafka, aborts, removes and deletes them from the
    first seconds on, and a test would depend on the speed of the machine.
    """

    def start(self) -> None:
        """See Broker."""
        super().start()
        self.call(stop_timers)


def stop_timers(node: Node) -> None:
    """Cancel what is scheduled; periodic tasks schedule themselves again when they run, so never."""
    assert isinstance(node.timers, LoopTimers)
    for handle in tuple(node.timers.pending):
        handle.cancel()
