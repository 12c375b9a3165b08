"""`kwire schema`: message definitions, checked, shown, compared and compiled. One module a command."""

from kwire.cli.schema.group import register

__all__ = ["register"]
