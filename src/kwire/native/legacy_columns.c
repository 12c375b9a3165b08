/* Messages of magic 0 and 1 into Arrow columns: single ones, and the inner ones of compressed ones. */
#include "checksums.h"
#include "kernels.h"
#include "message.h"
#include "record_columns.h"

/* Find the value of a compressed message, which holds the inner ones.
 *
 * (address, end) -> address, size, fault. */
KERNEL(wrapped_value) {
    Cursor messages = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[1]};
    Message message;
    results[0] = results[1] = 0;
    if (take_message(&messages, &message) || take_key_and_value(&message)) {
        results[2] = FAULT_MESSAGE_FIELDS;
    } else if (message.value_bytes < 0) {
        results[2] = FAULT_WRAPPER_VALUE;
    } else {
        results[0] = (int64_t)message.value;
        results[1] = message.value_bytes;
        results[2] = 0;
    }
}

/* Scan decompressed messages: a fault or 0. One that is cut at the end is ignored. */
static int scan_messages(Cursor *messages, int64_t *count, int64_t *last_offset) {
    Message message;
    int fault;
    for (*count = *last_offset = 0; !(fault = take_message(messages, &message)); ++*count) *last_offset = message.offset;
    return fault == NO_MESSAGE ? 0 : fault;
}

/* (address, end) -> messages, last offset, address after it, fault. */
KERNEL(scan_inner_messages) {
    Cursor messages = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[1]};
    results[3] = scan_messages(&messages, &results[0], &results[1]);
    results[2] = (int64_t)messages.at;
}

/* (payload) -> messages, last offset, fault. */
KERNEL(measure_messages) {
    Cursor messages = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[0] + arguments[1]};
    results[2] = scan_messages(&messages, &results[0], &results[1]);
}

/* Skip messages, with the limits of skip_records.
 *
 * (address, end, most, most_bytes) -> (messages, address after them). */
KERNEL(skip_messages) {
    const uint8_t *start = (const uint8_t *)arguments[0];
    Cursor messages = {start, (const uint8_t *)arguments[1]};
    const int64_t most = arguments[2], most_bytes = arguments[3];
    int64_t count = 0;
    Message message;
    while (bytes_left(&messages) && count < most) {
        Cursor rest = messages;
        if (take_message(&rest, &message)) {
            messages.at = messages.end;
            break;
        }
        if (count && rest.at - start > most_bytes) break;
        messages = rest;
        count++;
    }
    results[0] = count;
    results[1] = (int64_t)messages.at;
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

/* Decode batches as parse_default_records does. The start and the end of a compressed message are those of its inner
 * messages, which scan_inner_messages has checked.
 *
 * (table, first, last, lowest_offset, highest_offset, check_crc, addresses, state) -> the batch after the last one decoded.
 * check_crc: of inner messages; the fault of a batch has the result for the outer ones. */
KERNEL(parse_legacy_messages) {
    const Batch *table = (const Batch *)arguments[0];
    int64_t number = arguments[3];
    const int64_t last = arguments[4], lowest = arguments[5], highest = arguments[6];
    const int check_crc = arguments[7] != 0;
    ColumnState *state = (ColumnState *)arguments[10];
    Columns columns = columns_at((const ColumnAddresses *)arguments[8], state);
    for (; number < last; number++) {
        int64_t index = -1;
        const int fault = put_messages(&columns, &table[number], lowest, highest, check_crc, &index);
        if (UNLIKELY(fault)) {
            state->stopped_by = fault;
            state->stopped_at = index;
            break;
        }
        keep_rows(&columns, state);
    }
    results[0] = number;
}
