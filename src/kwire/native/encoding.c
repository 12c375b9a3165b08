/* Write rows of Arrow columns as records, in one pass that copies each value once.
 *
 * Batches are written one after another to a room, except its last WIDE bytes. A kernel stops at the start of a batch:
 * when the rows are done, when the room or the table is full, or at a fault. Every value is checked to be inside of its
 * buffer before it is read. The arrays: kwire.records.columns.encoder_layout.
 */
#include <stddef.h>
#include "checksums.h"
#include "cursor.h"
#include "encoder_layout.h"
#include "kernels.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { MAX_INT32 = 0x7FFFFFFF };

typedef struct {
    int64_t ends, bytes, size, bitmap, bit;
} BinaryColumn;

typedef struct {
    BinaryColumn key, value;
    int64_t timestamps, timestamp_bitmap, timestamp_bit, timestamp_unit, offsets;
    int64_t header_ends, header_bitmap, header_bit, header_count;
    BinaryColumn header_key, header_value;
    int64_t order;
} Columns;

#define HAS_COLUMN(member, number) _Static_assert(offsetof(Columns, member) == (number) * sizeof(int64_t), "")
HAS_COLUMN(key.bit, COLUMN_KEY_BIT);
HAS_COLUMN(value.ends, COLUMN_VALUE_ENDS);
HAS_COLUMN(timestamp_unit, COLUMN_TIMESTAMP_UNIT);
HAS_COLUMN(header_ends, COLUMN_HEADER_ENDS);
HAS_COLUMN(header_key.size, COLUMN_HEADER_KEYS_SIZE);
HAS_COLUMN(header_value.bitmap, COLUMN_HEADER_VALUE_BITMAP);
HAS_COLUMN(order, COLUMN_ORDER);
_Static_assert(sizeof(Columns) == COLUMN_COUNT * sizeof(int64_t), "");

/* A key or value: its size is -1 for null. */
typedef struct {
    const uint8_t *bytes;
    int64_t size;
} Field;

/* Headers [first, last) of a row. bytes: without their count. */
typedef struct {
    int64_t first, last, bytes;
} Headers;

typedef struct {
    int64_t timestamp;
    Field key, value;
    Headers headers;
} Row;

/* How records are written. append_time: the timestamp of all messages; -1: each row has its own. is_relative: offsets of
 * messages count from the first one of a batch (KIP-31). */
typedef struct {
    int magic, is_relative;
    int64_t append_time;
} Format;

/* Numbers of Arrow's buffers, which may be anywhere. */

static inline int32_t int32_at(int64_t array, int64_t index) {
    int32_t value;
    memcpy(&value, (const uint8_t *)array + 4 * index, sizeof value);
    return value;
}

static inline int64_t int64_at(int64_t array, int64_t index) {
    int64_t value;
    memcpy(&value, (const uint8_t *)array + 8 * index, sizeof value);
    return value;
}

/* Whether a bit of a validity bitmap is clear; without a bitmap nothing is null. */
static inline int is_null(int64_t bitmap, int64_t bit) {
    return bitmap && !(((const uint8_t *)bitmap)[bit >> 3] >> (bit & 7) & 1);
}

/* Whether 0 <= start <= end <= size. */
static inline int is_within(int64_t start, int64_t end, int64_t size) {
    return (uint64_t)start <= (uint64_t)end && (uint64_t)end <= (uint64_t)size;
}

/* Find the value of a row: 0 if it is outside of its buffer. */
ALWAYS_INLINE int find_field(const BinaryColumn *column, int64_t row, Field *field) {
    field->size = -1;
    if (!column->ends || is_null(column->bitmap, column->bit + row)) return 1;
    const int64_t start = int32_at(column->ends, row), end = int32_at(column->ends, row + 1);
    field->bytes = (const uint8_t *)(column->bytes + start);
    field->size = end - start;
    return is_within(start, end, column->size);
}

static inline int64_t bytes_of(const Field *field) { return field->size > 0 ? field->size : 0; }

static inline int varint_bytes(int64_t value) { return uvarint_bytes(zigzag(value)); }

