"""`kwire log`: what is in a log directory. One module a command."""

from kwire.cli.log.group import register

__all__ = ["register"]
