/* Records of magic 2 into Arrow columns, in one pass that copies each value once. */
#include "kernels.h"
#include "record.h"
#include "record_columns.h"

/* Check the headers of a record, and append them to their columns: a fault or 0. */
static inline int put_headers(Columns *columns, Record *record, const uint8_t *source_end) {
    Cursor headers = record->headers;
    Header header;
    int64_t count;
    int fault = take_header_count(&headers, &count, &record->is_canonical);
    if (UNLIKELY(fault)) return fault;
    if (count == 0) put_no_headers(columns);
    else put_headers_start(columns);
    for (; count; count--) {
        fault = take_header(&headers, &header, &record->is_canonical);
        if (UNLIKELY(fault)) return fault;
        put_bytes(&columns->header_keys, columns->headers, header.key, header.key_bytes, source_end);
        put_bytes(&columns->header_values, columns->headers, header.value, header.value_bytes, source_end);
        columns->headers++;
    }
    return headers.at != headers.end ? FAULT_RECORD_SIZE : 0;
}

/* Decode a batch: a fault or 0. *index: of the record at fault, -1 if it is the batch's. */
static inline int put_batch(Columns *columns, const Batch *batch, int64_t lowest, int64_t highest, int64_t *index) {
    Cursor section = {(const uint8_t *)batch->start, (const uint8_t *)batch->end};
    const int is_append_time = (batch->attributes & LOG_APPEND_TIME_FLAG) != 0;
    Row row = {.timestamp_type = is_append_time};
    for (*index = 0; *index < batch->count; ++*index) {
        Record record;
        int fault = take_record(&section, &record);
        if (UNLIKELY(fault)) return fault;
        row.offset = wrapping_sum(batch->base_offset, record.offset_delta);
        const int is_kept = batch->shift == 0 && row.offset >= lowest && row.offset <= highest;
        if (!is_kept || !columns->header_ends)
            fault = record.has_headers ? check_headers(&record) : 0;
        else if (record.has_headers)
            fault = put_headers(columns, &record, section.end);
        else
            put_no_headers(columns);
        if (UNLIKELY(fault)) return fault;
        if (!is_kept) continue;
        row.timestamp =
            is_append_time ? batch->max_timestamp : wrapping_sum(batch->base_timestamp, record.timestamp_delta);
        row.key = record.key;
        row.key_bytes = record.key_bytes;
        row.value = record.value;
        row.value_bytes = record.value_bytes;
        put_row(columns, &row, section.end);
    }
    *index = -1;
    return section.at != section.end && batch->count > 0 ? FAULT_BYTES_LEFT : 0;
}

/* Decode batches [first, last) of a table into columns, less the records outside lowest_offset to highest_offset. Those
 * with a shift are checked too, but add no rows. 17 ns a record of 116 bytes (benchmarks/records).
 *
 * (table, first, last, lowest_offset, highest_offset, addresses, state) -> the batch after the last one decoded. If that
 * is below `last`, the batch there is invalid: the state has the fault, and counts nothing of that batch. */
KERNEL(parse_default_records) {
    const Batch *table = (const Batch *)arguments[0];
    int64_t number = arguments[3];
    const int64_t last = arguments[4], lowest = arguments[5], highest = arguments[6];
    ColumnState *state = (ColumnState *)arguments[9];
    Columns columns = columns_at((const ColumnAddresses *)arguments[7], state);
    for (; number < last; number++) {
        int64_t index;
        const int fault = put_batch(&columns, &table[number], lowest, highest, &index);
        if (UNLIKELY(fault)) {
            state->stopped_by = fault;
            state->stopped_at = index;
            break;
        }
        keep_rows(&columns, state);
    }
    results[0] = number;
}

/* Skip at least one record, at most `most` and, beyond the first, `most_bytes`.
 *
 * (address, end, most, most_bytes) -> (records, address after them). parse_default_records has found all of them valid;
 * if they were changed since, the end is where the rest is. */
KERNEL(skip_records) {
    const uint8_t *start = (const uint8_t *)arguments[0];
    Cursor section = {start, (const uint8_t *)arguments[1]};
    const int64_t most = arguments[2], most_bytes = arguments[3];
    int64_t records = 0, size;
    int is_shortest;
    while (bytes_left(&section) && records < most) {
        Cursor record = section;
        if (!take_varint(&record, &size, &is_shortest) || !take(&record, size)) {
            section.at = section.end;
            break;
        }
        if (records && record.at - start > most_bytes) break;
        section = record;
        records++;
    }
    results[0] = records;
    results[1] = (int64_t)section.at;
}
