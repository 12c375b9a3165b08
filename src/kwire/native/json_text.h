/* Text of JSON, eight bytes at a time. */
#pragma once
#include <stdint.h>

#define EACH_BYTE(byte) (0x0101010101010101ULL * (byte))
#define HIGH_BITS EACH_BYTE(0x80)

static inline int64_t has_stop(uint64_t word) { /* a quote, a backslash, or a control character */
    const uint64_t quote = word ^ EACH_BYTE('"'), backslash = word ^ EACH_BYTE('\\');
    const uint64_t found = ((quote - EACH_BYTE(1)) & ~quote) | ((backslash - EACH_BYTE(1)) & ~backslash) |
                           ((word - EACH_BYTE(0x20)) & ~word);
    return (found & HIGH_BITS) != 0;
}
