"""A file system that stops at a step, as a process does that is killed: what was done stays, nothing more is done."""

from __future__ import annotations

from collections.abc import Sequence

from kwire.log.file_system import Data, FileSystem, OpenFile


class Stopped(BaseException):
    """The process is gone."""


class StoppingFile(OpenFile):
    """Counts what it does as steps of its file system."""

    def append(self, data: Data | Sequence[Data]) -> int:
        self._step()
        return super().append(data)

    def truncate(self, size_bytes: int) -> None:
        self._step()
        super().truncate(size_bytes)

    def sync(self) -> None:
        self._step()
        super().sync()

    def _step(self) -> None:
        assert isinstance(self._file_system, StoppingFileSystem)
        self._file_system.step()


class StoppingFileSystem(FileSystem):
    """stop_at: the step that is not done any more, None to count only."""

    open_file_class = StoppingFile

    def __init__(self, stop_at: int | None = None) -> None:
        super().__init__()
        self.stop_at, self.steps = stop_at, 0

    def step(self) -> None:
        """One change of the disk; none after the process is gone."""
        self.steps += 1
        if self.stop_at is not None and self.steps >= self.stop_at:
            raise Stopped

    def rename(self, old: str, new: str) -> None:
        self.step()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.step()
        super().remove(path)

    def make_directory(self, path: str) -> None:
        self.step()
        super().make_directory(path)
