"""Fast path for appends: one batch of magic 2 that is stored as received, which is what nearly every producer sends.

It applies if only base offset and leader epoch change, which the checksum does not cover: one pass over the header, the
checksum and the records. Everything else, such as another format or codec, a timestamp to set, or any error, takes the
slow path (append_checks, validation), which raises the errors. A batch that breaks any rule gives None here.
Source: rules A-01 to A-26; Kafka's LogValidator.assignOffsetsNonCompressed, validateMessagesAndAssignOffsetsCompressed.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kwire.records.append.settings import UNLIMITED_MS
from kwire.records.attributes import CODEC_MASK, NO_TIMESTAMP, TRANSACTIONAL_FLAG, Compression
from kwire.records.compression.codecs import DEFAULT_MAX_DECOMPRESSED_BYTES
from kwire.records.format.append_error import RejectedRecords
from kwire.records.format.batch_header import (
    ATTRIBUTES_POSITION,
    DEFAULT_HEADER,
    DEFAULT_HEADER_BYTES,
    FRAME_BYTES,
    LEADER_EPOCH,
    LEADER_EPOCH_POSITION,
    OFFSET,
)
from kwire.records.format.checksum import crc32c
from kwire.records.format.default_writer import MAX_INT64
from kwire.records.format.legacy_entries import expand_or_reject
from kwire.records.format.section_scan import scan_section

__all__ = ["WholeBatch", "WholeBatchConfig", "take_whole_batch"]

MAX_LEADER_EPOCH = (1 << 31) - 1
WANTED_FLAGS = CODEC_MASK | TRANSACTIONAL_FLAG


class WholeBatchConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The topic configs that the fast path needs; codec: None for "producer".

    The fast path is for topics with magic 2 and CreateTime.
    """

    codec: Compression | None = None
    max_message_bytes: int
    message_timestamp_before_max_ms: int = UNLIMITED_MS
    message_timestamp_after_max_ms: int = UNLIMITED_MS
    compacted: bool = False


class WholeBatch(NamedTuple):
    """An accepted batch. head: its header with offset and leader epoch, to be written before the rest of its bytes.

    offset_of_max_timestamp: for the time index (A-26). The rest: the header's fields.
    """

    head: bytearray
    last_offset: int
    offset_of_max_timestamp: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int

    def moved(self, shift: int) -> WholeBatch | None:
        """The batch with offsets higher by shift; None beyond the highest offset."""
        if self.last_offset + shift > MAX_INT64:
            return None
        head = bytearray(self.head)
        OFFSET.pack_into(head, 0, OFFSET.unpack_from(head)[0] + shift)
        offset_of_max = self.offset_of_max_timestamp
        return self._replace(
            head=head,
            last_offset=self.last_offset + shift,
            offset_of_max_timestamp=offset_of_max + shift if offset_of_max >= 0 else -1,
        )


def take_whole_batch(
    data: bytes | bytearray | memoryview,
    first_offset: int,
    *,
    now_ms: int,
    leader_epoch: int,
    topic: WholeBatchConfig,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> WholeBatch | None:
    """Assign offsets to the one batch in data, from first_offset on; None if it needs the slow path."""
    view = memoryview(data)
    size = len(view)
    if view.format != "B" or not DEFAULT_HEADER_BYTES <= size <= topic.max_message_bytes:
        return None
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = DEFAULT_HEADER.unpack_from(view)
    codec = attributes & CODEC_MASK
    if (
        magic != 2
        or base_offset
        or length + FRAME_BYTES != size
        or attributes & ~WANTED_FLAGS
        or codec > Compression.ZSTD
        or (topic.codec is not None and topic.codec != codec)
        or delta < 0
        or delta + 1 != count
        or (producer_id >= 0 and base_sequence < 0)
        or first_offset + delta > MAX_INT64
        or not -1 <= leader_epoch <= MAX_LEADER_EPOCH
        or not 0 <= now_ms <= MAX_INT64
    ):
        return None
    if crc32c(view[ATTRIBUTES_POSITION:]) != crc:
        return None
    section = view[DEFAULT_HEADER_BYTES:]
    if codec:
        try:
            section = expand_or_reject(Compression(codec), 2, section, max_decompressed_bytes)
        except RejectedRecords:
            return None
    scan = scan_section(section, count, base_timestamp)
    largest = scan.largest_timestamp
    if scan.fault or max(largest, NO_TIMESTAMP) != max_timestamp:
        return None
    if (codec and not scan.is_contiguous) or (topic.compacted and scan.null_keys):
        return None
    before, after = topic.message_timestamp_before_max_ms, topic.message_timestamp_after_max_ms
    limited = before < UNLIMITED_MS or after < UNLIMITED_MS
    if limited and (now_ms - scan.smallest_timestamp > before or largest - now_ms > after):
        return None
    head = bytearray(view[:DEFAULT_HEADER_BYTES])
    OFFSET.pack_into(head, 0, first_offset)
    LEADER_EPOCH.pack_into(head, LEADER_EPOCH_POSITION, leader_epoch)
    last = first_offset + delta
    offset_of_max = last if codec or max_timestamp > NO_TIMESTAMP else -1
    return WholeBatch(head, last, offset_of_max, attributes, max_timestamp, producer_id, producer_epoch, base_sequence)
