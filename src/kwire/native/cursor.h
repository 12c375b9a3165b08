/* Reading: a cursor owns the bounds of its bytes. Everything that strangers sent is read through these functions: they
 * check the end, and nothing else moves a cursor. A read that fails returns 0 (or NULL) and the cursor is of no more use.
 *
 * Writing: numbers at an address; the caller has made sure of the room.
 */
#pragma once
#include <stdint.h>
#include <string.h>

#include "array_layout.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { VARINT_BYTES = 5, VARLONG_BYTES = 10 }; /* the longest forms of 32 and of 64 bits */

typedef struct {
    const uint8_t *at, *end;
} Cursor;

static inline int64_t bytes_left(const Cursor *cursor) { return cursor->end - cursor->at; }

/* Step over the next `size` bytes. */
static inline int skip(Cursor *cursor, int64_t size) {
    if (UNLIKELY((uint64_t)size > (uint64_t)bytes_left(cursor))) return 0; /* a negative one is large */
    cursor->at += size;
    return 1;
}

/* Take the next `size` bytes: where they start. */
static inline const uint8_t *take(Cursor *cursor, int64_t size) {
    const uint8_t *start = cursor->at;
    return skip(cursor, size) ? start : NULL;
}

/* Big-endian numbers at an address whose bytes the caller has taken. */

static inline int16_t big16(const uint8_t *at) { return (int16_t)(at[0] << 8 | at[1]); }

static inline int32_t big32(const uint8_t *at) {
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return (int32_t)__builtin_bswap32(bits);
}

static inline int64_t big64(const uint8_t *at) {
    uint64_t bits;
    memcpy(&bits, at, sizeof bits);
    return (int64_t)__builtin_bswap64(bits);
}

static inline void put_big16(uint8_t *at, int16_t value) {
    at[0] = (uint8_t)((uint16_t)value >> 8);
    at[1] = (uint8_t)value;
}

static inline void put_big32(uint8_t *at, int32_t value) {
    const uint32_t bits = __builtin_bswap32((uint32_t)value);
    memcpy(at, &bits, sizeof bits);
}

static inline void put_big64(uint8_t *at, int64_t value) {
    const uint64_t bits = __builtin_bswap64((uint64_t)value);
    memcpy(at, &bits, sizeof bits);
}

/* Varints: seven bits a byte, the lowest first, the high bit set in every byte but the last. Bits beyond the type's width
 * are dropped, as Kafka does (W-10). */

/* Take an unsigned number of at most `longest` bytes; *is_shortest is cleared if it has a shorter form. */
static inline int take_bits(Cursor *cursor, int longest, uint64_t *bits, int *is_shortest) {
    const uint8_t *at = cursor->at, *end = cursor->end;
    if (UNLIKELY(at >= end)) return 0;
    uint64_t byte = *at++, value = byte; /* most numbers have one byte, most others two */
    if (byte >= 0x80) {
        if (UNLIKELY(at >= end)) return 0;
        byte = *at++;
        value = (value & 0x7F) | (byte & 0x7F) << 7;
        for (int shift = 14; byte >= 0x80; shift += 7) {
            if (UNLIKELY(at >= end || shift == 7 * longest)) return 0;
            byte = *at++;
            value |= (byte & 0x7F) << shift;
        }
        if (byte == 0) *is_shortest = 0;
    }
    cursor->at = at;
    *bits = longest == VARINT_BYTES ? (uint32_t)value : value;
    return 1;
}

static inline int take_uvarint(Cursor *cursor, int longest, uint64_t *bits) {
    int is_shortest;
    return take_bits(cursor, longest, bits, &is_shortest);
}

static inline int64_t unzigzag(uint64_t bits) { return (int64_t)(bits >> 1 ^ -(bits & 1)); }

static inline uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

/* Take a signed number of 32 (varint) or 64 bits (varlong). */
static inline int take_varint(Cursor *cursor, int64_t *value, int *is_shortest) {
    uint64_t bits;
    if (UNLIKELY(!take_bits(cursor, VARINT_BYTES, &bits, is_shortest))) return 0;
    *value = unzigzag(bits);
    return 1;
}

static inline int take_varlong(Cursor *cursor, int64_t *value, int *is_shortest) {
    uint64_t bits;
    if (UNLIKELY(!take_bits(cursor, VARLONG_BYTES, &bits, is_shortest))) return 0;
    *value = unzigzag(bits);
    return 1;
}

static inline int uvarint_bytes(uint64_t bits) {
    if (bits < 1 << 7) return 1; /* most numbers; the branches are faster than the division */
    if (bits < 1 << 14) return 2;
    return (70 - __builtin_clzll(bits)) / 7;
}

static inline uint8_t *put_uvarint(uint8_t *at, uint64_t bits) {
    for (; bits >= 0x80; bits >>= 7) *at++ = (uint8_t)(bits | 0x80);
    *at++ = (uint8_t)bits;
    return at;
}

static inline uint8_t *put_varint(uint8_t *at, int64_t value) { return put_uvarint(at, zigzag(value)); }

/* Sums and differences wrap, as those of Java do. */
static inline int64_t wrapping_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static inline int64_t wrapping_difference(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }

/* Copying */

enum { LONGEST_WIDE_COPY = 2048 }; /* beyond it memcpy wins (measured, 100 B to 4 KB values) */

#ifdef __clang__
#define NOT_UNROLLED _Pragma("clang loop unroll(disable)") /* for few rounds */
#else
#define NOT_UNROLLED
#endif

/* Copy `size` bytes to a target that has WIDE more bytes (kwire.native.arrays); nothing at or after source_end is read. */
static inline void copy_wide(uint8_t *target, const uint8_t *source, int64_t size, const uint8_t *source_end) {
    if (size <= LONGEST_WIDE_COPY && size + WIDE <= source_end - source) {
        NOT_UNROLLED
        for (int64_t done = 0; done < size; done += WIDE) memcpy(target + done, source + done, WIDE);
    } else if (size) {
        memcpy(target, source, (size_t)size);
    }
}

/* Null: clear a bit of an Arrow validity bitmap. */
static inline void clear_bit(uint8_t *bitmap, int64_t index) { bitmap[index >> 3] &= (uint8_t)~(1 << (index & 7)); }