ALWAYS_INLINE uint8_t *put_bytes(uint8_t *at, const Field *field, const BinaryColumn *column) {
    if (field->size <= 0) return at;
    copy_wide(at, field->bytes, field->size, (const uint8_t *)column->bytes + column->size);
    return at + field->size;
}

ALWAYS_INLINE uint8_t *put_field(uint8_t *at, const Field *field, const BinaryColumn *column) {
    return put_bytes(put_varint(at, field->size), field, column);
}

/* The timestamp of a row, -1 for none, rounded down to milliseconds. */
static inline int64_t milliseconds(const Columns *columns, int64_t row) {
    if (!columns->timestamps || is_null(columns->timestamp_bitmap, columns->timestamp_bit + row)) return NO_TIMESTAMP;
    const int64_t ticks = int64_at(columns->timestamps, row);
    if (columns->timestamp_unit == 1) return ticks;
    if (columns->timestamp_unit == 1000) return ticks / 1000 - (ticks % 1000 < 0);
    return ticks / 1000000 - (ticks % 1000000 < 0);
}

/* Find the headers of a row: a fault or 0. */
ALWAYS_INLINE int find_headers(const Columns *columns, int64_t source, Headers *headers) {
    if (is_null(columns->header_bitmap, columns->header_bit + source)) return STOP_DONE;
    const int64_t first = int32_at(columns->header_ends, source), last = int32_at(columns->header_ends, source + 1);
    if (!is_within(first, last, columns->header_count)) return STOP_BAD_ARROW;
    uint64_t total = 0; /* two billion headers may give the same bytes */
    for (int64_t i = first; i < last; i++) {
        Field key, value;
        if (UNLIKELY(!find_field(&columns->header_key, i, &key))) return STOP_BAD_ARROW;
        if (UNLIKELY(key.size < 0)) return STOP_NULL_HEADER_KEY;
        if (UNLIKELY(!find_field(&columns->header_value, i, &value))) return STOP_BAD_ARROW;
        total += (uint64_t)(varint_bytes(key.size) + key.size + varint_bytes(value.size) + bytes_of(&value));
    }
    if (total > LARGEST_RECORD) return STOP_TOO_LARGE;
    *headers = (Headers){first, last, (int64_t)total};
    return STOP_DONE;
}

/* Read a row: a fault or 0. */
ALWAYS_INLINE int read_row(const Columns *columns, int64_t source, int64_t append_time, Row *row) {
    row->timestamp = append_time >= 0 ? append_time : milliseconds(columns, source);
    if (UNLIKELY(row->timestamp < NO_TIMESTAMP)) return STOP_BAD_TIMESTAMP;
    if (UNLIKELY(!find_field(&columns->key, source, &row->key))) return STOP_BAD_ARROW;
    if (UNLIKELY(!find_field(&columns->value, source, &row->value))) return STOP_BAD_ARROW;
    row->headers = (Headers){0, 0, 0};
    if (!columns->header_ends) return STOP_DONE;
    Headers headers = {0, 0, 0}; /* apart, so that the rest of the row stays in registers */
    const int stop = find_headers(columns, source, &headers);
    row->headers = headers;
    return stop;
}

/* A record of magic 2 */

/* The bytes of a record after its length. */
static inline int64_t body_bytes(const Row *row, int64_t timestamp_delta, int64_t offset_delta) {
    return 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + varint_bytes(row->key.size) +
           bytes_of(&row->key) + varint_bytes(row->value.size) + bytes_of(&row->value) +
           varint_bytes(row->headers.last - row->headers.first) + row->headers.bytes;
}

ALWAYS_INLINE uint8_t *put_headers(uint8_t *at, const Columns *columns, Headers headers) {
    for (int64_t i = headers.first; i < headers.last; i++) {
        Field key, value;
        find_field(&columns->header_key, i, &key); /* find_headers has checked them */
        find_field(&columns->header_value, i, &value);
        at = put_field(at, &key, &columns->header_key);
        at = put_field(at, &value, &columns->header_value);
    }
    return at;
}

