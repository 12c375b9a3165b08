/* A message of magic 0 or 1, as all kernels read it. Source of the order of checks: LegacyRecord, ByteBufferLogInputStream.
 *
 *     int64     offset
 *     int32     size of the rest
 *     uint32    CRC-32 of what follows
 *     int8      magic
 *     int8      attributes
 *     int64     timestamp, in magic 1 only
 *     int32     key length, -1 for null; key
 *     int32     value length, -1 for null; value; whatever follows is ignored
 */
#pragma once
#include "cursor.h"
#include "record_layout.h"

enum { NO_MESSAGE = -1, LENGTH_BYTES = 4 };

typedef struct {
    const uint8_t *start, *end;
    int64_t offset, timestamp; /* NO_TIMESTAMP in magic 0 */
    int magic, attributes;
    const uint8_t *key, *value; /* after take_key_and_value */
    int64_t key_bytes, value_bytes; /* negative for null */
} Message;

/* The position of the length of the key, where the fields that all messages have end. */
static inline int64_t key_position(int magic) {
    return magic == 0 ? LEGACY_TIMESTAMP_POSITION : LEGACY_TIMESTAMP_POSITION + (int64_t)sizeof(int64_t);
}

static inline uint32_t stored_crc(const Message *message) {
    return (uint32_t)big32(message->start + LEGACY_CRC_POSITION);
}

/* Take the next whole message, its key and value unchecked: a fault, 0, or NO_MESSAGE if there is none or it is cut. */
static inline int take_message(Cursor *messages, Message *message) {
    if (bytes_left(messages) < FRAME_BYTES) return NO_MESSAGE;
    const int64_t size = big32(messages->at + SIZE_POSITION);
    if (UNLIKELY(size < SMALLEST_SIZE)) return FAULT_INNER_SIZE;
    if (UNLIKELY(size > bytes_left(messages) - FRAME_BYTES)) return NO_MESSAGE;
    const uint8_t *start = messages->at, magic = start[MAGIC_POSITION];
    if (UNLIKELY(magic > 1)) return FAULT_INNER_MAGIC;
    /* every message has the bytes of a timestamp: without one they are the lengths of key and value */
    _Static_assert(FRAME_BYTES + SMALLEST_SIZE >= LEGACY_TIMESTAMP_POSITION + (int)sizeof(int64_t), "");
    message->start = start;
    message->end = messages->at = start + FRAME_BYTES + size;
    message->offset = big64(start);
    message->timestamp = magic == 0 ? NO_TIMESTAMP : big64(start + LEGACY_TIMESTAMP_POSITION);
    message->magic = magic;
    message->attributes = start[LEGACY_ATTRIBUTES_POSITION];
    return 0;
}

/* Take the length of a key or value, and its bytes. */
static inline int take_field(Cursor *cursor, const uint8_t **bytes, int64_t *size) {
    const uint8_t *length = take(cursor, LENGTH_BYTES);
    if (UNLIKELY(!length)) return 0;
    *size = big32(length);
    *bytes = cursor->at;
    return skip(cursor, *size > 0 ? *size : 0);
}

/* Find the key and the value of a message: a fault or 0. */
static inline int take_key_and_value(Message *message) {
    Cursor fields = {message->start + key_position(message->magic), message->end};
    if (UNLIKELY(!take_field(&fields, &message->key, &message->key_bytes) ||
                 !take_field(&fields, &message->value, &message->value_bytes)))
        return FAULT_MESSAGE_FIELDS;
    return 0;
}
