"""A Kafka broker of one node, in this process: Broker."""

from kwire.broker.broker import Broker

__all__ = ["Broker"]
