"""The file system that logs are written to. Every change goes through it, so tests can fail or stop at each step.

    append, write_at, truncate, allocate     in the page cache; a crash of the machine may lose or tear it
    sync                                     the file's bytes are durable
    rename, remove, make_directory           visible to other processes; durable after sync_directory
    write_atomically                         <path>.tmp, sync, rename, sync_directory: either the old or the new bytes

New directories are private to their owner (0700). New files inherit the read and write permissions of their directory:
0600 in ours, 0644 where a Kafka that runs as another user created it and has to read them. The umask applies too.

Open files do not each hold a descriptor. Beyond `max_open_files` the least recently used file closes its descriptor and
opens a new one on next use. Code that uses a descriptor for longer than one call (sendfile) calls hold().
Source: Kafka's Utils.atomicMoveWithFallback, flushDir; FileRecords.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

from kwire.errors import LogError
from kwire.storage.driver_errors import cause
from kwire.storage.store import DescriptorFile

__all__ = ["FileSystem", "OpenFile"]

Data = bytes | bytearray | memoryview
MOST_PARTS = 1024  # of one writev
READ_BYTES = 4096  # of the first read of a small file
DIRECTORY_MODE = 0o700
READ_AND_WRITE = 0o666
ALLOWED_SHARE = 2  # logs use at most half of the descriptors of this process


class OpenFile(DescriptorFile):
    """A file appended at its end and read at any position.

    url: its path. end: bytes in use; allocated space after it does not count.
    """

    def __init__(self, file_system: FileSystem, path: str, end: int) -> None:
        self.url, self.end = path, end
        self._file_system = file_system
        self._fd = -1
        self._held = 0
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenFile({self.url!r}, {self.end} bytes)"

    # ---- descriptor

    def fileno(self) -> int:
        """Return a descriptor, valid until the next call on any file of this file system, or while held."""
        if self._fd >= 0:
            self._file_system.used(self)
            return self._fd
        if self._closed:
            raise LogError("file is closed", self.url)
        self._fd = self._file_system.descriptor(self)
        return self._fd

    def hold(self) -> int:
        """Return a descriptor that stays valid until release(), even if the file is closed or removed. Pairs nest."""
        fd = self.fileno()
        self._held += 1
        return fd

    def release(self) -> None:
        """Undo one hold()."""
        self._held -= 1
        if self._closed:
            self.give_back()

    def give_back(self) -> bool:
        """Close the descriptor unless it is held; return whether it was closed."""
        if self._held:
            return False
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return True

    def close(self) -> None:
        """Close the file without syncing it."""
        if not self._closed:
            self._closed = True
            self._file_system.forget(self)
            self.give_back()

    # ---- reading

    def size(self) -> int:
        """Return the bytes in use."""
        return self.end

    def physical_size(self) -> int:
        """Return the file's size on disk, allocated space included."""
        try:
            return os.fstat(self.fileno()).st_size
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    def modified_ms(self) -> int:
        """Return the modification time in ms since the epoch."""
        try:
            return os.fstat(self.fileno()).st_mtime_ns // 1_000_000
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    # ---- writing

    def append(self, data: Data | Sequence[Data]) -> int:
        """Append data; return its position. A failed append is undone as far as possible. Raises LogError."""
        position = self.end
        parts = [data] if isinstance(data, (bytes, bytearray, memoryview)) else data
        total = sum(map(len, parts))
        try:
            fd = self.fileno()
            written = os.pwritev(fd, parts, position) if len(parts) <= MOST_PARTS else 0
            if written != total:
                self._write_rest(fd, b"".join(parts), position, written)
        except OSError as error:
            self._undo(position)
            raise LogError(f"cannot be written at byte {position}: {cause(error)}", self.url) from error
        self.end = position + total
        return position

    def write_at(self, position: int, data: Data) -> None:
        """Overwrite bytes at position, growing the file if necessary."""
        try:
            self._write_rest(self.fileno(), data, position, 0)
        except OSError as error:
            raise LogError(f"cannot be written at byte {position}: {cause(error)}", self.url) from error
        self.end = max(self.end, position + len(data))

    def _write_rest(self, fd: int, data: Data, position: int, written: int) -> None:
        view = memoryview(data)
        while written < len(view):
            written += os.pwrite(fd, view[written:], position + written)

    def _undo(self, position: int) -> None:
        """Cut off the remains of a failed append; where that fails too, the next append overwrites them."""
        try:
            if os.fstat(self.fileno()).st_size > position:
                os.ftruncate(self.fileno(), position)
        except OSError:
            pass  # the append's own error is raised

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to size_bytes, or extend it with zeros; all of it is then in use."""
        self._set_size(size_bytes)
        self.end = size_bytes

    def allocate(self, size_bytes: int) -> None:
        """Preallocate the file to size_bytes with zeros; `end` stays unless the file gets shorter."""
        self._set_size(size_bytes)
        self.end = min(self.end, size_bytes)

    def trim(self) -> None:
        """Release allocated space that is not in use."""
        if self.physical_size() != self.end:
            self._set_size(self.end)

    def _set_size(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self.fileno(), size_bytes)
        except OSError as error:
            raise LogError(f"cannot be resized to {size_bytes} bytes: {cause(error)}", self.url) from error

    def sync(self) -> None:
        """Make the file's bytes durable (fsync)."""
        try:
            os.fsync(self.fileno())
        except OSError as error:
            raise LogError(f"cannot be synced: {cause(error)}", self.url) from error

    def rename(self, path: str) -> None:
        """Rename the file; it stays open."""
        self._file_system.rename(self.url, path)
        self.url = path


