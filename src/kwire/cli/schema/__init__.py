"""`kwire schema`: message definitions and what is made of them. One module a command."""

from kwire.cli.schema.group import register

__all__ = ["register"]
