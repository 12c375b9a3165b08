"""`kwire log dump --like-kafka`: the output of kafka-dump-log.

Lines go to standard output, problems (mismatches, gaps, unreadable parts) to standard error, as the tool's do.
One difference is intended: where the tool ends with an exception, this continues with the next file and exits with 1.
On a terminal, control characters in keys and payloads are escaped; in a pipe or file they are printed as Java does.
Source: DumpLogSegments of 2.8.2, 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kwire.cli import terminal
from kwire.cli.log.files import Dumped, LogFile, open_file, trailing_bytes
from kwire.cli.log.kafka_lines import Lines, Reading, batch_line, producer_line, record_lines, starting_line
from kwire.cli.log.selection import Selection
from kwire.errors import DecodeError, KwireError
from kwire.log.files.chunks import BatchWalk
from kwire.pages.escaping import printable

__all__ = ["KafkaDump"]

Pairs = dict[str, list[tuple[int, int]]]


@dataclass(slots=True, kw_only=True)
class KafkaDump:
    """One run of the tool.

    deep: print records with keys and payloads (--deep-iteration --print-data-log). read, bare: see record_lines.
    has_problems: whether anything was wrong.
    """

    lines: Lines
    deep: bool
    selection: Selection
    advance: Callable[[int], None]
    read: Reading | None = None
    bare: bool = False
    has_problems: bool = False
    _index_mismatches: Pairs = field(default_factory=dict)
    _time_mismatches: Pairs = field(default_factory=dict)
    _times_out_of_order: Pairs = field(default_factory=dict)
    _offsets_not_found: Pairs = field(default_factory=dict)
    _gaps: Pairs = field(default_factory=dict)

    def run(self, files: Iterable[Dumped]) -> bool:
        """Print files, then the inconsistencies between them. Returns whether anything was wrong."""
        for file in files:
            self._dump(file)
        self._finish()
        return self.has_problems

    def _dump(self, file: Dumped) -> None:
        self._print(f"Dumping {file.name}")
        try:
            entries: dict[str, Callable[[LogFile], None]] = {
                ".index": self._index,
                ".timeindex": self._time_index,
                ".txnindex": self._transaction_index,
                ".snapshot": self._snapshot,
            }
            if isinstance(file, LogFile) and file.kind in entries:
                entries[file.kind](file)
            else:
                self._log(file)
        except KwireError as error:
            self._complain(f"kwire: {error}")
            self.has_problems = True

    def _finish(self) -> None:
        self._pairs(self._index_mismatches, "Mismatches in :{}", "  Index offset: {}, log offset: {}", reverse=True)
        self._pairs(
            self._time_mismatches, "Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}"
        )
        self._pairs(
            self._times_out_of_order,
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        self._pairs(
            self._offsets_not_found,
            "The following indexed offsets are not found in the log.",
            "Indexed offset: {}, found log offset: {}",
        )
        # compaction leaves gaps: they are reported and do not change the exit code
        wrong = (self._index_mismatches, self._time_mismatches, self._times_out_of_order, self._offsets_not_found)
        self.has_problems = self.has_problems or any(wrong)
        self._pairs(self._gaps, "Non-consecutive offsets in {}", "  {} is followed by {}", reverse=True)

    def _pairs(self, pairs: Pairs, head: str, line: str, *, reverse: bool = False) -> None:
        """Print pairs by file. reverse: listed newest first by the tool before it was rewritten in Java."""
        for name, offset_pairs in pairs.items():
            self._complain(head.format(name))
            for pair in reversed(offset_pairs) if reverse and self.lines is not Lines.KAFKA_4_3 else offset_pairs:
                self._complain(line.format(*pair))

    def _print(self, line: str) -> None:
        sys.stdout.write((printable(line) if terminal.is_terminal() else _encodable(line)) + "\n")

    def _complain(self, line: str) -> None:
        sys.stdout.flush()
        print(printable(line), file=sys.stderr)

    # ---- .log and .checkpoint

    def _log(self, file: Dumped) -> None:
        if file.kind == ".log":
            if file.base_offset is not None:
                self._print(starting_line(file.base_offset, self.lines))
        elif file.base_offset is None:
            self._print("KRaft bootstrap snapshot")
        else:
            epoch = file.name.rsplit("/", 1)[-1].removesuffix(".checkpoint").rpartition("-")[2]
            self._print(f"Snapshot end offset: {file.base_offset}, epoch: {int(epoch)}")
        with file.walk(self.selection, self.advance) as walk:
            last = -1
            for batch in walk:
                if not (self.selection.may_take_from if self.deep else self.selection.takes_batch)(batch):
                    continue
                try:
                    shown = self.selection.takes_batch(batch)
                    if shown:
                        self._print(batch_line(batch, self.lines, file.position_of(batch)))
                    self.has_problems = self.has_problems or not batch.is_valid
                    if self.deep:
                        for record, line in record_lines(batch, self.lines, read=self.read, bare=self.bare):
                            if not self.selection.takes_record(record):
                                continue
                            if not shown:
                                self._print(batch_line(batch, self.lines, file.position_of(batch)))
                                shown = True
                            if last not in (-1, record.offset - 1):
                                self._gaps.setdefault(file.url, []).append((last, record.offset))
                            last = record.offset
                            self._print(line)
                except DecodeError as error:
                    self._complain(f"kwire: {error}")
                    self.has_problems = True
            if left := trailing_bytes(walk):
                name = file.name.rsplit("/", 1)[-1]
                self._print(f"Found {left} invalid bytes at the end of {name}")
                self.has_problems = True

    # ---- indexes

    def _entries(self, file: LogFile, entry_bytes: int) -> bytes:
        with file.open() as opened:
            size = opened.size()
            return opened.pread(0, size - size % entry_bytes)

    def _index(self, file: LogFile) -> None:
        from kwire.log.files.offset_index import ENTRY

        data = self._entries(file, ENTRY.size)
        base = file.base_offset or 0
        if not data:
            self._print(f"{file.name} is empty.")
            return
        with open_file(file.sibling(".log")) as log:
            where = log.url.removesuffix(".log") + file.kind
            for i, (relative, position) in enumerate(ENTRY.iter_unpack(data)):
                if relative == 0 and i > 0:
                    return  # the zeros of a preallocated file
                batch = None
                if 0 <= position < log.size():
                    batch = next(iter(BatchWalk(log, position)), None)
                if batch is None:
                    raise KwireError(
                        f"{file.name}: entry {i} (offset {base + relative}) points at byte {position} of "
                        f"{log.url}, which is not the start of a complete batch"
                    )
                if batch.last_offset != base + relative:
                    self._index_mismatches.setdefault(where, []).append((base + relative, batch.last_offset))
                self._print(f"offset: {base + relative} position: {position}")

    def _time_index(self, file: LogFile) -> None:
        from kwire.log.files.time_index import ENTRY

        data = self._entries(file, ENTRY.size)
        base = file.base_offset or 0
        before = -1
        with open_file(file.sibling(".log")) as log:
            where = log.url.removesuffix(".log") + file.kind
            for i, (timestamp, relative) in enumerate(ENTRY.iter_unpack(data)):
                offset = base + relative
                if relative == 0 and i > 0:
                    return  # the zeros of a preallocated file
                walk = BatchWalk(log, self._position_of(file, offset, log.size()))
                batch = next((b for b in walk if b.last_offset >= offset), None)
                if batch is None or batch.last_offset != offset:
                    last_offset = -1 if batch is None else batch.last_offset
                    self._offsets_not_found.setdefault(where, []).append((offset, last_offset))
                else:
                    latest = max((record.timestamp for record in batch.records(check_crc=False)), default=-1)
                    if latest != timestamp:
                        self._time_mismatches.setdefault(where, []).append((timestamp, latest))
                    if before >= timestamp:
                        self._times_out_of_order.setdefault(where, []).append((timestamp, before))
                self._print(f"timestamp: {timestamp} offset: {offset}")
                before = timestamp

    def _position_of(self, file: LogFile, offset: int, size: int) -> int:
        """Return the position to scan from for an offset: of the segment's `.index`, or 0 without one."""
        from kwire.log.files.offset_index import OffsetIndex

        try:
            with open_file(file.sibling(".index")) as opened:
                index = OffsetIndex.read(opened, file.base_offset or 0)
        except KwireError:
            return 0
        position = index.lookup(offset)[1] if index else 0
        return position if 0 <= position < size else 0

    def _transaction_index(self, file: LogFile) -> None:
        from kwire.log.files.transaction_index import ENTRY

        for version, producer_id, first, last, stable in ENTRY.iter_unpack(self._entries(file, ENTRY.size)):
            self._print(
                f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last}"
                f" lastStableOffset: {stable}"
            )

    def _snapshot(self, file: LogFile) -> None:
        from kwire.log.files.producer_snapshot import parse_producer_snapshot

        with file.open() as opened:
            data = opened.pread(0, opened.size())
        for state in parse_producer_snapshot(data):
            self._print(producer_line(state, self.lines))


def _encodable(line: str) -> str:
    """Replace lone surrogates (of file names that are not UTF-8) with `?`, like Java."""
    return line.encode("utf-8", "replace").decode("utf-8")
