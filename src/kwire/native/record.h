/* A record of magic 2, as all kernels read it. Source of the order of checks: DefaultRecord.readFrom.
 *
 *     varint     length of the rest
 *     int8       attributes, unused
 *     varlong    timestamp delta
 *     varint     offset delta
 *     varint     key length, -1 for null; key
 *     varint     value length, -1 for null; value
 *     varint     number of headers; for each: varint key length, key, varint value length or -1, value
 */
#pragma once
#include "cursor.h"
#include "record_layout.h"

typedef struct {
    int64_t timestamp_delta, offset_delta;
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* negative for null */
    Cursor headers;                 /* from their number to the end of the record */
    int has_headers;                /* 0: it is a single byte 0 */
    int is_canonical;               /* every number has its shortest form, no reserved bit is set */
} Record;

typedef struct {
    const uint8_t *key, *value;
    int64_t key_bytes, value_bytes; /* of the value: negative for null */
} Header;

/* Take a key or value; null has a negative size. */
static inline int take_nullable(Cursor *cursor, int64_t size, const uint8_t **bytes) {
    *bytes = cursor->at;
    return skip(cursor, size > 0 ? size : 0);
}

/* Take the number of headers: a fault or 0. */
static inline int take_header_count(Cursor *headers, int64_t *count, int *is_canonical) {
    if (UNLIKELY(!take_varint(headers, count, is_canonical))) return FAULT_RECORD_FIELDS;
    if (UNLIKELY(*count < 0 || *count > bytes_left(headers) || *count > MAX_HEADERS)) return FAULT_HEADER_COUNT;
    return 0;
}

/* Take a header: a fault or 0. */
static inline int take_header(Cursor *headers, Header *header, int *is_canonical) {
    if (UNLIKELY(!take_varint(headers, &header->key_bytes, is_canonical))) return FAULT_HEADER_KEY;
    header->key = headers->at;
    if (UNLIKELY(!skip(headers, header->key_bytes))) return FAULT_HEADER_KEY;
    if (UNLIKELY(!take_varint(headers, &header->value_bytes, is_canonical))) return FAULT_HEADER_VALUE;
    if (UNLIKELY(!take_nullable(headers, header->value_bytes, &header->value))) return FAULT_HEADER_VALUE;
    if (header->value_bytes < -1) *is_canonical = 0;
    return 0;
}

/* Check the headers of a record: a fault or 0. */
static inline int check_headers(Record *record) {
    Cursor headers = record->headers;
    Header header;
    int64_t count;
    int fault = take_header_count(&headers, &count, &record->is_canonical);
    while (!fault && count--) fault = take_header(&headers, &header, &record->is_canonical);
    return fault ? fault : headers.at != headers.end ? FAULT_RECORD_SIZE : 0;
}

/* Take a record but not its headers, which follow in record->headers unchecked if it has any: a fault or 0. */
static inline int take_record(Cursor *section, Record *record) {
    int64_t size;
    int is_shortest = 1;
    if (UNLIKELY(!take_varint(section, &size, &is_shortest))) return FAULT_RECORD_LENGTH;
    const uint8_t *attributes = section->at;
    if (UNLIKELY(!skip(section, size))) return FAULT_RECORD_LENGTH;
    Cursor fields = {attributes, section->at};
    if (UNLIKELY(!skip(&fields, 1) || !take_varlong(&fields, &record->timestamp_delta, &is_shortest) ||
                 !take_varint(&fields, &record->offset_delta, &is_shortest) ||
                 !take_varint(&fields, &record->key_bytes, &is_shortest)))
        return FAULT_RECORD_FIELDS;
    if (UNLIKELY(!take_nullable(&fields, record->key_bytes, &record->key))) return FAULT_KEY_LENGTH;
    if (UNLIKELY(!take_varint(&fields, &record->value_bytes, &is_shortest))) return FAULT_RECORD_FIELDS;
    if (UNLIKELY(!take_nullable(&fields, record->value_bytes, &record->value))) return FAULT_VALUE_LENGTH;
    record->headers = fields;
    record->has_headers = !(bytes_left(&fields) == 1 && *fields.at == 0);
    record->is_canonical = is_shortest && *attributes == 0 && record->key_bytes >= -1 && record->value_bytes >= -1;
    return 0;
}
