"""Decode one buffer in several threads: the rows and errors of ColumnDecoder, in the same order.

    cut      the buffer into pieces of whole batches
    decode   a piece in each thread; decompression, checksums and parsing do not hold the interpreter's lock
    return   the results of the first piece, then of the next one

A thread waits when WAITING results of its piece have not been taken, so memory is bounded by the number of threads:
each holds an Arrow batch or two and the scratch memory of a ColumnDecoder.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event

import numpy as np

from kwire.errors import CorruptBatch
from kwire.records.columns.decoder import Aborted, Buffer, ColumnDecoder, Decoded
from kwire.records.format.batch_header import batch_spans
from kwire.records.format.batch_table import Scan

__all__ = ["ParallelDecoder"]

PIECE_BYTES = 512 << 10  # of batches as stored; a larger batch is a piece by itself
WAITING = 2  # results of a piece that its thread is ahead of the reader
CHECK_S = 0.05  # how often a waiting thread looks whether the reader has stopped


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of a piece: consumed and stopped of its decoder, or the exception that ended it."""

    consumed: int
    stopped: CorruptBatch | None
    error: BaseException | None = None


@dataclass(slots=True)
class Piece:
    """Whole batches from start on, and what is known of them."""

    start: int
    end: int
    results: queue.Queue[Decoded | Finished] = field(default_factory=lambda: queue.Queue(WAITING))


class Stopped(Exception):
    """The reader takes no more results."""


class ParallelDecoder:
    """Decodes one buffer at a time, like a ColumnDecoder. create: a decoder for one thread. threads: their number."""

    def __init__(self, create: Callable[[], ColumnDecoder], threads: int) -> None:
        self._decoders = [create() for _ in range(threads)]
        self._free: queue.LifoQueue[ColumnDecoder] = queue.LifoQueue()
        for decoder in self._decoders:
            self._free.put(decoder)
        self._threads = threads
        self.consumed = 0
        self.stopped: CorruptBatch | None = None

    def set_partition(self, topic: str | None, partition: int | None) -> None:
        """Set the contents of the columns of these names, between calls of decode."""
        for decoder in self._decoders:
            decoder.set_partition(topic, partition)

    def decode(
        self,
        buf: Buffer,
        position: int,
        file: str | None,
        lowest_offset: int,
        highest_offset: int,
        aborted: Sequence[Aborted],
        scan: Scan | None = None,
    ) -> Generator[Decoded, None, None]:
        """Yield record batches, and a CorruptBatch for each corrupt batch. Sets consumed and stopped at the end.

        scan: not used, each thread scans its piece.
        """
        self.consumed, self.stopped = 0, None
        view = np.frombuffer(buf, np.uint8).data if len(buf) else memoryview(b"")
        pieces = pieces_of(view)
        is_stopped = Event()

        def run(piece: Piece) -> None:
            def put(result: Decoded | Finished) -> None:
                while not is_stopped.is_set():
                    try:
                        piece.results.put(result, timeout=CHECK_S)
                    except queue.Full:
                        continue
                    return
                raise Stopped

            decoder = self._free.get()
            try:
                events = decoder.decode(
                    view[piece.start : piece.end], position + piece.start, file, lowest_offset, highest_offset, aborted
                )
                for event in events:
                    put(event)
                put(Finished(decoder.consumed, decoder.stopped))
            except Stopped:
                pass
            except BaseException as error:
                put(Finished(0, None, error))
            finally:
                self._free.put(decoder)

        with ThreadPoolExecutor(self._threads, thread_name_prefix="kwire-decode") as pool:
            try:
                yield from self._results(pieces, lambda piece: pool.submit(run, piece))
            finally:
                is_stopped.set()  # the pool waits for its threads: buf may change afterwards

    def _results(self, pieces: Iterator[Piece], start: Callable[[Piece], object]) -> Iterator[Decoded]:
        """Yield the results of pieces in their order, while as many are decoded as there are threads."""
        running: deque[Piece] = deque()
        while True:
            while len(running) < self._threads and (piece := next(pieces, None)) is not None:
                running.append(piece)
                start(piece)
            if not running:
                return
            first = running.popleft()
            while not isinstance(result := first.results.get(), Finished):
                yield result
            if result.error is not None:
                raise result.error
            self.consumed, self.stopped = first.start + result.consumed, result.stopped
            if result.stopped is not None:
                return


def pieces_of(view: memoryview) -> Iterator[Piece]:
    """Cut bytes after whole batches; the last piece has what is not one."""
    start = end = 0
    for _, batch_end in batch_spans(view):
        if batch_end - start > PIECE_BYTES and end > start:
            yield Piece(start, end)
            start = end
        end = batch_end
    yield Piece(start, len(view))
