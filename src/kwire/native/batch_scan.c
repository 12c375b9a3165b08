/* Headers of batches: the walk from one to the next, and the search for one after damaged bytes. */
#include "cursor.h"
#include "kernels.h"
#include "record_layout.h"

/* Write the row of the batch at `at`, of which all bytes are there. */
static inline void put_batch(Batch *row, const uint8_t *at, int64_t position, int64_t size, int magic) {
    *row = (Batch){.position = position, .size = size, .base_offset = big64(at), .magic = magic};
    row->end = (int64_t)(at + size);
    if (magic == 2) {
        row->attributes = big16(at + ATTRIBUTES_POSITION);
        row->last_offset = wrapping_sum(row->base_offset, big32(at + LAST_OFFSET_DELTA_POSITION));
        row->base_timestamp = big64(at + BASE_TIMESTAMP_POSITION);
        row->max_timestamp = big64(at + MAX_TIMESTAMP_POSITION);
        row->producer_id = big64(at + PRODUCER_ID_POSITION);
        row->count = big32(at + COUNT_POSITION);
        row->start = (int64_t)(at + DEFAULT_HEADER_BYTES);
    } else {
        row->attributes = at[LEGACY_ATTRIBUTES_POSITION];
        row->last_offset = row->base_offset;
        row->base_timestamp = row->max_timestamp = magic == 1 ? big64(at + LEGACY_TIMESTAMP_POSITION) : NO_TIMESTAMP;
        row->producer_id = NO_PRODUCER_ID;
        row->count = 1;
        row->start = (int64_t)at;
    }
}

/* (data, position, table) -> rows, position after the last whole batch, how the scan ended: batch_table.scan_batches. */
KERNEL(scan_batches) {
    const uint8_t *data = (const uint8_t *)arguments[0];
    const int64_t length = arguments[1], most_rows = arguments[4];
    Batch *table = (Batch *)arguments[3];
    int64_t position = arguments[2], rows = 0;
    int ending;
    for (;;) {
        const int64_t left = length - position;
        if (left < FRAME_BYTES) {
            ending = left == 0 ? SCAN_WHOLE : SCAN_CUT;
            break;
        }
        if (rows == most_rows) {
            ending = SCAN_FULL;
            break;
        }
        const uint8_t *at = data + position;
        const int64_t size = big32(at + SIZE_POSITION);
        if (size < SMALLEST_SIZE || size > LARGEST_SIZE) {
            ending = SCAN_UNBELIEVABLE;
            break;
        }
        if (left < PREFIX_BYTES) {
            ending = SCAN_CUT;
            break;
        }
        const int magic = at[MAGIC_POSITION];
        if (magic > 2 || (magic == 2 && size < SMALLEST_DEFAULT_SIZE)) {
            ending = SCAN_UNBELIEVABLE;
            break;
        }
        if (size > left - FRAME_BYTES) {
            ending = SCAN_CUT;
            break;
        }
        put_batch(&table[rows++], at, position, FRAME_BYTES + size, magic);
        position += FRAME_BYTES + size;
    }
    results[0] = rows;
    results[1] = position;
    results[2] = ending;
}

/* (table, floor, ceiling) -> row or -1: kwire.log.reading.chunk_offset_check.first_wrong. */
KERNEL(first_wrong_offsets) {
    const Batch *table = (const Batch *)arguments[0];
    int64_t floor = arguments[3];
    const int64_t ceiling = arguments[4];
    for (int64_t i = 0; i < arguments[1]; i++) {
        const int64_t first = table[i].base_offset, last = table[i].last_offset;
        if (first < floor || last < first || last >= ceiling) {
            results[0] = i;
            return;
        }
        floor = last + 1;
    }
    results[0] = -1;
}

/* Keep the rows of a table that have to be decoded or reported, at its beginning.
 *
 * (table, lowest_offset, highest_offset, keeps_control) -> rows kept, whether all are uncompressed and without a fault,
 * their records, bytes of their records: kwire.records.columns.decoder.ColumnDecoder.choose. */
KERNEL(choose_batches) {
    Batch *table = (Batch *)arguments[0];
    const int64_t lowest = arguments[3], highest = arguments[4], keeps_control = arguments[5];
    int64_t kept = 0, records = 0, bytes = 0;
    int is_plain = 1;
    for (int64_t i = 0; i < arguments[1]; i++) {
        Batch batch = table[i];
        const int64_t codec = batch.attributes & CODEC_MASK;
        const int is_default = batch.magic == 2;
        const int begins_in_time = batch.base_offset <= highest || (!is_default && codec != 0);
        const int is_kept = batch.last_offset >= lowest && begins_in_time && batch.count != 0;
        if (is_default && !keeps_control && batch.attributes & CONTROL_FLAG) batch.shift = 1;
        if (codec > HIGHEST_CODEC && !batch.fault) batch.fault = BAD_CODEC;
        if (is_kept && is_default && !batch.fault) {
            const int64_t most = (batch.end - batch.start) / SMALLEST_RECORD_BYTES;
            if (batch.count < 0 || (codec == 0 && batch.count > most)) batch.fault = FAULT_RECORD_COUNT;
        }
        if (!is_kept && !batch.fault) continue;
        if (codec || batch.fault) is_plain = 0;
        records += batch.count;
        bytes += batch.end - batch.start;
        table[kept++] = batch;
    }
    results[0] = kept;
    results[1] = is_plain;
    results[2] = records;
    results[3] = bytes;
}

/* (data, position, left, floor, ceiling) -> position or -1: kwire.maintenance.verify.resync.find_header. */
KERNEL(find_header) {
    const uint8_t *data = (const uint8_t *)arguments[0];
    const int64_t length = arguments[1], left = arguments[3], floor = arguments[4], ceiling = arguments[5];
    for (int64_t position = arguments[2]; position + DEFAULT_HEADER_BYTES <= length; position++) {
        const uint8_t *at = data + position;
        const int magic = at[MAGIC_POSITION];
        if (magic > 2) continue;
        const int64_t size = big32(at + SIZE_POSITION), offset = big64(at);
        if (size < SMALLEST_SIZE || size > left - position - FRAME_BYTES || offset < floor || offset >= ceiling) continue;
        if (magic == 2) {
            const int64_t delta = big32(at + LAST_OFFSET_DELTA_POSITION);
            const int is_possible = size >= SMALLEST_DEFAULT_SIZE && delta >= 0 && big32(at + COUNT_POSITION) >= 0;
            /* unsigned: the difference of offsets may exceed an int64 */
            if (!is_possible || (uint64_t)delta >= (uint64_t)ceiling - (uint64_t)offset) continue;
        }
        results[0] = position;
        return;
    }
    results[0] = -1;
}
