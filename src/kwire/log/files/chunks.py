"""Read a range of a file in chunks, with pread into a reused buffer, and iterate over the batches in it.

A chunk may end inside a batch: the caller reports how much it used, and the next chunk begins there. For a batch larger
than a chunk, the buffer grows by what the file contains; a length field alone allocates nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kwire.errors import CorruptBatch
from kwire.records import DEFAULT_MAX_DECOMPRESSED_BYTES, Batch, read_batches
from kwire.records.format.batch_header import FRAME_BYTES, LARGEST_SIZE, batch_bytes, parse_header
from kwire.storage.store import StoredFile

__all__ = ["BatchWalk", "Chunks"]

CHUNK_BYTES = 1 << 20


class Chunks:
    """Reads [position, stop) of a file.

    while (chunk := chunks.next_chunk()) is not None: use it, then chunks.advance(bytes of whole batches)

    position: start of the next chunk. After the last chunk, position < stop means that the rest is not a whole batch.
    chunk_bytes: the size of the next chunk.
    refused: the batch above max_batch_bytes that ended the reading, or None.
    """

    def __init__(
        self,
        file: StoredFile,
        position: int,
        stop: int,
        *,
        chunk_bytes: int,
        most_chunk_bytes: int = 0,
        max_batch_bytes: int,
        buffer: bytearray,
    ) -> None:
        """buffer: reused, replaced if too small. max_batch_bytes: larger batches count as corrupt.

        most_chunk_bytes: each chunk is twice as large as the one before, up to this.
        """
        self._file, self.position, self._stop = file, position, stop
        self.chunk_bytes = self._want = chunk_bytes
        self._most_chunk_bytes = max(chunk_bytes, most_chunk_bytes)
        self._max_batch_bytes = max_batch_bytes
        self.buffer = buffer
        self._chunk = memoryview(b"")
        self.refused: CorruptBatch | None = None

    def next_chunk(self) -> memoryview | None:
        """Return the bytes from position on, valid until the next call; None at the end."""
        n = min(self._want, self._stop - self.position)
        if n <= 0:
            return None
        if len(self.buffer) < n:
            self.buffer = bytearray(n)
        view = memoryview(self.buffer)[:n]
        self._chunk = view[: self._file.readinto(self.position, view)]
        return self._chunk if len(self._chunk) else None

    def advance(self, used_bytes: int) -> bool:
        """Continue after used_bytes of the chunk; return False if nothing was used and more bytes would not help."""
        self.chunk_bytes = min(2 * self.chunk_bytes, self._most_chunk_bytes)
        self._want = self.chunk_bytes
        self.position += used_bytes
        if used_bytes:
            return True
        if len(self._chunk) < FRAME_BYTES:
            return False
        total = batch_bytes(self._chunk)
        if total <= len(self._chunk) or self.position + total > min(self._stop, self._file.size()):
            return False
        if total > self._max_batch_bytes:
            self.refused = self._above_limit(total)
            return False
        self._want = total
        return True

    def _above_limit(self, total: int) -> CorruptBatch:
        url = self._file.url
        try:
            header = parse_header(self._chunk, 0, self.position, url)
        except CorruptBatch as error:
            return error
        what = f"a batch of {total} bytes, above max_decompressed_bytes={self._max_batch_bytes}, the limit of one batch"
        offsets = None if header is None else (header.base_offset, header.last_offset)
        return CorruptBatch(what, self.position, (), url, offsets)

    def skip_to(self, position: int) -> None:
        """Continue at a later batch start."""
        self._want, self.refused = self.chunk_bytes, None
        self.position = position


class BatchWalk:
    """Iterate over the batches from a batch start on; afterwards position and damage say how it ended.

    The counterpart of HeaderWalk that reads the records too. Batches stay valid after the iteration.
    position: after the last whole batch. stop: size of the file at the start. damage: the CorruptBatch that stopped the
    iteration; None at the end of the file, even inside a batch.
    """

    def __init__(
        self,
        file: StoredFile,
        position: int = 0,
        *,
        max_batch_bytes: int = FRAME_BYTES + LARGEST_SIZE,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        advance: Callable[[int], None] = lambda size_bytes: None,
    ) -> None:
        """advance: called with the bytes read after each chunk."""
        self._file, self._advance = file, advance
        self._max_batch_bytes, self._max_decompressed_bytes = max_batch_bytes, max_decompressed_bytes
        self.position, self.stop = position, file.size()
        self.damage: CorruptBatch | None = None

    def __iter__(self) -> Iterator[Batch]:
        file, limit = self._file, self._max_decompressed_bytes
        chunks = Chunks(
            file,
            self.position,
            self.stop,
            chunk_bytes=CHUNK_BYTES,
            max_batch_bytes=self._max_batch_bytes,
            buffer=bytearray(),
        )
        while (chunk := chunks.next_chunk()) is not None:
            try:
                for batch in read_batches(chunk, position=chunks.position, max_decompressed_bytes=limit, file=file.url):
                    self.position = batch.position + batch.size_bytes
                    yield batch
            except CorruptBatch as error:
                self.damage = error
                return
            used = self.position - chunks.position
            self._advance(used)
            if not chunks.advance(used):
                break
            chunks.buffer = bytearray()  # batches are views of the old buffer, and callers may keep them
        self.damage = chunks.refused
