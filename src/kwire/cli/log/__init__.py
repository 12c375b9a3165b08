"""`kwire log`: commands for log directories. One module a command."""

from kwire.cli.log.group import register

__all__ = ["register"]