ALWAYS_INLINE void put_record(uint8_t *at, const Columns *columns, const Row *row, int64_t body,
                              int64_t timestamp_delta, int64_t offset_delta) {
    at = put_varint(at, body);
    *at++ = 0; /* attributes */
    at = put_varint(at, timestamp_delta);
    at = put_varint(at, offset_delta);
    at = put_field(at, &row->key, &columns->key);
    at = put_field(at, &row->value, &columns->value);
    at = put_varint(at, row->headers.last - row->headers.first);
    if (row->headers.last > row->headers.first) put_headers(at, columns, row->headers);
}

/* A message of magic 0 or 1 */

static inline int64_t message_bytes(const Row *row, int magic) {
    return key_position(magic) + 2 * LENGTH_BYTES + bytes_of(&row->key) + bytes_of(&row->value);
}

ALWAYS_INLINE void put_message(uint8_t *start, const Columns *columns, const Row *row, int64_t size,
                               const Format *format, int64_t offset) {
    put_big64(start, offset);
    put_big32(start + SIZE_POSITION, (int32_t)(size - FRAME_BYTES));
    start[MAGIC_POSITION] = (uint8_t)format->magic;
    start[LEGACY_ATTRIBUTES_POSITION] = format->magic == 1 && format->append_time >= 0 ? LOG_APPEND_TIME_FLAG : 0;
    if (format->magic == 1) put_big64(start + LEGACY_TIMESTAMP_POSITION, row->timestamp);
    uint8_t *at = start + key_position(format->magic);
    put_big32(at, (int32_t)row->key.size);
    at = put_bytes(at + LENGTH_BYTES, &row->key, &columns->key);
    put_big32(at, (int32_t)row->value.size);
    put_bytes(at + LENGTH_BYTES, &row->value, &columns->value);
    put_big32(start + LEGACY_CRC_POSITION, (int32_t)crc32_of(start + MAGIC_POSITION, size - MAGIC_POSITION));
}

/* The arguments of both kernels */
enum { COLUMNS, COLUMNS_LENGTH, FIRST_ROW, ROWS, BASE_OFFSET, BATCH_SIZE, OTHERS };

ALWAYS_INLINE void encode(const int64_t *arguments, const int64_t *outputs, const Format format) {
    const Columns columns = *(const Columns *)arguments[COLUMNS];
    const int64_t rows = arguments[ROWS], base_offset = arguments[BASE_OFFSET], batch_size = arguments[BATCH_SIZE];
    uint8_t *const room = (uint8_t *)outputs[0];
    const int64_t limit = outputs[1] - WIDE, table_rows = outputs[3];
    NewBatch *const table = (NewBatch *)outputs[2];
    State *const state = (State *)outputs[5];
    int64_t row = arguments[FIRST_ROW], first = row, used = 0, batches = 0;
    int stop = STOP_DONE;
    while (row < rows) {
        if (batches == table_rows) {
            stop = STOP_TABLE_FULL;
            break;
        }
        NewBatch batch = {.position = used, .base_timestamp = NO_TIMESTAMP, .max_timestamp = NO_TIMESTAMP};
        first = row;
        if (format.magic == 2) used += DEFAULT_HEADER_BYTES;
        for (; row < rows; row++) {
            const int64_t source = columns.order ? int64_at(columns.order, row) : row;
            int64_t offset = base_offset + row;
            if (columns.offsets) {
                offset = int64_at(columns.offsets, source);
                if (offset < 0 || (row > first && offset <= batch.last_offset)) {
                    stop = STOP_BAD_OFFSET;
                    break;
                }
            }
            if (row == first) batch.base_offset = offset;
            const int64_t offset_delta = offset - batch.base_offset;
            if (format.magic == 2 && UNLIKELY(offset_delta > MAX_INT32)) break;
            Row found;
            stop = read_row(&columns, source, format.append_time, &found);
            if (UNLIKELY(stop)) break;
            if (row == first) batch.base_timestamp = found.timestamp;
            const int64_t timestamp_delta = wrapping_difference(found.timestamp, batch.base_timestamp);
            int64_t size, body = 0;
            if (format.magic == 2) {
                body = body_bytes(&found, timestamp_delta, offset_delta);
                size = varint_bytes(body) + body;
            } else {
                if (found.headers.last > found.headers.first) {
                    stop = STOP_HAS_HEADERS;
                    break;
                }
                size = body = message_bytes(&found, format.magic);
            }
            if (UNLIKELY(body > LARGEST_RECORD)) {
                stop = STOP_TOO_LARGE;
                break;
            }
            if (row > first && used - batch.position + size > batch_size) break;
            if (UNLIKELY(used + size > limit)) {
                stop = STOP_NO_ROOM;
                state->needed = used + size - batch.position + WIDE;
                break;
            }
            if (format.magic == 2) {
                put_record(room + used, &columns, &found, body, timestamp_delta, offset_delta);
            } else {
                put_message(room + used, &columns, &found, size, &format, format.is_relative ? offset_delta : offset);
            }
            if (found.timestamp > batch.max_timestamp) batch.max_timestamp = found.timestamp;
            batch.last_offset = offset;
            used += size;
        }
        if (stop) {
            used = batch.position;
            break;
        }
        batch.size = used - batch.position;
        batch.count = row - first;
        table[batches++] = batch;
    }
    state->used = used;
    state->batches = batches;
    state->stop = stop;
    state->row = stop == STOP_NO_ROOM ? first : row;
}

