/* The columns of one Arrow batch, as the kernels that read records fill them: kwire.records.column_layout. */
#pragma once
#include "cursor.h"
#include "record_layout.h"

#define UNFIT_TIMESTAMP INT64_MIN
#define LARGEST_MS (INT64_MAX / 1000)

typedef struct {
    int32_t *ends; /* the Arrow offsets; null: the column is not wanted */
    uint8_t *data, *bitmap;
    int64_t bytes, nulls;
} BinaryColumn;

typedef struct {
    int64_t *offsets, *timestamps; /* null: not wanted */
    int32_t *timestamp_types, *header_ends;
    uint8_t *header_bitmap;
    BinaryColumn keys, values, header_keys, header_values;
    int64_t rows, headers, null_headers, unfit_timestamps;
} Columns;

/* A record of any magic, less its headers. */
typedef struct {
    int64_t offset, timestamp, timestamp_type;
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* negative for null */
} Row;

static inline Columns columns_at(const ColumnAddresses *from, const ColumnState *state) {
    return (Columns){
        .offsets = (int64_t *)from->offsets,
        .timestamps = (int64_t *)from->timestamps,
        .timestamp_types = (int32_t *)from->timestamp_types,
        .header_ends = (int32_t *)from->header_ends,
        .header_bitmap = (uint8_t *)from->header_bitmap,
        .keys = {(int32_t *)from->key_ends, (uint8_t *)from->keys, (uint8_t *)from->key_bitmap, state->key_bytes,
                 state->null_keys},
        .values = {(int32_t *)from->value_ends, (uint8_t *)from->values, (uint8_t *)from->value_bitmap,
                   state->value_bytes, state->null_values},
        .header_keys = {(int32_t *)from->header_key_ends, (uint8_t *)from->header_keys, NULL, state->header_key_bytes, 0},
        .header_values = {(int32_t *)from->header_value_ends, (uint8_t *)from->header_values,
                          (uint8_t *)from->header_value_bitmap, state->header_value_bytes, state->null_header_values},
        .rows = state->rows,
        .headers = state->headers,
        .null_headers = state->null_headers,
        .unfit_timestamps = state->unfit_timestamps,
    };
}

/* Keep the rows of a batch. What was written for one with a fault is not counted: the next batch overwrites it. */
static inline void keep_rows(const Columns *columns, ColumnState *state) {
    state->rows = columns->rows;
    state->key_bytes = columns->keys.bytes;
    state->null_keys = columns->keys.nulls;
    state->value_bytes = columns->values.bytes;
    state->null_values = columns->values.nulls;
    state->headers = columns->headers;
    state->null_headers = columns->null_headers;
    state->header_key_bytes = columns->header_keys.bytes;
    state->header_value_bytes = columns->header_values.bytes;
    state->null_header_values = columns->header_values.nulls;
    state->unfit_timestamps = columns->unfit_timestamps;
}

/* Append a value to a binary column. Nothing at or after source_end is read. */
static inline void put_bytes(BinaryColumn *column, int64_t row, const uint8_t *bytes, int64_t size,
                             const uint8_t *source_end) {
    column->ends[row] = (int32_t)column->bytes;
    if (size > 0) {
        copy_wide(column->data + column->bytes, bytes, size, source_end);
        column->bytes += size;
    } else if (size < 0) {
        clear_bit(column->bitmap, row);
        column->nulls++;
    }
}

/* Begin the headers of the next row. */
static inline void put_headers_start(Columns *columns) { columns->header_ends[columns->rows] = (int32_t)columns->headers; }

/* The next row has no headers: null. */
static inline void put_no_headers(Columns *columns) {
    put_headers_start(columns);
    clear_bit(columns->header_bitmap, columns->rows);
    columns->null_headers++;
}

static inline void put_row(Columns *columns, const Row *row, const uint8_t *source_end) {
    const int64_t number = columns->rows++;
    if (columns->offsets) columns->offsets[number] = row->offset;
    if (columns->timestamps) {
        const int fits = row->timestamp >= -LARGEST_MS && row->timestamp <= LARGEST_MS;
        columns->timestamps[number] = fits ? row->timestamp * 1000 : UNFIT_TIMESTAMP;
        columns->unfit_timestamps += !fits;
    }
    if (columns->timestamp_types) columns->timestamp_types[number] = (int32_t)row->timestamp_type;
    if (columns->keys.ends) put_bytes(&columns->keys, number, row->key, row->key_bytes, source_end);
    if (columns->values.ends) put_bytes(&columns->values, number, row->value, row->value_bytes, source_end);
}
