/* The hash that Kafka's default partitioner takes of a key: murmur2, 32 bits.
 *
 * Source: A. Appleby's MurmurHash2; org.apache.kafka.common.utils.Utils.murmur2.
 */
#include "cursor.h"
#include "kernels.h"

#define SEED 0x9747b28cu
#define MULTIPLIER 0x5bd1e995u

static inline uint32_t murmur2(const uint8_t *key, int64_t size) {
    const uint8_t *end = key + size;
    uint32_t hash = SEED ^ (uint32_t)size, word;
    for (; end - key >= (int)sizeof word; key += sizeof word) {
        memcpy(&word, key, sizeof word);
        word *= MULTIPLIER;
        word ^= word >> 24;
        hash = hash * MULTIPLIER ^ word * MULTIPLIER;
    }
    switch (end - key) {
    case 3: hash ^= (uint32_t)key[2] << 16; /* fall through */
    case 2: hash ^= (uint32_t)key[1] << 8; /* fall through */
    case 1: hash = (hash ^ key[0]) * MULTIPLIER;
    }
    hash ^= hash >> 13;
    hash *= MULTIPLIER;
    return hash ^ hash >> 15;
}

/* Hash each key of an Arrow binary column: key i is data[ends[i]] to data[ends[i + 1]].
 *
 * (ends, data, hashes) -> keys hashed: fewer than there is room for where an entry of ends points outside of the data. */
KERNEL(hash_keys) {
    const int32_t *ends = (const int32_t *)arguments[0];
    const uint8_t *data = (const uint8_t *)arguments[2];
    const int64_t keys = arguments[1] - 1, size = arguments[3], most = arguments[5];
    uint32_t *hashes = (uint32_t *)arguments[4];
    int64_t i = 0;
    for (; i < most && i < keys; i++) {
        const int64_t start = ends[i], end = ends[i + 1];
        if (start < 0 || end < start || end > size) break;
        hashes[i] = murmur2(data + start, end - start);
    }
    results[0] = i;
}
