"""The program under test as a child process, and what it writes to its standard error."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import IO, Any

from kwire.errors import OptionError

__all__ = ["StandardError", "start_child"]

KEPT_BYTES = 2000


class StandardError:
    """The standard error of a child, in a temporary file. file: for the child."""

    def __init__(self) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # close() closes it

    def clear(self) -> None:
        """Forget what former children wrote."""
        self.file.seek(0)
        self.file.truncate()

    def last_words(self) -> str:
        """Return the last line as the end of a sentence; "" if there is none."""
        end = self.file.seek(0, os.SEEK_END)
        self.file.seek(max(0, end - KEPT_BYTES))
        lines = self.file.read().decode(errors="replace").strip().splitlines()
        self.file.seek(0, os.SEEK_END)
        return f"; the end of its standard error: {lines[-1].strip()[:300]}" if lines else ""

    def close(self) -> None:
        """Delete the file."""
        self.file.close()


def start_child(command: Sequence[str], errors: StandardError, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command whose standard error is `errors`, which is cleared. options: of Popen.

    Raises OptionError if it cannot be started.
    """
    errors.clear()
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors.file, **options)
    except OSError as error:
        raise OptionError(f"{command[0]}: cannot be started: {error.strerror}") from None
