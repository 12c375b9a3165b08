/* The rows of plans (kwire.plan.rows), and the parts of a message as rows describe them: messages.c makes objects of
 * them, message_columns.c columns. */
#pragma once
#include "cursor.h"
#include "plan.h"

/* Take a length or count: -1 for null, -2 on failure. */
static inline int64_t take_length(Cursor *cursor, const Row *row) {
    int64_t n;
    if (row->flags & COMPACT) {
        uint64_t bits;
        if (UNLIKELY(!take_uvarint(cursor, VARINT_BYTES, &bits))) return -2;
        n = (int64_t)bits - 1;
    } else if (row->op == STRING) {
        const uint8_t *bytes = take(cursor, 2);
        if (UNLIKELY(!bytes)) return -2;
        n = big16(bytes);
    } else {
        const uint8_t *bytes = take(cursor, 4);
        if (UNLIKELY(!bytes)) return -2;
        n = big32(bytes);
    }
    if (n < 0) return row->flags & MAY_BE_NULL ? -1 : -2; /* W-14: any negative length is null */
    if (UNLIKELY(n > MAX_ELEMENTS) && row->op != STRING && row->op != BYTES) return -2;
    return n;
}

/* Take an integer as KIP-625 packs it; 0 if it is cut off, too long or too large. */
static inline int take_packed(Cursor *cursor, int64_t code, int64_t *value) {
    const int is_long = code == PACKED64 || code == UPACKED64, is_short = code == PACKED16 || code == UPACKED16;
    uint64_t bits;
    if (UNLIKELY(!take_uvarint(cursor, is_long ? VARLONG_BYTES : VARINT_BYTES, &bits) || (is_short && bits > 0xFFFF)))
        return 0;
    if (code == PACKED16 || code == PACKED32 || code == PACKED64)
        *value = unzigzag(bits);
    else
        *value = is_long ? (int64_t)bits : is_short ? (int16_t)bits : (int32_t)bits;
    return 1;
}

/* Take the marker before a struct that may be null. */
static inline int take_presence(Cursor *cursor, const Row *nullable, int *is_present) {
    if (nullable->tagged) { /* in a tag section: a varint, 0 is null (W-16) */
        uint64_t marker;
        if (UNLIKELY(!take_uvarint(cursor, VARINT_BYTES, &marker))) return 0;
        *is_present = marker != 0;
        return 1;
    }
    const uint8_t *marker = take(cursor, 1); /* a signed byte, negative is null (W-15) */
    if (UNLIKELY(!marker)) return 0;
    *is_present = (int8_t)*marker >= 0;
    return 1;
}

/* Take the number of fields of a tag section: two bytes each at least. */
static inline int take_tag_count(Cursor *cursor, int64_t *count) {
    uint64_t bits;
    if (UNLIKELY(!take_uvarint(cursor, VARINT_BYTES, &bits) || 2 * (int64_t)bits > bytes_left(cursor))) return 0;
    if (UNLIKELY(bits > MAX_TAGGED_FIELDS)) return 0;
    *count = (int64_t)bits;
    return 1;
}

/* Take tag and size of a tagged field, whose value follows. The tag has to be above the last one. */
static inline int take_tag(Cursor *cursor, int64_t last_tag, int64_t *tag, int64_t *size) {
    uint64_t number, bytes;
    if (UNLIKELY(!take_uvarint(cursor, VARINT_BYTES, &number) || !take_uvarint(cursor, VARINT_BYTES, &bytes))) return 0;
    *tag = (int64_t)number;
    *size = (int64_t)bytes;
    return *tag > last_tag && *tag <= MAX_TAG && *size <= bytes_left(cursor);
}

/* Find the entry of a tag: its index, `count` if there is none, -1 if the tag is misplaced (W-27). */
static inline int64_t find_entry(const Row *entries, int64_t count, int64_t tag) {
    for (int64_t i = 0; i < count; i++)
        if (entries[i].tag == tag && entries[i].state == LIVE) return i;
    for (int64_t i = 0; i < count; i++)
        if (entries[i].tag == tag) return -1;
    return count;
}
