"""Every change to a log directory goes through here, so that a test can fail or stop at each step.

    append, write_at, truncate, allocate     the page cache has it; a crash of the machine may lose or tear it
    sync                                     the file's bytes are on the disk
    rename, remove, make_directory           done for other processes; lasting once sync_directory was called
    write_atomically                         <path>.tmp, sync, rename, sync_directory: the old bytes or the new ones

New directories are for their owner alone (0700). A new file is for those whom its directory lets in: 0600 in ours, 0644
where a Kafka under another user made the directory and goes on reading it. The umask applies too.

A file that is open costs a descriptor only while it is used: beyond `max_open_files` the one that was not used for the
longest time gives its descriptor back and takes a new one when it is needed again. Who gives a descriptor away for
longer than a call (sendfile) holds the file meanwhile.
Source: Kafka's Utils.atomicMoveWithFallback, flushDir; FileRecords.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
from collections import OrderedDict
from collections.abc import Sequence

from kwire.errors import LogError
from kwire.storage.driver_errors import cause
from kwire.storage.store import DescriptorFile

__all__ = ["FileSystem", "OpenFile"]

Data = bytes | bytearray | memoryview
MOST_PARTS = 1024  # of one writev
DIRECTORY_MODE = 0o700
READ_AND_WRITE = 0o666
ALLOWED_SHARE = 2  # one file in so many that this process may open is a log's


class OpenFile(DescriptorFile):
    """A file that is written at its end and read anywhere; a StoredFile for whoever reads.

    url: its path, for messages too. end: bytes in use; what was allocated behind it does not count.
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
        """Its descriptor, good until the next call of any file of the file system, longer while it is held."""
        if self._fd >= 0:
            self._file_system.used(self)
            return self._fd
        if self._closed:
            raise LogError("the file was closed", self.url)
        self._fd = self._file_system.descriptor(self)
        return self._fd

    def hold(self) -> int:
        """Its descriptor, good until release(), also when the file is closed or removed meanwhile. Pairs may nest."""
        fd = self.fileno()
        self._held += 1
        return fd

    def release(self) -> None:
        """Undo one hold()."""
        self._held -= 1
        if self._closed:
            self.give_back()

    def give_back(self) -> bool:
        """Let the descriptor go unless it is held; False when it is."""
        if self._held:
            return False
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        return True

    def close(self) -> None:
        """Nothing can be done with it any more. Does not sync."""
        if not self._closed:
            self._closed = True
            self._file_system.forget(self)
            self.give_back()

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- reading

    def size(self) -> int:
        """Bytes in use."""
        return self.end

    def physical_size(self) -> int:
        """Bytes of the file as others see it, allocated ones included."""
        try:
            return os.fstat(self.fileno()).st_size
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    def modified_ms(self) -> int:
        """Its modification time."""
        try:
            return os.fstat(self.fileno()).st_mtime_ns // 1_000_000
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", self.url) from error

    # ---- writing

    def append(self, data: Data | Sequence[Data]) -> int:
        """Write at the end, all or nothing as far as the disk lets; returns the position where it begins."""
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
        """Write over what is there, growing the file if need be."""
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
        """Take away what a failed append has left, where that is still possible: the next one writes over it."""
        try:
            if os.fstat(self.fileno()).st_size > position:
                os.ftruncate(self.fileno(), position)
        except OSError:
            pass  # the append's own error is told

    def truncate(self, size_bytes: int) -> None:
        """Cut the file to size_bytes, or fill it up with zeros; all of it is in use then."""
        self._set_size(size_bytes)
        self.end = size_bytes

    def allocate(self, size_bytes: int) -> None:
        """Make the file size_bytes long, zeros behind what is in use; the end stays, unless the file gets shorter."""
        self._set_size(size_bytes)
        self.end = min(self.end, size_bytes)

    def trim(self) -> None:
        """Give back what was allocated and is not in use."""
        if self.physical_size() != self.end:
            self._set_size(self.end)

    def _set_size(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self.fileno(), size_bytes)
        except OSError as error:
            raise LogError(f"cannot be made {size_bytes} bytes long: {cause(error)}", self.url) from error

    def sync(self) -> None:
        """Wait until its bytes are on the disk."""
        try:
            os.fsync(self.fileno())
        except OSError as error:
            raise LogError(f"cannot be synced: {cause(error)}", self.url) from error

    def rename(self, path: str) -> None:
        """Give the file another name; it stays open."""
        self._file_system.rename(self.url, path)
        self.url = path


