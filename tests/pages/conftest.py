"""The command line fixture, for tests of pages that a command writes."""

from tests.cli.conftest import kwire

__all__ = ["kwire"]
