"""Files of a segment in tiered storage, readable at any position.

A read fetches the chunks it touches, decrypts and decompresses them, and caches the most recent ones: reads are mostly
sequential, with lookups of nearby headers and indexes. Segments stored without compression and encryption are read
directly.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from kwire.errors import LogError, Malformed
from kwire.records.attributes import Compression
from kwire.records.compression.codecs import TooLarge, expand
from kwire.storage.store import Store, StoredFile
from kwire.storage.tiered.encryption import Decrypt
from kwire.storage.tiered.manifest import Manifest

KEPT_CHUNKS = 4
MAX_CHUNK_BYTES = 256 << 20  # a chunk has to fit in memory; the plugin's default is 4 MiB


class MemoryFile(StoredFile):
    """Bytes in memory as a StoredFile: small files, and files that exist in the log directory only."""

    window_bytes = 1 << 20

    def __init__(self, data: bytes, url: str) -> None:
        self.url, self._data = url, data

    def size(self) -> int:
        """Return the number of bytes."""
        return len(self._data)

    def pread(self, position: int, n: int) -> bytes:
        """Return up to n bytes from position."""
        return self._data[position : position + n]

    def close(self) -> None:
        """Do nothing."""


class SegmentFile(StoredFile):
    """The `.log` file of a segment. Positions count from `start`, which skips batches of the previous segment."""

    window_bytes = 1 << 20

    def __init__(self, stored: StoredFile, manifest: Manifest, decrypt: Decrypt | None, start: int = 0) -> None:
        self.url = stored.url
        self._stored, self._manifest, self._decrypt, self._start = stored, manifest, decrypt, start
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        if manifest.is_plain:
            self.window_bytes, self.most_window_bytes = stored.window_bytes, stored.most_window_bytes

    def size(self) -> int:
        """Return the size from `start` on."""
        return self._manifest.chunks.file_bytes - self._start

    def pread(self, position: int, n: int) -> bytes:
        """Read up to n bytes from position; fewer only at the end of the file. Raises LogError."""
        out = bytearray(max(min(n, self.size() - position), 0))
        self.readinto(position, memoryview(out))
        return bytes(out)

    def readinto(self, position: int, view: memoryview) -> int:
        """Fill view from position; return the number of bytes read, fewer only at the end of the file."""
        position += self._start
        chunks = self._manifest.chunks
        n = max(min(len(view), chunks.file_bytes - position), 0)
        if self._manifest.is_plain:
            return self._stored.readinto(position, view[:n])
        done = 0
        while done < n:
            index = chunks.at(position + done)
            begin = position + done - chunks.original(index)[0]
            part = self._chunk(index)[begin : begin + n - done]
            view[done : done + len(part)] = part
            done += len(part)
        return n

    def _chunk(self, index: int) -> bytes:
        """Return a chunk, decrypted and decompressed. Raises LogError when it does not match the manifest."""
        if index in self._kept:
            self._kept.move_to_end(index)
            return self._kept[index]
        chunks = self._manifest.chunks
        start, end = chunks.stored(index)
        first, stop = chunks.original(index)
        if max(end - start, stop - first) > MAX_CHUNK_BYTES:
            raise LogError(f"chunk {index} is larger than {MAX_CHUNK_BYTES} bytes, the maximum", self.url)
        data = self._stored.pread(start, end - start)
        try:
            if len(data) != end - start:
                raise ValueError(f"{len(data)} bytes stored, expected {end - start} according to the manifest")
            if self._decrypt is not None:
                data = self._decrypt(data)
            if self._manifest.compression:
                data = bytes(expand(Compression.ZSTD, 2, memoryview(data), stop - first))
            if len(data) != stop - first:
                raise ValueError(f"{len(data)} bytes of data, expected {stop - first} according to the manifest")
        except (ValueError, Malformed, TooLarge) as error:
            what = f"more than {stop - first} bytes" if isinstance(error, TooLarge) else str(error)
            raise LogError(f"chunk {index}, bytes {start} to {end} of the object: {what}", self.url) from None
        self._kept[index] = data
        if len(self._kept) > KEPT_CHUNKS:
            self._kept.popitem(last=False)
        return data

    def close(self) -> None:
        """Close the object and drop the cached chunks."""
        self._kept.clear()
        self._stored.close()


def read_index(store: Store, path: str, manifest: Manifest, kind: str, decryptor: Callable[[], Decrypt]) -> bytes:
    """Read one index of an `.indexes` object. Indexes may be encrypted and are never compressed. Raises LogError."""
    position, size = manifest.indexes.get(kind, (0, 0))
    if not size:
        return b""
    with store.open(path) as file:
        data = file.pread(position, size)
        if len(data) != size:
            raise LogError(f"{kind} is cut off: expected {size} bytes at position {position}", file.url)
    if manifest.encryption is None:
        return data
    try:
        return decryptor()(data)
    except ValueError as error:
        raise LogError(f"{kind}: {error}", store.url_of(path)) from None
