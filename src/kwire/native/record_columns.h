/* The columns of one Arrow batch, as the kernels that read records fill them: kwire.records.columns.layout. */
#pragma once
#include "cursor.h"
#include "record_layout.h"

#define UNFIT_TIMESTAMP INT64_MIN
#define LARGEST_MS (INT64_MAX / 1000)

typedef struct {
    int64_t *offsets, *timestamps; /* null: not wanted */
    int32_t *timestamp_types;
    int32_t *key_ends, *value_ends, *header_ends, *header_key_ends, *header_value_ends; /* the Arrow offsets */
    uint8_t *keys, *values, *header_keys, *header_values;
    uint8_t *key_bitmap, *value_bitmap, *header_bitmap, *header_value_bitmap;
    ColumnState so_far;
} Columns;

/* A record of any magic, less its headers. */
typedef struct {
    int64_t offset, timestamp, timestamp_type;
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* negative for null */
} Row;

static inline Columns columns_at(const ColumnAddresses *at, const ColumnState *state) {
    return (Columns){
        .offsets = (int64_t *)at->offsets,
        .timestamps = (int64_t *)at->timestamps,
        .timestamp_types = (int32_t *)at->timestamp_types,
        .key_ends = (int32_t *)at->key_ends,
        .value_ends = (int32_t *)at->value_ends,
        .header_ends = (int32_t *)at->header_ends,
        .header_key_ends = (int32_t *)at->header_key_ends,
        .header_value_ends = (int32_t *)at->header_value_ends,
        .keys = (uint8_t *)at->keys,
        .values = (uint8_t *)at->values,
        .header_keys = (uint8_t *)at->header_keys,
        .header_values = (uint8_t *)at->header_values,
        .key_bitmap = (uint8_t *)at->key_bitmap,
        .value_bitmap = (uint8_t *)at->value_bitmap,
        .header_bitmap = (uint8_t *)at->header_bitmap,
        .header_value_bitmap = (uint8_t *)at->header_value_bitmap,
        .so_far = *state,
    };
}

/* Append a value to the data of a binary column, which has `used` bytes: how many it has then. Nothing at or after
 * source_end is read. */
static inline int64_t put_bytes(uint8_t *data, int64_t used, const uint8_t *bytes, int64_t size,
                                const uint8_t *source_end) {
    copy_wide(data + used, bytes, size, source_end);
    return used + size;
}

/* The next row has no headers: null. */
static inline void put_no_headers(Columns *columns) {
    ColumnState *so_far = &columns->so_far;
    columns->header_ends[so_far->rows] = (int32_t)so_far->headers;
    clear_bit(columns->header_bitmap, so_far->rows);
    so_far->null_headers++;
}

static inline void put_header(Columns *columns, const uint8_t *key, int64_t key_bytes, const uint8_t *value,
                              int64_t value_bytes, const uint8_t *source_end) {
    ColumnState *so_far = &columns->so_far;
    const int64_t number = so_far->headers++;
    columns->header_key_ends[number] = (int32_t)so_far->header_key_bytes;
    so_far->header_key_bytes = put_bytes(columns->header_keys, so_far->header_key_bytes, key, key_bytes, source_end);
    columns->header_value_ends[number] = (int32_t)so_far->header_value_bytes;
    if (value_bytes >= 0) {
        so_far->header_value_bytes =
            put_bytes(columns->header_values, so_far->header_value_bytes, value, value_bytes, source_end);
    } else {
        clear_bit(columns->header_value_bitmap, number);
        so_far->null_header_values++;
    }
}

static inline __attribute__((always_inline)) void put_row(Columns *columns, const Row *row, const uint8_t *source_end) {
    ColumnState *so_far = &columns->so_far;
    const int64_t number = so_far->rows++;
    if (columns->offsets) columns->offsets[number] = row->offset;
    if (columns->timestamps) {
        const int fits = row->timestamp >= -LARGEST_MS && row->timestamp <= LARGEST_MS;
        columns->timestamps[number] = fits ? row->timestamp * 1000 : UNFIT_TIMESTAMP;
        so_far->unfit_timestamps += !fits;
    }
    if (columns->timestamp_types) columns->timestamp_types[number] = (int32_t)row->timestamp_type;
    if (columns->key_ends) {
        columns->key_ends[number] = (int32_t)so_far->key_bytes;
        if (row->key_bytes >= 0) {
            so_far->key_bytes = put_bytes(columns->keys, so_far->key_bytes, row->key, row->key_bytes, source_end);
        } else {
            clear_bit(columns->key_bitmap, number);
            so_far->null_keys++;
        }
    }
    if (columns->value_ends) {
        columns->value_ends[number] = (int32_t)so_far->value_bytes;
        if (row->value_bytes >= 0) {
            so_far->value_bytes =
                put_bytes(columns->values, so_far->value_bytes, row->value, row->value_bytes, source_end);
        } else {
            clear_bit(columns->value_bitmap, number);
            so_far->null_values++;
        }
    }
}
