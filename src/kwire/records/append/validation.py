"""Validate records before an append, assign offsets, and rebuild batches only where needed.

    source and target              done                                    records
    none to none, same magic       in place: offsets, epoch, timestamps    not touched
    none to none, other magic      rebuilt                                 encoded anew
    same codec and magic 1 or 2,   in place: header only                   decompressed for checks, stored as they came
      offsets 0, 1, 2 ...
    anything else                  rebuilt                                 encoded anew and compressed

KIP-31 makes this possible: with relative offsets, a broker assigns offsets to compressed records in the header alone.
Offsets with gaps (copied from a compacted topic) cause a rebuild, not an error. A valid record of magic 2 is not
encoded again even if its batch gets another codec.
Source: KIP-31, KIP-32, KIP-467; org.apache.kafka.storage.internals.log.LogValidator 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn, Unpack

import msgspec

from kwire import native
from kwire.errors import CorruptBatch, EncodeError, OptionError
from kwire.extras import is_installed
from kwire.records.append.patching import patch_header
from kwire.records.append.record_errors import RecordToCheck, check_records, timestamps_may_be_wrong
from kwire.records.append.settings import AppendOptions, AppendOrigin, AppendSettings
from kwire.records.attributes import NO_PRODUCER_ID, NO_TIMESTAMP, Compression, TimestampType
from kwire.records.compression.compressor import compress
from kwire.records.format.append_error import AppendErrorCode, RejectedRecords
from kwire.records.format.batch import Batch
from kwire.records.format.batch_header import DEFAULT_HEADER, MAGIC_POSITION, OFFSET
from kwire.records.format.builder import BatchBuilder, LargestTimestamp
from kwire.records.format.default_writer import MAX_INT64, BatchFields, join_batch
from kwire.records.format.faults import Fault
from kwire.records.format.legacy_entries import expand_or_reject, known_codec, legacy_entries
from kwire.records.format.record import Record
from kwire.records.format.record_set import byte_view, read_batches
from kwire.records.format.section_scan import SectionScan, scan_section
from kwire.wire.varint import read_varint

__all__ = ["ValidatedRecords", "validate_and_assign_offsets"]

FEW_BYTES = 4096  # of messages: fewer are rebuilt as objects, as columns have a fixed cost of 0.2 ms


class ValidatedRecords(NamedTuple):
    """Records ready to be appended.

    parts: their bytes in order, to be written one after another; views of the input where it is unchanged.
    next_offset: the offset after the last record. log_append_time_ms: the append time, if any.
    max_timestamp_ms, offset_of_max_timestamp: for the time index (A-26), both -1 if there is none.
    in_place: nothing but headers changed. records_converted: records that were rebuilt, 0 in place.
    payload_bytes_written: bytes of records (as stored) that were written anew; 0 in place, where not one was copied.
    """

    parts: list[bytes | memoryview]
    next_offset: int
    log_append_time_ms: int
    max_timestamp_ms: int
    offset_of_max_timestamp: int
    in_place: bool
    records_converted: int
    payload_bytes_written: int

    @property
    def data(self) -> bytes:
        """All parts in one piece (a copy)."""
        return b"".join(self.parts)

    @property
    def size_bytes(self) -> int:
        """Of all parts."""
        return sum(map(len, self.parts))

    def moved(self, shift: int) -> ValidatedRecords | None:
        """Return a copy with all offsets increased by shift.

        None if the records must be validated again: compressed records of magic 0 contain their offsets, and offsets
        have a maximum.
        """
        if self.next_offset - 1 + shift > MAX_INT64:
            return None
        data = bytearray(self.data)
        for batch in read_batches(data):
            if batch.magic == 0 and known_codec(batch):
                return None
            OFFSET.pack_into(data, batch.position, OFFSET.unpack_from(data, batch.position)[0] + shift)
        of_max = self.offset_of_max_timestamp
        return self._replace(
            parts=[memoryview(data)],
            next_offset=self.next_offset + shift,
            offset_of_max_timestamp=of_max + shift if of_max >= 0 else -1,
        )


class CheckedBatch(msgspec.Struct):
    """A batch whose records are valid. section and scan: of magic 2; entries: of magic 0 and 1."""

    batch: Batch
    count: int
    is_contiguous: bool  # offsets are 0, 1, 2 ... from the start of the set
    max_timestamp: int
    section: memoryview | None = None
    scan: SectionScan | None = None
    entries: list[RecordToCheck] | None = None


def validate_and_assign_offsets(
    buf: bytes | bytearray | memoryview, first_offset: int, **options: Unpack[AppendOptions]
) -> ValidatedRecords:
    """Validate produced records as a broker does and assign offsets from first_offset on.

    buf: batches of one magic, one batch only if it is magic 2 or compressed; a cut batch at the end is dropped.
    Keyword arguments, with the topic's settings by Kafka's names:
      now_ms: the time (required).
      to_magic: format of the log, default 2.
      compression_type: "producer" (default: as it came) or a codec; compression_level: see compressor.
      message_timestamp_type: CREATE_TIME (default) or LOG_APPEND_TIME.
      message_timestamp_before_max_ms, message_timestamp_after_max_ms: how far from now a timestamp may be; unlimited.
      compacted: whether cleanup.policy has "compact", so that keys are needed.
      leader_epoch: of the partition's leader, stored in magic 2 batches.
      origin: who sends, default AppendOrigin.CLIENT.
      max_message_bytes: largest batch after rewriting; None (default) for no limit.
      zstd_allowed: False for a broker whose inter.broker.protocol.version is below 2.1.
      topic_partition: named in errors as Kafka names it.
      max_decompressed_bytes: what a batch may decompress to.
      max_decompressed_message_bytes: largest record in a compressed batch of magic 2; None (default) for no limit.
      check_crc: verify the batches' checksums (A-04); False if that is done. Those inside wrappers always are.
    What a broker checks before: kwire.records.append.checks.
    Raises RejectedRecords with Kafka's error code, and per record what is wrong; OptionError on a wrong setting.
    """
    given = AppendSettings(**options)
    if not 0 <= first_offset <= MAX_INT64:
        raise OptionError(f"first_offset {first_offset} is out of range: 0 to {MAX_INT64}")
    rebuilt = rebuild_by_columns(buf, first_offset, given)
    if rebuilt is not None:
        check_sizes(rebuilt, given)
        return rebuilt
    batches = readable_batches(buf, given)
    source = source_codec(batches)
    target = given.target_codec(source)
    plain = source == Compression.NONE == target
    if not plain and target == Compression.ZSTD and not given.zstd_allowed:
        reject(AppendErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs inter.broker.protocol.version 2.1 or later")
    first = first_of(batches, source)
    same_magic = all(batch.magic == given.to_magic for batch in batches)
    # A plan: offsets that are not contiguous may undo it. An uncompressed control batch is never compressed.
    in_place = (
        same_magic
        if plain
        else (
            (source == target and given.to_magic > 0 and first.magic == given.to_magic)
            or (source == Compression.NONE and first.is_control)
        )
    )
    if not in_place and plain:
        # Kafka creates it first, so errors of the target format are raised before errors of the records
        start_builder(first, first_offset, target, given)
    checked = [check_batch(batch, first, given, in_place and not plain) for batch in batches]
    number_entries(checked)
    count = sum(one.count for one in checked)
    if first_offset + count - 1 > MAX_INT64:
        reject(AppendErrorCode.UNKNOWN_SERVER_ERROR, f"{count} records from offset {first_offset} on overflow int64")
    if in_place and not plain and given.to_magic and not all(one.is_contiguous for one in checked):
        if first.magic == 2:
            # Kafka has not kept keys and values for this and fails on its own assumption
            reject(AppendErrorCode.UNKNOWN_SERVER_ERROR, "inner offsets of a compressed batch are not 0, 1, 2 ...")
        in_place = False
    result = (
        assign_in_place(checked, first_offset, given, plain)
        if in_place
        else rebuild(checked, first_offset, count, target, given)
    )
    check_sizes(result, given)
    return result


def reject(code: AppendErrorCode, what: str) -> NoReturn:
    """Raise RejectedRecords."""
    raise RejectedRecords(what, code)


def readable_batches(buf: bytes | bytearray | memoryview, given: AppendSettings) -> list[Batch]:
    """Read the batches and verify their checksums."""
    batches = []
    try:
        for batch in read_batches(buf, max_decompressed_bytes=given.max_decompressed_bytes):
            computed = batch.computed_crc() if given.check_crc else batch.crc
            if batch.crc != computed:
                raise RejectedRecords(
                    f"Record is corrupt (stored crc = {batch.crc}, computed crc = {computed})",
                    AppendErrorCode.CORRUPT_MESSAGE,
                )
            batches.append(batch)
    except CorruptBatch as error:  # a header that cannot be
        raise RejectedRecords(error.what, AppendErrorCode.CORRUPT_MESSAGE) from None
    return batches


def source_codec(batches: Sequence[Batch]) -> Compression:
    """The codec of the set: that of its last compressed batch. Source: UnifiedLog.analyzeAndValidateRecords."""
    codecs = [known_codec(batch) for batch in batches]
    return next((codec for codec in reversed(codecs) if codec), Compression.NONE)


def first_of(batches: Sequence[Batch], source: Compression) -> Batch:
    """Return the first batch, which must be the only one in magic 2 and in compressed sets (A-10)."""
    if not batches:
        reject(AppendErrorCode.INVALID_RECORD, "Record batch has no batches at all")
    if len(batches) > 1 and (batches[0].magic == 2 or source):
        reject(AppendErrorCode.INVALID_RECORD, "Compressed outer record has more than one batch")
    return batches[0]


def check_header(batch: Batch, first: Batch, given: AppendSettings) -> None:
    """Check the rules for a whole batch: A-10 to A-13."""
    invalid = AppendErrorCode.INVALID_RECORD
    if batch.magic != first.magic:
        reject(
            invalid,
            f"Batch magic {batch.magic} is not the same as the first batch's magic byte {first.magic}{given.where}",
        )
    if given.origin == AppendOrigin.CLIENT:
        if batch.magic == 2:
            span = f"[{batch.base_offset}, {batch.last_offset}]"
            count = batch.count
            assert count is not None
            if batch.last_offset - batch.base_offset + 1 <= 0:
                reject(invalid, f"Batch has an invalid offset range: {span}{given.where}")
            if count <= 0:
                reject(invalid, f"Invalid reported count for record batch: {count}{given.where}")
            if batch.last_offset - batch.base_offset + 1 != count:
                reject(invalid, f"Inconsistent batch offset range {span} and count of records {count}{given.where}")
        if batch.is_control:
            reject(invalid, f"Clients are not allowed to write control records{given.where}")
        if batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0:
            reject(
                invalid,
                f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
                f"{batch.producer_id}{given.where}",
            )
    if given.to_magic < 2:
        unsupported = AppendErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        if batch.is_transactional:
            reject(unsupported, f"Transactional records cannot be used with magic version {given.to_magic}")
        if batch.producer_id > NO_PRODUCER_ID:
            reject(unsupported, f"Idempotent records cannot be used with magic version {given.to_magic}")


def check_batch(batch: Batch, first: Batch, given: AppendSettings, header_only: bool) -> CheckedBatch:
    """Check a batch and all its records; header_only: the records are not needed afterwards."""
    check_header(batch, first, given)
    if batch.magic < 2:
        entries = [
            RecordToCheck(entry.offset, entry.timestamp, entry.key, entry.value, [], entry.magic, entry)
            for entry in legacy_entries(batch, given.max_decompressed_bytes)
        ]
        check_records(batch, entries, given)
        largest = max((entry.timestamp for entry in entries), default=NO_TIMESTAMP) if batch.magic else NO_TIMESTAMP
        return CheckedBatch(batch, len(entries), False, max(largest, NO_TIMESTAMP), entries=entries)
    return check_default_batch(batch, given, header_only)


def check_default_batch(batch: Batch, given: AppendSettings, header_only: bool) -> CheckedBatch:
    """Scan the records; decodes them one by one only if the scan found a possible error."""
    count = batch.count
    assert count is not None
    if count == 0:
        return CheckedBatch(batch, 0, True, NO_TIMESTAMP, section=memoryview(b""))
    codec = known_codec(batch)
    payload = batch.buffer[DEFAULT_HEADER.size :]
    section = expand_or_reject(codec, 2, payload, given.max_decompressed_bytes) if codec else payload
    scan = scan_section(section, count, batch.base_timestamp)
    if scan.fault:
        at = f"record {scan.fault_index}: " if scan.fault_index >= 0 else ""
        reject(AppendErrorCode.INVALID_RECORD, at + Fault(scan.fault).text)
    if codec and given.max_decompressed_message_bytes is not None:
        check_record_sizes(section, count, given.max_decompressed_message_bytes)
    append_time = batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    largest = batch.max_timestamp if append_time else scan.largest_timestamp
    smallest = batch.max_timestamp if append_time else scan.smallest_timestamp
    if (given.compacted and scan.null_keys) or timestamps_may_be_wrong(batch, smallest, largest, given):
        name = "PartialDefaultRecord" if header_only and codec else "DefaultRecord"
        check_records(batch, list(default_records(batch, name)), given)
    contiguous = scan.is_contiguous and batch.base_offset == 0
    return CheckedBatch(batch, count, contiguous, max(largest, NO_TIMESTAMP), section=section, scan=scan)


def check_record_sizes(section: bytes | memoryview, count: int, limit: int) -> None:
    """Reject records above a size, without the bytes of their length, as Kafka counts it. section: valid records."""
    if len(section) <= limit:
        return
    position = 0
    for index in range(count):
        size, position = read_varint(section, position)
        if size > limit:
            what = f"record {index}: {size} bytes, the limit of max.decompressed.message.bytes is {limit}"
            reject(AppendErrorCode.INVALID_RECORD, what)
        position += size


def default_records(batch: Batch, name: str) -> Iterator[RecordToCheck]:
    """Decode the records of a magic 2 batch, to check them one by one."""
    for record in batch.records():
        text = (
            f"{name}(offset={record.offset}, timestamp={record.timestamp}, key={len(record.key or b'')} bytes, "
            f"value={len(record.value or b'')} bytes)"
        )
        yield RecordToCheck(record.offset, record.timestamp, record.key, record.value, record.headers, 2, text)


def number_entries(checked: Sequence[CheckedBatch]) -> None:
    """Check whether offsets of magic 0 and 1 are 0, 1, 2 ... over the whole set."""
    expected = 0
    for one in checked:
        if one.entries is not None:
            one.is_contiguous = all(entry.offset == expected + i for i, entry in enumerate(one.entries))
        expected += one.count


def assign_in_place(
    checked: Sequence[CheckedBatch], first_offset: int, given: AppendSettings, plain: bool
) -> ValidatedRecords:
    """Write new headers for the received records (A-20, A-24)."""
    parts: list[bytes | memoryview] = []
    offset, largest = first_offset, LargestTimestamp(NO_TIMESTAMP, -1)
    append_time = given.timestamp_type == TimestampType.LOG_APPEND_TIME
    for one in checked:
        batch = one.batch
        offset += one.count
        if one.max_timestamp > largest.timestamp:
            largest = LargestTimestamp(one.max_timestamp, offset - 1)
        head = patch_header(
            batch,
            last_offset=offset - 1,
            leader_epoch=given.leader_epoch,
            timestamp_type=given.timestamp_type,
            max_timestamp=given.now_ms if append_time else one.max_timestamp,
        )
        if head == batch.buffer[: len(head)]:
            parts.append(batch.buffer)
        else:
            parts += (head, batch.buffer[len(head) :])
    if append_time:
        largest = append_time_of(first_offset, offset - 1, given, plain)
    elif not plain:
        largest = LargestTimestamp(checked[0].max_timestamp, offset - 1)
    return ValidatedRecords(
        parts=parts,
        next_offset=offset,
        log_append_time_ms=given.now_ms,
        max_timestamp_ms=largest.timestamp,
        offset_of_max_timestamp=largest.offset,
        in_place=True,
        records_converted=0,
        payload_bytes_written=0,
    )


def append_time_of(first_offset: int, last_offset: int, given: AppendSettings, plain: bool) -> LargestTimestamp:
    """Return the largest timestamp if all records get the append time."""
    if plain and given.to_magic == 0:
        return LargestTimestamp(NO_TIMESTAMP, -1)
    return LargestTimestamp(given.now_ms, first_offset if plain and given.to_magic == 1 else last_offset)


def start_builder(first: Batch, first_offset: int, target: Compression, given: AppendSettings) -> BatchBuilder:
    """Create the builder of the new batch, with the producer of the first old one (A-25)."""
    append_time = given.timestamp_type == TimestampType.LOG_APPEND_TIME
    try:
        return BatchBuilder(
            magic=given.to_magic,
            compression=target,
            level=given.compression_level,
            base_offset=first_offset,
            timestamp_type=given.timestamp_type,
            log_append_time_ms=given.now_ms if append_time else NO_TIMESTAMP,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
            base_sequence=first.base_sequence,
            is_transactional=first.is_transactional,
            partition_leader_epoch=given.leader_epoch,
        )
    except EncodeError as error:
        raise RejectedRecords(error.what, AppendErrorCode.UNKNOWN_SERVER_ERROR) from None


def rebuild(
    checked: Sequence[CheckedBatch], first_offset: int, count: int, target: Compression, given: AppendSettings
) -> ValidatedRecords:
    """Rebuild all records as one new batch, or as separate messages (A-21, A-22)."""
    builder = start_builder(checked[0].batch, first_offset, target, given)
    whole = recompressed(checked, first_offset, target, given)
    if whole is not None:
        data, largest = whole
    else:
        try:
            for record in all_records(checked):
                builder.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
            data, largest = builder.build(), builder.largest_timestamp
        except EncodeError as error:
            raise RejectedRecords(error.what, AppendErrorCode.UNKNOWN_SERVER_ERROR) from None
    return rebuilt_records(data, first_offset, count, largest, given)


def rebuilt_records(
    data: bytes, first_offset: int, count: int, largest: LargestTimestamp, given: AppendSettings
) -> ValidatedRecords:
    """Return the result for records that were written anew, as one part."""
    return ValidatedRecords(
        parts=[data],
        next_offset=first_offset + count,
        log_append_time_ms=given.now_ms,
        max_timestamp_ms=largest.timestamp,
        offset_of_max_timestamp=largest.offset,
        in_place=False,
        records_converted=count,
        payload_bytes_written=len(data),
    )


def rebuild_by_columns(
    buf: bytes | bytearray | memoryview, first_offset: int, given: AppendSettings
) -> ValidatedRecords | None:
    """Rebuild uncompressed messages of magic 0 and 1 as a batch of magic 2; None if that needs objects."""
    if native.LEVEL is None or given.to_magic != 2 or len(buf) < max(FEW_BYTES, DEFAULT_HEADER.size):
        return None
    if not is_installed("pyarrow"):
        return None
    view = byte_view(buf)
    target = given.target_codec(Compression.NONE)
    if view[MAGIC_POSITION] > 1 or (target == Compression.ZSTD and not given.zstd_allowed):
        return None
    from kwire.records.append.rebuild import rebuild_messages

    rebuilt = rebuild_messages(view, first_offset, target, given)
    if rebuilt is None:
        return None
    data, count, largest = rebuilt
    return rebuilt_records(data, first_offset, count, largest, given)


def all_records(checked: Sequence[CheckedBatch]) -> Iterator[Record | RecordToCheck]:
    """Yield the records of the set in order."""
    for one in checked:
        yield from one.batch.records() if one.entries is None else one.entries


def recompressed(
    checked: Sequence[CheckedBatch], first_offset: int, target: Compression, given: AppendSettings
) -> tuple[bytes, LargestTimestamp] | None:
    """Recompress a magic 2 batch without encoding its records again; None if they must be encoded."""
    one = checked[0]
    batch, scan = one.batch, one.scan
    if given.to_magic < 2 or scan is None or one.section is None or not (scan.is_contiguous and scan.is_canonical):
        return None
    if (
        scan.first_delta
        or batch.timestamp_type == TimestampType.LOG_APPEND_TIME
        or scan.smallest_timestamp < NO_TIMESTAMP
    ):
        return None
    if batch.base_timestamp < NO_TIMESTAMP:
        return None
    append_time = given.timestamp_type == TimestampType.LOG_APPEND_TIME
    last_offset = first_offset + one.count - 1
    try:
        fields = BatchFields(
            compression=target,
            timestamp_type=given.timestamp_type,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            is_transactional=batch.is_transactional,
            partition_leader_epoch=given.leader_epoch,
        )
        data = join_batch(
            fields,
            compress(target, one.section, level=given.compression_level) if target else one.section,
            base_offset=first_offset,
            last_offset=last_offset,
            base_timestamp=batch.base_timestamp,
            max_timestamp=given.now_ms if append_time else one.max_timestamp,
            count=one.count,
        )
    except EncodeError as error:
        raise RejectedRecords(error.what, AppendErrorCode.UNKNOWN_SERVER_ERROR) from None
    if append_time:
        return data, LargestTimestamp(given.now_ms, last_offset)
    return data, LargestTimestamp(one.max_timestamp, last_offset if one.max_timestamp != NO_TIMESTAMP else -1)


def check_sizes(result: ValidatedRecords, given: AppendSettings) -> None:
    """Check the size again after rewriting (A-03)."""
    if given.max_message_bytes is None or result.in_place:
        return
    for batch in read_batches(result.data):
        if batch.size_bytes > given.max_message_bytes:
            reject(
                AppendErrorCode.MESSAGE_TOO_LARGE,
                f"Message batch size is {batch.size_bytes} bytes in append{given.where.replace(' in', ' to', 1)}, "
                f"which exceeds the maximum configured size of {given.max_message_bytes}.",
            )