class FileSystem:
    """The local file system. All methods raise LogError, naming the file, where the operating system fails.

    max_open_files: maximum number of open descriptors; None for half of this process's limit.
    """

    open_file_class: type[OpenFile] = OpenFile

    def __init__(self, *, max_open_files: int | None = None) -> None:
        if max_open_files is None:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            max_open_files = 65_536 if soft == resource.RLIM_INFINITY else max(soft // ALLOWED_SHARE, 8)
        self.max_open_files = max_open_files
        self._descriptors: OrderedDict[OpenFile, None] = OrderedDict()

    # ---- descriptors

    def descriptor(self, file: OpenFile) -> int:
        """Open a descriptor for a file, closing descriptors of the least recently used files."""
        while True:
            try:
                fd = os.open(file.url, os.O_RDWR | os.O_CLOEXEC)
                break
            except OSError as error:
                if error.errno == errno.EMFILE and self._give_back_one():
                    continue  # other code in this process uses the remaining descriptors
                raise LogError(f"cannot be opened: {cause(error)}", file.url) from error
        self._descriptors[file] = None
        self._give_back_oldest()
        return fd

    def _give_back_oldest(self) -> None:
        """Close the least recently used descriptors until there are max_open_files, but not the newest."""
        newest = next(reversed(self._descriptors))
        while len(self._descriptors) > self.max_open_files and self._give_back_one(newest):
            pass

    def _give_back_one(self, newest: OpenFile | None = None) -> bool:
        """Close the least recently used descriptor, but not that of newest; return False when all others are held."""
        for old in self._descriptors:
            if old is newest:
                return False
            if old.give_back():
                del self._descriptors[old]
                return True
        return False

    def used(self, file: OpenFile) -> None:
        """Mark a file's descriptor as recently used."""
        if file in self._descriptors:
            self._descriptors.move_to_end(file)

    def forget(self, file: OpenFile) -> None:
        """Drop a closed file."""
        self._descriptors.pop(file, None)

    # ---- files

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open a file for reading and writing; create: create it, empty, if it does not exist."""
        if create:
            try:
                mode = os.stat(os.path.dirname(path) or ".").st_mode & READ_AND_WRITE
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode))
            except OSError as error:
                raise LogError(f"cannot be created: {cause(error)}", path) from error
        return self.open_file_class(self, path, self.size(path))

    def read_all(self, path: str) -> bytes:
        """Read a whole small file."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                data = b""
                while chunk := os.read(fd, max(READ_BYTES, len(data))):
                    data += chunk
                return data
            finally:
                os.close(fd)
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", path) from error

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        try:
            return os.stat(path).st_size
        except OSError as error:
            raise LogError(f"cannot be opened: {cause(error)}", path) from error

    def free_bytes(self, path: str) -> int:
        """Return the free bytes, available to this user, on the disk of a file or directory."""
        try:
            disk = os.statvfs(path)
        except OSError as error:
            raise LogError(f"cannot determine free disk space: {cause(error)}", path) from error
        return disk.f_bavail * disk.f_frsize

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Return whether a directory exists."""
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise LogError(f"cannot list this directory: {cause(error)}", path) from error

    def write_atomically(self, path: str, data: bytes, *, sync: bool = True) -> None:
        """Create or replace a file atomically: after a crash it has either the old or the new bytes (F-02).

        sync: make it durable. Without it, a crash of the machine may leave a new file missing or empty.
        """
        temporary = f"{path}.tmp"
        try:
            with self.open(temporary, create=True) as file:
                file.truncate(0)
                file.append(data)
                if sync:
                    file.sync()
            self.rename(temporary, path)
        except LogError:
            with suppress(LogError):
                self.remove(temporary)
            raise
        if sync:
            self.sync_directory(os.path.dirname(path))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory, replacing a file of the new name."""
        try:
            os.rename(old, new)
        except OSError as error:
            raise LogError(f"cannot be renamed to {new}: {cause(error)}", old) from error

    def remove(self, path: str) -> None:
        """Remove a file or an empty directory; a missing one is ignored."""
        try:
            if os.path.isdir(path):
                os.rmdir(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise LogError(f"cannot be removed: {cause(error)}", path) from error

    def make_directory(self, path: str) -> None:
        """Create a directory and its missing parents; an existing one stays unchanged."""
        try:
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
        except OSError as error:
            raise LogError(f"cannot be created: {cause(error)}", path) from error

    def sync_directory(self, path: str) -> None:
        """Make the entries of a directory durable."""
        try:
            fd = os.open(path or ".", os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise LogError(f"cannot sync this directory: {cause(error)}", path) from error

    def copy(self, source: str, target: str) -> None:
        """Copy a file's bytes and modification time."""
        try:
            shutil.copy2(source, target)
        except OSError as error:
            raise LogError(f"cannot be copied to {target}: {cause(error)}", source) from error

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set a file's modification time, in ms since the epoch."""
        try:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        except OSError as error:
            raise LogError(f"cannot set the modification time: {cause(error)}", path) from error
