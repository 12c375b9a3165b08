"""The steps from a record set to Arrow record batches, between the kernels. See columns."""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kwire import native
from kwire.errors import CorruptBatch, Malformed
from kwire.records.attributes import CODEC_MASK, CONTROL_FLAG, HIGHEST_CODEC, TRANSACTIONAL_FLAG, Compression
from kwire.records.columns import layout as o
from kwire.records.columns.arrow_columns import ArrowColumns, ConstantColumns
from kwire.records.columns.plain_decoder import record_batch, record_bytes, runs
from kwire.records.compression.codecs import RoomExhausted, expand_into, largest_room
from kwire.records.format import batch_table as t
from kwire.records.format.batch import Batch, too_large, unknown_codec, wrong_crc
from kwire.records.format.batch_checksums import mark_wrong_crcs
from kwire.records.format.batch_header import FRAME_BYTES, MAGIC_POSITION, batch_bytes, header_fault
from kwire.records.format.default_batch import SMALLEST_RECORD_BYTES
from kwire.records.format.faults import Fault
from kwire.records.format.legacy_batch import no_zstd
from kwire.records.format.record import Record
from kwire.records.format.record_set import read_batches
from kwire.records.format.wrapping import to_int64

__all__ = ["Aborted", "Buffer", "ColumnDecoder"]

Table: TypeAlias = npt.NDArray[np.int64]
Buffer: TypeAlias = bytes | bytearray | memoryview | npt.NDArray[np.uint8]
Aborted: TypeAlias = tuple[int, int, int]

TABLE_ROWS = 32768
Decoded: TypeAlias = pa.RecordBatch | CorruptBatch


