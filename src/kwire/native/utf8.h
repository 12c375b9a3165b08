/* Whether bytes are UTF-8 as Python reads it: shortest forms, no surrogates, up to U+10FFFF. */
#pragma once
#include <stdint.h>
#include <string.h>

static inline int is_utf8(const uint8_t *pos, const uint8_t *end) {
    while (pos < end) {
        uint64_t word;
        if (end - pos >= 8) {
            memcpy(&word, pos, 8);
            if (__builtin_expect(!(word & 0x8080808080808080ULL), 1)) {
                pos += 8;
                continue;
            }
        }
        const uint8_t first = *pos++;
        if (first < 0x80) continue;
        const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
        if (first < 0xC2 || first > 0xF4 || end - pos < more) return 0;
        const uint8_t second = *pos;
        if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0; /* overlong; surrogates */
        if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0; /* overlong; above U+10FFFF */
        for (int i = 0; i < more; i++)
            if ((*pos++ & 0xC0) != 0x80) return 0;
    }
    return 1;
}
