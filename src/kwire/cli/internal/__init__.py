"""`kwire group`, `kwire txn`, `kwire cluster`: what Kafka's internal topics say. One module a command."""

from kwire.cli.internal.commands import register

__all__ = ["register"]