class ColumnDecoder:
    """Decodes one buffer at a time: decode() sets it, the other methods use it. Arguments as in ColumnReader."""

    def __init__(
        self,
        columns: tuple[str, ...],
        schema: pa.Schema,
        *,
        topic: str | None,
        partition: int | None,
        check_crc: bool,
        max_decompressed_bytes: int,
        max_rows: int,
        max_bytes: int,
        include_control: bool,
    ) -> None:
        self.columns, self.schema = columns, schema
        self.constants = ConstantColumns(topic, partition)
        self.check_crc, self.include_control = check_crc, include_control
        self.max_decompressed_bytes = max_decompressed_bytes
        self.max_rows, self.max_bytes = max_rows, max_bytes
        self.table = np.empty((TABLE_ROWS, t.COLUMN_COUNT), np.int64)
        self.usual_scratch_bytes = 2 * max_bytes
        self.scratch, self.scratch_address = memoryview(b""), 0
        self.consumed = 0
        self.stopped: CorruptBatch | None = None
        self.view = memoryview(b"")
        self.address = 0
        self.position = 0
        self.file: str | None = None
        self.kept_offsets = (0, 0)

    def set_partition(self, topic: str | None, partition: int | None) -> None:
        """Set the contents of the columns of these names."""
        self.constants = ConstantColumns(topic, partition)

    def decode(
        self,
        buf: Buffer,
        position: int,
        file: str | None,
        lowest_offset: int,
        highest_offset: int,
        aborted: Sequence[Aborted],
        scan: t.Scan | None = None,
    ) -> Generator[Decoded, None, None]:
        """Yield record batches, and a CorruptBatch for each corrupt batch. Sets consumed and stopped at the end."""
        self.consumed, self.stopped = 0, None
        self.position, self.file, self.kept_offsets = position, file, (lowest_offset, highest_offset)
        data = np.frombuffer(buf, np.uint8) if len(buf) else np.empty(0, np.uint8)
        self.view, self.address = data.data, data.ctypes.data
        at, status = 0, t.FULL
        while status == t.FULL:
            if scan is None:
                rows, at, status = t.scan_batches(data, at, self.table)
                table = self.table[:rows]
            else:
                table, at, status = scan
            if len(table):
                if self.check_crc:
                    mark_wrong_crcs(data, table)
                if aborted:
                    table = table[~self.is_left_out(table, aborted)]
                yield from self.decode_table(table)
        if status == t.UNBELIEVABLE:
            self.stopped = self.header_error(at)
            yield self.stopped
        self.consumed = at
        self.view = memoryview(b"")

    def choose_plain(self, table: Table) -> Table:
        """Return the rows of the table to decode, and those with a fault, which must be reported: choose_batches."""
        lowest_offset, highest_offset = self.kept_offsets
        attributes, magic, counts = table[:, t.ATTRIBUTES], table[:, t.MAGIC], table[:, t.COUNT]
        codec = attributes & CODEC_MASK
        # A compressed message of magic 0 or 1 begins at an unknown offset at or below the one it has.
        begins_in_time = (table[:, t.BASE_OFFSET] <= highest_offset) | ((magic < 2) & (codec != 0))
        keep = (table[:, t.LAST_OFFSET] >= lowest_offset) & begins_in_time & (counts != 0)
        control = (magic == 2) & (attributes & CONTROL_FLAG != 0)
        if not self.include_control:
            table[control, t.SHIFT] = 1  # they are checked, as Kafka's consumer does, and give no rows
        fault = table[:, t.FAULT]
        fault[(codec > HIGHEST_CODEC) & (fault == 0)] = t.BAD_CODEC
        too_many = (codec == 0) & (counts * SMALLEST_RECORD_BYTES > table[:, t.END] - table[:, t.START])
        fault[keep & (magic == 2) & (too_many | (counts < 0)) & (fault == 0)] = int(Fault.RECORD_COUNT)
        keep |= fault != 0
        return table if keep.all() else table[keep]

    def is_left_out(self, table: Table, aborted: Sequence[Aborted]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that are batches of aborted transactions, less those that must be reported."""
        attributes = table[:, t.ATTRIBUTES]
        is_left_out = self.in_aborted_transactions(table, aborted)
        is_left_out &= (attributes & CONTROL_FLAG == 0) & (attributes & CODEC_MASK <= HIGHEST_CODEC)
        is_left_out &= table[:, t.FAULT] == 0
        return is_left_out

    def in_aborted_transactions(self, table: Table, aborted: Sequence[Aborted]) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that are batches of aborted transactions."""
        transactional = (table[:, t.MAGIC] == 2) & (table[:, t.ATTRIBUTES] & TRANSACTIONAL_FLAG != 0)
        skip = np.zeros(len(table), np.bool_)
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer_id, first, last in aborted:
            by_producer.setdefault(producer_id, []).append((first, last))
        for producer_id in set(by_producer).intersection(table[transactional, t.PRODUCER_ID].tolist()):
            mine = transactional & (table[:, t.PRODUCER_ID] == producer_id)
            base = table[:, t.BASE_OFFSET]
            firsts, lasts = np.array(sorted(by_producer[producer_id]), np.int64).T
            latest = np.searchsorted(firsts, base, "right") - 1
            skip |= mine & (latest >= 0) & (base <= np.maximum.accumulate(lasts)[latest])
        return skip

    def decode_table(self, table: Table) -> Iterator[Decoded]:
        """Decode the rows that have to be decoded or reported, in groups."""
        if native.LEVEL is None:
            yield from self.decode_objects(self.choose_plain(table))
            return
        kept, is_plain, rows, n_bytes = native.choose_batches(table, *self.kept_offsets, self.include_control)
        table = table[:kept]
        if not kept:
            return
        if not is_plain:
            yield from self.decode_one_by_one(table)
            return
        if rows <= self.max_rows and n_bytes <= self.max_bytes:
            yield from self.decode_group(table)
            return
        rows_before = np.concatenate(([0], np.cumsum(table[:, t.COUNT])))
        bytes_before = np.concatenate(([0], np.cumsum(table[:, t.END] - table[:, t.START])))
        first = 0
        while first < len(table):
            by_rows = np.searchsorted(rows_before, rows_before[first] + self.max_rows, "right") - 1
            by_bytes = np.searchsorted(bytes_before, bytes_before[first] + self.max_bytes, "right") - 1
            last = max(int(min(by_rows, by_bytes)), first + 1)
            yield from self.decode_group(table[first:last])
            first = last

    def decode_objects(self, table: Table) -> Iterator[Decoded]:
        """Decode rows as objects, in groups, without compiled code."""
        lowest_offset, highest_offset = self.kept_offsets
        waiting: list[Record] = []
        n_bytes = 0
        for row in table:
            error: CorruptBatch | None = None
            records: list[Record] = []
            try:
                if row[t.FAULT]:
                    raise self.batch_error(row, int(row[t.FAULT]))
                lists = self.batch_of(row).record_lists(
                    check_crc=self.check_crc, start_offset=lowest_offset, end_offset=highest_offset + 1
                )
                records += itertools.chain.from_iterable(lists)
            except CorruptBatch as corrupt:
                error, records = corrupt, []
            if row[t.SHIFT]:
                records = []
            more = sum(map(record_bytes, records))
            if error or len(waiting) + len(records) > self.max_rows or n_bytes + more > self.max_bytes:
                yield from self.record_batches(waiting)
                waiting, n_bytes = [], 0
            waiting += records
            n_bytes += more
            if error:
                yield error
        yield from self.record_batches(waiting)

    def record_batches(self, records: list[Record]) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of records as objects."""
        for run in runs(records, self.max_rows, self.max_bytes):
            yield record_batch(run, self.schema, self.constants)

    def decode_one_by_one(self, table: Table) -> Iterator[Decoded]:
        """Decode rows of which some are compressed or corrupt; the scratch buffer collects the payloads of a group."""
        codecs, magics = (table[:, t.ATTRIBUTES] & CODEC_MASK).tolist(), table[:, t.MAGIC].tolist()
        faults, counts = table[:, t.FAULT].tolist(), table[:, t.COUNT].tolist()
        starts, ends = table[:, t.START].tolist(), table[:, t.END].tolist()
        first, rows, n_bytes, used = 0, 0, 0, 0

        def group(last: int) -> Iterator[Decoded]:
            stretch = table[first:last]
            stretch[:, t.START], stretch[:, t.END] = starts[first:last], ends[first:last]
            return self.decode_group(stretch)

        for i in range(len(table)):
            plain_bytes = 1 if codecs[i] else ends[i] - starts[i]
            if i > first and (rows + counts[i] > self.max_rows or n_bytes + plain_bytes > self.max_bytes):
                yield from group(i)
                first, rows, n_bytes, used = i, 0, 0, 0
            error: CorruptBatch | None = None
            if faults[i]:
                error = self.batch_error(table[i], faults[i])
            elif codecs[i]:
                try:
                    if magics[i] == 2:
                        source = self.view[starts[i] - self.address : ends[i] - self.address]
                    else:
                        source = self.wrapped_payload(table[i])
                    written = self.decompress(table[i], codecs[i], magics[i], source, used)
                    if written < 0:  # the scratch buffer is full: empty it first
                        yield from group(i)
                        first, rows, n_bytes, used = i, 0, 0, 0
                        written = self.decompress(table[i], codecs[i], magics[i], source, used)
                    starts[i] = self.scratch_address + used
                    used += written
                    ends[i] = self.scratch_address + used
                    if magics[i] < 2:
                        counts[i], ends[i] = self.find_inner_messages(table[i], starts[i], ends[i])
                    elif counts[i] * SMALLEST_RECORD_BYTES > written:
                        error = self.batch_error(table[i], int(Fault.RECORD_COUNT))
                except CorruptBatch as corrupt:
                    error = corrupt
            if error:
                yield from group(i)
                yield error
                first, rows, n_bytes, used = i + 1, 0, 0, 0
                continue
            rows += counts[i]
            n_bytes += ends[i] - starts[i]
        yield from group(len(table))
        if len(self.scratch) > self.usual_scratch_bytes:
            self.set_scratch(0)  # grown for one unusual batch

    def set_scratch(self, n_bytes: int) -> None:
        """Replace the scratch buffer; unused pages take no memory."""
        scratch = np.empty(n_bytes, np.uint8)
        self.scratch, self.scratch_address = scratch.data, scratch.ctypes.data

    def decompress(self, row: Table, codec: int, magic: int, source: memoryview, used: int) -> int:
        """Decompress the payload of a batch into the scratch buffer after the first `used` bytes.

        Returns the bytes written, -1 if the remaining room is too small.
        Raises CorruptBatch.
        """
        if not len(self.scratch):
            self.set_scratch(self.usual_scratch_bytes)
        limit = self.max_decompressed_bytes
        most = largest_room(limit)
        while True:
            try:
                written = expand_into(codec, magic, source, self.scratch[used : used + most])
                if written <= limit:
                    return written
            except RoomExhausted as short:
                if used:
                    return -1
                if len(self.scratch) < most:
                    self.set_scratch(min(max(4 * len(self.scratch), short.needed), most))
                    continue
            except Malformed as error:
                raise self.batch_of(row).corrupt(error.what) from None
            raise self.batch_of(row).corrupt(too_large(Compression(codec), limit))

    def wrapped_payload(self, row: Table) -> memoryview:
        """Return the compressed bytes in a message of magic 0 or 1."""
        magic = int(row[t.MAGIC])
        if row[t.ATTRIBUTES] & CODEC_MASK == int(Compression.ZSTD):
            raise self.batch_of(row).corrupt(no_zstd(magic))
        message = self.view_of(row)
        at, length, fault = native.wrapped_value(message)
        if fault:
            raise self.batch_error(row, fault)
        return message[at : at + length]

    def find_inner_messages(self, row: Table, start: int, end: int) -> tuple[int, int]:
        """Return (number of inner messages, address after the last); sets COUNT, and SHIFT by R-23."""
        payload = self.scratch[start - self.scratch_address : end - self.scratch_address]
        count, last, n_bytes, fault = native.measure_messages(payload)
        if fault:
            raise self.batch_error(row, fault, count)
        if not count:
            raise self.batch_error(row, int(Fault.WRAPPER_EMPTY))
        row[t.COUNT] = count
        offset = int(row[t.BASE_OFFSET])
        if row[t.MAGIC] == 1 and offset != 0:
            if offset < last:
                raise self.batch_error(row, int(Fault.WRAPPER_OFFSET))
            row[t.SHIFT] = to_int64(offset - last)
        return count, start + n_bytes

    def decode_group(self, group: Table) -> Iterator[Decoded]:
        """Decode rows with valid headers: yields record batches, and an error for each corrupt batch."""
        done = 0
        if len(group) == 1 and (
            group[0, t.COUNT] > self.max_rows or group[0, t.END] - group[0, t.START] > self.max_bytes
        ):
            yield from self.decode_large(group)
            return
        while done < len(group):
            rest = group[done:]
            n_bytes = int((rest[:, t.END] - rest[:, t.START]).sum())
            columns = ArrowColumns(self.columns, int(rest[:, t.COUNT].sum()), n_bytes)
            good = self.parse(rest, columns)
            rows = int(columns.state[o.ROWS])
            if rows:
                yield columns.finish(self.schema, self.constants)
            if good < len(rest):
                fault, record = int(columns.state[o.STOPPED_BY]), int(columns.state[o.STOPPED_AT])
                yield self.batch_error(rest[good], fault, record)
            done += good + 1

    def decode_large(self, group: Table) -> Iterator[Decoded]:
        """Decode one batch in parts, so that a small one never becomes columns of millions of rows.

        It is scanned first, because a corrupt batch gives no rows.
        """
        row = group[0]
        start, end = int(row[t.START]), int(row[t.END])
        whole = ArrowColumns((), 0, 0)
        if not self.parse(group, whole):
            yield self.batch_error(row, int(whole.state[o.STOPPED_BY]), int(whole.state[o.STOPPED_AT]))
            return
        while start < end:
            count, after = native.skip_records(start, end, int(row[t.MAGIC]), self.max_rows, self.max_bytes)
            part = group.copy()
            part[0, t.START], part[0, t.END], part[0, t.COUNT] = start, after, count
            columns = ArrowColumns(self.columns, int(count), int(after - start))
            parsed = self.parse(part, columns)
            assert parsed, "a part of a batch was read once and not again"
            if columns.state[o.ROWS]:
                yield columns.finish(self.schema, self.constants)
            start = int(after)

    def parse(self, table: Table, columns: ArrowColumns) -> int:
        """Decode batches into columns. Returns the number of batches decoded."""
        addresses, state = columns.addresses, columns.state
        return int(native.decode_records(table, *self.kept_offsets, self.check_crc, addresses, state))

    def view_of(self, row: Table) -> memoryview:
        """Return the bytes of a batch."""
        at = int(row[t.POSITION])
        return self.view[at : at + int(row[t.SIZE])]

    def batch_of(self, row: Table) -> Batch:
        """Return the batch as an object, which creates its errors."""
        position, most = self.position + int(row[t.POSITION]), self.max_decompressed_bytes
        return next(read_batches(self.view_of(row), position=position, max_decompressed_bytes=most, file=self.file))

    def batch_error(self, row: Table, fault: int, record: int = -1) -> CorruptBatch:
        """Create the error for a batch with this fault, at this record if record >= 0."""
        batch = self.batch_of(row)
        if fault > 0:
            return batch.corrupt(Fault(fault).text, None if record < 0 else record)
        if fault == t.BAD_CRC:
            return batch.corrupt(wrong_crc(batch.crc, batch.computed_crc()))
        return batch.corrupt(unknown_codec(batch.attributes & CODEC_MASK))

    def header_error(self, at: int) -> CorruptBatch:
        """Create the error for bytes at `at` that are not a batch header."""
        size = batch_bytes(self.view, at) - FRAME_BYTES
        magic = self.view[at + MAGIC_POSITION] if len(self.view) > at + MAGIC_POSITION else None
        return CorruptBatch(header_fault(size, magic) or "bad header", self.position + at, (), self.file)