/* Write rows as batches of magic 2, whose headers write_headers fills in once the codec of the records is known.
 * batch_size: maximum bytes of a batch with more than one record, header included. 18 ns a record of 116 bytes into
 * warm memory. */
KERNEL(encode_default_batches) {
    encode(arguments, arguments + OTHERS, (Format){.magic = 2, .append_time = NO_TIMESTAMP});
}

/* Write rows as messages of magic 0 or 1, checksums included. batch_size: maximum bytes of the messages of one row of
 * the table, unless there is only one. */
KERNEL(encode_messages) {
    const int64_t *format = arguments + OTHERS;
    const int magic = format[0] != 0, is_relative = format[1] != 0;
    encode(arguments, format + 3, (Format){.magic = magic, .is_relative = is_relative, .append_time = format[2]});
}

/* Write the headers of batches of magic 2, without the checksum. Returns the sequence number after the last batch.
 * base_sequence: of the first batch, -1 for none. append_time: the maximum timestamp of all batches, -1: the table's. */
KERNEL(write_headers) {
    uint8_t *const room = (uint8_t *)arguments[0];
    const NewBatch *const table = (const NewBatch *)arguments[1];
    const int64_t batches = arguments[4], attributes = arguments[5], leader_epoch = arguments[6];
    const int64_t producer_id = arguments[7], producer_epoch = arguments[8], append_time = arguments[10];
    int64_t sequence = arguments[9];
    for (const NewBatch *batch = table; batch < table + batches; batch++) {
        uint8_t *const at = room + batch->position;
        const int64_t last_delta = batch->last_offset - batch->base_offset;
        put_big64(at, batch->base_offset);
        put_big32(at + SIZE_POSITION, (int32_t)(batch->size - FRAME_BYTES));
        put_big32(at + LEADER_EPOCH_POSITION, (int32_t)leader_epoch);
        at[MAGIC_POSITION] = 2;
        put_big16(at + ATTRIBUTES_POSITION, (int16_t)(attributes & 0xFF));
        put_big32(at + LAST_OFFSET_DELTA_POSITION, (int32_t)last_delta);
        put_big64(at + BASE_TIMESTAMP_POSITION, batch->base_timestamp);
        put_big64(at + MAX_TIMESTAMP_POSITION, append_time >= 0 ? append_time : batch->max_timestamp);
        put_big64(at + PRODUCER_ID_POSITION, producer_id);
        put_big16(at + PRODUCER_EPOCH_POSITION, (int16_t)producer_epoch);
        put_big32(at + BASE_SEQUENCE_POSITION, (int32_t)sequence);
        put_big32(at + COUNT_POSITION, (int32_t)batch->count);
        if (sequence >= 0) sequence = (sequence + last_delta + 1) & MAX_INT32;
    }
    results[0] = sequence;
}
