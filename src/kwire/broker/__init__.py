"""A Kafka broker in this process: Broker, of one node, and Cluster, of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwire.broker.broker import Broker

if TYPE_CHECKING:
    from kwire.broker.cluster import Cluster

__all__ = ["Broker", "Cluster"]


def __getattr__(name: str) -> object:
    """Import Cluster at first use: a single broker starts without it."""
    if name != "Cluster":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kwire.broker.cluster import Cluster

    return Cluster
