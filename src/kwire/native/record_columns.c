/* Records of every magic into Arrow columns, in one pass that copies each value once. */
#include "checksums.h"
#include "kernels.h"
#include "record.h"
#include "record_columns.h"

/* Magic 2 */

/* Check the headers of a record, and append them to their columns: a fault or 0. */
static inline int put_headers(Columns *columns, Record *record, const uint8_t *source_end) {
    Cursor headers = record->headers;
    Header header;
    int64_t count;
    int fault = take_header_count(&headers, &count, &record->is_canonical);
    if (UNLIKELY(fault)) return fault;
    if (count == 0)
        put_no_headers(columns);
    else
        columns->header_ends[columns->so_far.rows] = (int32_t)columns->so_far.headers;
    for (; count; count--) {
        fault = take_header(&headers, &header, &record->is_canonical);
        if (UNLIKELY(fault)) return fault;
        put_header(columns, header.key, header.key_bytes, header.value, header.value_bytes, source_end);
    }
    return headers.at != headers.end ? FAULT_RECORD_SIZE : 0;
}

/* Decode a batch of magic 2: a fault or 0. *index: of the record at fault, -1 if it is the batch's. */
static inline int put_records(Columns *columns, const Batch *batch, int64_t lowest, int64_t highest, int64_t *index) {
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

/* Magic 0 and 1 */

/* Find the value of a compressed message, which holds the inner ones.
 *
 * (message) -> position, size, fault. */
KERNEL(wrapped_value) {
    Cursor messages = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[0] + arguments[1]};
    Message message;
    results[0] = results[1] = 0;
    if (take_message(&messages, &message) || take_key_and_value(&message)) {
        results[2] = FAULT_MESSAGE_FIELDS;
    } else if (message.value_bytes < 0) {
        results[2] = FAULT_WRAPPER_VALUE;
    } else {
        results[0] = message.value - message.start;
        results[1] = message.value_bytes;
        results[2] = 0;
    }
}

/* Scan decompressed messages. One that is cut at the end is ignored.
 *
 * (payload) -> messages, last offset, bytes of them, fault. */
KERNEL(measure_messages) {
    const uint8_t *payload = (const uint8_t *)arguments[0];
    Cursor messages = {payload, payload + arguments[1]};
    Message message;
    int64_t count = 0, last_offset = 0;
    int fault;
    for (; !(fault = take_message(&messages, &message)); count++) last_offset = message.offset;
    results[0] = count;
    results[1] = last_offset;
    results[2] = messages.at - payload;
    results[3] = fault == NO_MESSAGE ? 0 : fault;
}

/* Decode a message or, if it is compressed, its inner messages: a fault or 0. *index: of the message at fault, -1 if it
 * is not an inner one. */
static inline int put_messages(Columns *columns, const Batch *batch, int64_t lowest, int64_t highest, int check_crc,
                               int64_t *index) {
    Cursor messages = {(const uint8_t *)batch->start, (const uint8_t *)batch->end};
    const int is_wrapped = (batch->attributes & CODEC_MASK) != 0;
    const int is_append_time = batch->magic == 1 && batch->attributes & LOG_APPEND_TIME_FLAG;
    Row row = {.timestamp_type = batch->magic == 0 ? -1 : is_append_time};
    Message message;
    for (int64_t number = 0; bytes_left(&messages); number++) {
        *index = is_wrapped ? number : -1;
        int fault = take_message(&messages, &message);
        if (UNLIKELY(fault)) return fault == NO_MESSAGE ? FAULT_INNER_SIZE : fault;
        if (is_wrapped && UNLIKELY(message.attributes & CODEC_MASK)) return FAULT_INNER_COMPRESSED;
        if (is_wrapped && check_crc && UNLIKELY(!has_right_crc(&message))) return FAULT_INNER_CRC;
        if (UNLIKELY(fault = take_key_and_value(&message))) return fault;
        row.offset = wrapping_sum(message.offset, batch->shift);
        if (row.offset < lowest || row.offset > highest) continue;
        row.timestamp = is_wrapped && is_append_time && message.magic == 1 ? batch->max_timestamp : message.timestamp;
        row.key = message.key;
        row.key_bytes = message.key_bytes;
        row.value = message.value;
        row.value_bytes = message.value_bytes;
        if (columns->header_ends) put_no_headers(columns);
        put_row(columns, &row, messages.end);
    }
    return 0;
}

/* All */

typedef struct {
    const Batch *table;
    int64_t batches, lowest_offset, highest_offset;
    int check_crc; /* of inner messages */
    const ColumnAddresses *addresses;
    ColumnState *state;
} Job;