class FileSystem:
    """The local one. All methods raise LogError with the file's path for whatever the operating system refuses.

    max_open_files: descriptors kept open; None for half of what this process may open.
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
        """Open a file that has no descriptor; files that were not used for long give theirs back."""
        while True:
            try:
                fd = os.open(file.url, os.O_RDWR | os.O_CLOEXEC)
                break
            except OSError as error:
                if error.errno == errno.EMFILE and self._give_back_one():
                    continue  # others in this process have taken what was left
                raise LogError(f"cannot be opened: {cause(error)}", file.url) from error
        self._descriptors[file] = None
        if len(self._descriptors) > self.max_open_files:
            self._give_back_oldest()
        return fd

    def _give_back_oldest(self) -> None:
        newest = next(reversed(self._descriptors))
        for old in list(self._descriptors):
            if len(self._descriptors) <= self.max_open_files or old is newest:
                return
            if old.give_back():
                del self._descriptors[old]

    def _give_back_one(self) -> bool:
        """Give back the descriptor that was not used for the longest time; False when all are held."""
        for old in list(self._descriptors):
            if old.give_back():
                del self._descriptors[old]
                return True
        return False

    def used(self, file: OpenFile) -> None:
        """Remember that a file's descriptor is in use."""
        if file in self._descriptors:
            self._descriptors.move_to_end(file)

    def forget(self, file: OpenFile) -> None:
        """A file was closed."""
        self._descriptors.pop(file, None)

    # ---- files

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        """Open a file for reading and writing; create: make an empty one when there is none."""
        if create:
            try:
                mode = os.stat(os.path.dirname(path) or ".").st_mode & READ_AND_WRITE
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode))
            except OSError as error:
                raise LogError(f"cannot be created: {cause(error)}", path) from error
        return self.open_file_class(self, path, self.size(path))

    def read_all(self, path: str) -> bytes:
        """A whole small file."""
        try:
            with open(path, "rb") as file:
                return file.read()
        except OSError as error:
            raise LogError(f"cannot be read: {cause(error)}", path) from error

    def size(self, path: str) -> int:
        """Bytes of a file."""
        try:
            return os.stat(path).st_size
        except OSError as error:
            raise LogError(f"cannot be opened: {cause(error)}", path) from error

    def free_bytes(self, path: str) -> int:
        """Bytes that this user may still write to the disk of a file or directory."""
        try:
            disk = os.statvfs(path)
        except OSError as error:
            raise LogError(f"cannot tell how much space is free: {cause(error)}", path) from error
        return disk.f_bavail * disk.f_frsize

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory of this name."""
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        """Whether there is a directory of this name."""
        return os.path.isdir(path)

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise LogError(f"cannot list this directory: {cause(error)}", path) from error

    def write_atomically(self, path: str, data: bytes) -> None:
        """Put a file in the place of what may be there: after a crash it is the old or the new one (F-02)."""
        temporary = f"{path}.tmp"
        with self.open(temporary, create=True) as file:
            file.truncate(0)
            file.append(data)
            file.sync()
        self.rename(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory; a file of the new name is replaced."""
        try:
            os.rename(old, new)
        except OSError as error:
            raise LogError(f"cannot be renamed to {new}: {cause(error)}", old) from error

    def remove(self, path: str) -> None:
        """Remove a file, or a directory that is empty; nothing happens when it is gone already."""
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
        """Make a directory and those above it; one that is there stays."""
        try:
            os.makedirs(path, DIRECTORY_MODE, exist_ok=True)
        except OSError as error:
            raise LogError(f"cannot be created: {cause(error)}", path) from error

    def sync_directory(self, path: str) -> None:
        """Wait until the names in a directory are on the disk."""
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
        """Set a file's modification time."""
        try:
            os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))
        except OSError as error:
            raise LogError(f"cannot set its time: {cause(error)}", path) from error
