/* The schema ids that values begin with: kwire.schemas.wire_format. */
#include "kernels.h"

#include <string.h>

enum { ID_BYTES = 5, GUID_BYTES = 17 };

static inline int64_t prefix_bytes(const uint8_t *value, int64_t size) {
    if (size >= ID_BYTES && value[0] == 0) return ID_BYTES;
    return size >= GUID_BYTES && value[0] == 1 ? GUID_BYTES : 0;
}

/* Whether the prefix at `start`, of this size, is the one at `other`. Prefixes with the same first byte are as long. */
static inline int is_same(const uint8_t *data, int64_t other, int64_t start, int64_t bytes) {
    return data[other] == data[start] && !memcmp(data + other, data + start, bytes);
}

/* Number the different prefixes of values in the order of their first occurrence. A value without one has number -1.
 *
 * (data, bounds, numbers, sizes, starts) -> prefixes, -1 if there are more than entries of starts; values with one.
 * bounds: start and end of each value, a null starts at -1. sizes: of the prefixes. starts: where each first occurs. */
KERNEL(number_prefixes) {
    const uint8_t *data = (const uint8_t *)arguments[0];
    const int64_t size = arguments[1], (*bounds)[2] = (const int64_t(*)[2])arguments[2];
    int32_t *numbers = (int32_t *)arguments[5];
    int64_t *sizes = (int64_t *)arguments[7], *starts = (int64_t *)arguments[9];
    const int64_t most = arguments[10];
    int64_t values = arguments[3], found = 0, with_prefix = 0;
    if (arguments[4] != 2) values = 0;
    if (values > arguments[6]) values = arguments[6];
    if (values > arguments[8]) values = arguments[8];
    int32_t number = 0; /* of the value before: most topics have one */
    for (int64_t i = 0; i < values; i++) {
        const int64_t start = bounds[i][0], end = bounds[i][1];
        numbers[i] = -1;
        sizes[i] = 0;
        if (start < 0 || end < start || end > size) continue;
        const int64_t bytes = prefix_bytes(data + start, end - start);
        if (!bytes) continue;
        if (number >= found || !is_same(data, starts[number], start, bytes))
            for (number = 0; number < found && !is_same(data, starts[number], start, bytes);) number++;
        if (number == found) {
            if (found == most) {
                results[0] = -1;
                results[1] = 0;
                return;
            }
            starts[found++] = start;
        }
        numbers[i] = number;
        sizes[i] = bytes;
        with_prefix++;
    }
    results[0] = found;
    results[1] = with_prefix;
}