/* Decode batches from `number` on: the one after them, which is of another format or has the fault in the state. */
static inline __attribute__((always_inline)) int64_t put_run(const Job *job, int64_t number, int is_default) {
    const int64_t batches = job->batches, lowest = job->lowest_offset, highest = job->highest_offset;
    const int check_crc = job->check_crc;
    const Batch *table = job->table;
    Columns columns = columns_at(job->addresses, job->state);
    ColumnState before;
    for (; number < batches && (table[number].magic == 2) == is_default; number++) {
        const Batch *batch = &table[number];
        const int is_single = !is_default && !(batch->attributes & CODEC_MASK); /* its fault comes before its row */
        if (!is_single) before = columns.so_far;
        int64_t index = -1;
        const int fault = is_default ? put_records(&columns, batch, lowest, highest, &index)
                                     : put_messages(&columns, batch, lowest, highest, check_crc, &index);
        if (UNLIKELY(fault)) {
            if (!is_single) columns.so_far = before; /* what was written for it is not counted */
            columns.so_far.stopped_by = fault;
            columns.so_far.stopped_at = index;
            break;
        }
    }
    *job->state = columns.so_far;
    return number;
}

/* Write the totals at the ends of the Arrow offsets. */
static void put_totals(const ColumnAddresses *addresses, const ColumnState *state) {
    const Columns columns = columns_at(addresses, state);
    const ColumnState *so_far = &columns.so_far;
    if (columns.key_ends) columns.key_ends[so_far->rows] = (int32_t)so_far->key_bytes;
    if (columns.value_ends) columns.value_ends[so_far->rows] = (int32_t)so_far->value_bytes;
    if (!columns.header_ends) return;
    columns.header_ends[so_far->rows] = (int32_t)so_far->headers;
    columns.header_key_ends[so_far->headers] = (int32_t)so_far->header_key_bytes;
    columns.header_value_ends[so_far->headers] = (int32_t)so_far->header_value_bytes;
}

/* Apart, so that each has all registers for its own loop. */
static __attribute__((noinline)) int64_t put_default_run(const Job *job, int64_t number) { return put_run(job, number, 1); }
static __attribute__((noinline)) int64_t put_legacy_run(const Job *job, int64_t number) { return put_run(job, number, 0); }

/* Decode the batches of a table into columns, less the records outside lowest_offset to highest_offset. Those with a shift
 * and magic 2 are checked too, but add no rows. Start and end of a compressed message enclose its inner
 * messages, which measure_messages has checked. 14 ns a record of 116 bytes.
 *
 * (table, lowest_offset, highest_offset, check_crc, addresses, state) -> batches decoded. If they are fewer than the table
 * has, the next one is invalid: the state has the fault, and counts nothing of that batch. */
KERNEL(decode_records) {
    const Job job = {
        .table = (const Batch *)arguments[0],
        .batches = arguments[1],
        .lowest_offset = arguments[3],
        .highest_offset = arguments[4],
        .check_crc = arguments[5] != 0,
        .addresses = (const ColumnAddresses *)arguments[6],
        .state = (ColumnState *)arguments[8],
    };
    int64_t number = 0;
    while (number < job.batches && !job.state->stopped_by)
        number = job.table[number].magic == 2 ? put_default_run(&job, number) : put_legacy_run(&job, number);
    put_totals(job.addresses, job.state);
    results[0] = number;
}

/* Take a record without its fields. */
static int skip_record(Cursor *section) {
    int64_t size;
    int is_shortest;
    return take_varint(section, &size, &is_shortest) && take(section, size);
}

static int skip_message(Cursor *messages) {
    Message message;
    return take_message(messages, &message) == 0;
}

/* Skip at least one record, at most `most` and, beyond the first, `most_bytes`.
 *
 * (address, end, magic, most, most_bytes) -> (records, address after them). decode_records has found all of them valid; if
 * they were changed since, the end is where the rest is. */
KERNEL(skip_records) {
    const uint8_t *start = (const uint8_t *)arguments[0];
    Cursor section = {start, (const uint8_t *)arguments[1]};
    const int64_t magic = arguments[2], most = arguments[3], most_bytes = arguments[4];
    int64_t records = 0;
    while (bytes_left(&section) && records < most) {
        Cursor rest = section;
        if (!(magic == 2 ? skip_record(&rest) : skip_message(&rest))) {
            section.at = section.end;
            break;
        }
        if (records && rest.at - start > most_bytes) break;
        section = rest;
        records++;
    }
    results[0] = records;
    results[1] = (int64_t)section.at;
}
