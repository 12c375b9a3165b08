"""A capture file as the requests and responses of its connections."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kwire.capture.conversation import Conversation
from kwire.capture.exchange import Address, Exchange
from kwire.capture.packets import PacketCounts, Segment, read_segments
from kwire.errors import LogError, Malformed
from kwire.storage.open_store import open_store
from kwire.storage.store import parent_of

__all__ = ["CaptureCounts", "read_capture"]

MAX_CONNECTIONS = 50_000
"""Open connections at a time, so that a capture of a port scan does not need the memory of all of them."""
LINGER_NS = 10_000_000_000  # packets of a closed connection may be captured late, out of order


Key = tuple[Address, Address]


@dataclass(slots=True)
class CaptureCounts(PacketCounts):
    """Counts of a capture: packets, connections, and bytes in which no frame was found.

    given_up: connections that were ended because MAX_CONNECTIONS others had packets after them.
    """

    connections: int = 0
    given_up: int = 0
    lost_bytes: int = 0


def read_capture(
    path: str | os.PathLike[str],
    *,
    ports: Iterable[int] = (),
    counts: CaptureCounts | None = None,
    storage_options: Mapping[str, object] | None = None,
) -> Iterator[Exchange]:
    """Yield the requests of a pcap or pcapng file with their responses, in the order in which they are complete.

    path: local path or fsspec URL. storage_options: for its file system driver. ports: of the brokers; by default every
    connection whose bytes look like Kafka's is read. counts: updated while reading.
    Memory: data of open connections that waits for missing packets, at most 16 MB per direction, and 1 KB for
    each of MAX_CONNECTIONS connections. The one that is idle for longest is ended where more are open.
    Raises LogError for a file that cannot be read; Malformed (position: in the file) for one that is not a capture or
    is damaged, after the exchanges before the damage.
    """
    counts = CaptureCounts() if counts is None else counts
    url = os.fspath(path)
    above = parent_of(open_store(url, storage_options).url)
    if above is None:
        raise LogError("not a file", url)
    with open_store(above[0], storage_options).open(above[1]) as file:
        connections = Connections(frozenset(ports), counts)
        segments = read_segments(file, counts)
        damage = None
        while damage is None:
            try:
                segment = next(segments)
            except StopIteration:
                break
            except Malformed as error:
                damage = error
            else:
                yield from connections.add(segment)
        yield from connections.finish()
    if damage is not None:
        raise Malformed(f"{file.url}: {damage.what}", damage.position) from damage


class Connections:
    """The open connections of a capture."""

    def __init__(self, ports: frozenset[int], counts: CaptureCounts) -> None:
        self._ports, self._counts = ports, counts
        self._open: OrderedDict[Key, Conversation] = OrderedDict()  # the idle ones first
        self._closed: deque[tuple[Key, Conversation]] = deque()  # in order of their ends
        self._brokers: set[Address] = set()

    def add(self, segment: Segment) -> Iterator[Exchange]:
        """Add a segment to its connection; yield the exchanges that it completes."""
        if segment.source == segment.target:
            return  # the two directions look alike
        if self._ports and segment.source[1] not in self._ports and segment.target[1] not in self._ports:
            return
        ends = segment.source, segment.target
        key = ends if ends[0] < ends[1] else ends[::-1]
        conversation = self._open.get(key)
        if conversation is not None and conversation.is_reused_by(segment):
            yield from self._finish(key)
            conversation = None
        if conversation is None:
            conversation = Conversation(self._counts.connections, segment, self._ports, self._brokers)
            self._open[key] = conversation
            self._counts.connections += 1
        else:
            self._open.move_to_end(key)
        was_open = conversation.closed_at_ns is None
        yield from conversation.add(segment)
        if was_open and conversation.closed_at_ns is not None:
            self._closed.append((key, conversation))
        yield from self._end_some(segment.time_ns)

    def _end_some(self, time_ns: int) -> Iterator[Exchange]:
        """End connections that were closed some time ago, and the idle ones of too many."""
        while self._closed:
            key, closed = self._closed[0]
            if closed.closed_at_ns is not None and time_ns - closed.closed_at_ns <= LINGER_NS:
                break
            self._closed.popleft()
            if self._open.get(key) is closed:  # its ports may have been used again
                yield from self._finish(key)
        while len(self._open) > MAX_CONNECTIONS:
            self._counts.given_up += 1
            yield from self._finish(next(iter(self._open)))

    def finish(self) -> Iterator[Exchange]:
        """Yield the rest at the end of the capture."""
        for key in list(self._open):
            yield from self._finish(key)

    def _finish(self, key: Key) -> Iterator[Exchange]:
        conversation = self._open.pop(key)
        yield from conversation.finish()
        self._counts.lost_bytes += conversation.lost_bytes
