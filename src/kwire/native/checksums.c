/* CRC-32C with the processor's instruction, 7 GB/s on one core, and CRC-32 by tables.
 *
 * The instruction takes three cycles and one can start every cycle: three runs of bytes are summed side by side. Tables
 * that move a sum over a fixed number of zero bytes combine them. Most x86-64 processors have the instruction; on ARM it is
 * optional.
 *
 * Source: M. Adler's crc32c.c for the method; Intel's and ARM's manuals for the instructions.
 */
#include "checksums.h"
#include "checksum_tables.h"
#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#define WITH_INSTRUCTION __attribute__((target("sse4.2,crc32")))
#define SUM_WORD _mm_crc32_u64
#define SUM_BYTE(sum, byte) _mm_crc32_u8((uint32_t)(sum), byte)

int has_crc32c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c & bit_SSE4_2;
}
#elif defined(__aarch64__)
#define WITH_INSTRUCTION __attribute__((target("crc")))
#include <arm_acle.h>
#define SUM_WORD(sum, word) __crc32cd((uint32_t)(sum), word)
#define SUM_BYTE(sum, byte) __crc32cb((uint32_t)(sum), byte)
#if defined(__APPLE__)
int has_crc32c(void) { return 1; }
#else
unsigned long getauxval(unsigned long);

int has_crc32c(void) { return (getauxval(16) >> 7) & 1; /* AT_HWCAP, HWCAP_CRC32 */ }
#endif
#else
#define WITH_INSTRUCTION
#define SUM_WORD(sum, word) 0
#define SUM_BYTE(sum, byte) 0

int has_crc32c(void) { return 0; }
#endif

enum { LONG_RUN = sizeof(uint64_t) * LONG_RUN_WORDS, SHORT_RUN = sizeof(uint64_t) * SHORT_RUN_WORDS };

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* The sum after the run of zero bytes that the table is for. */
static inline uint64_t move_over_zeros(const uint32_t table[4][256], uint64_t sum) {
    return table[0][sum & 0xFF] ^ table[1][sum >> 8 & 0xFF] ^ table[2][sum >> 16 & 0xFF] ^ table[3][sum >> 24 & 0xFF];
}

/* Add three runs of bytes to a sum. */
WITH_INSTRUCTION static inline uint64_t sum_runs(uint64_t first, const uint8_t *bytes, int64_t run,
                                                 const uint32_t table[4][256]) {
    uint64_t second = 0, third = 0;
    for (const uint8_t *end = bytes + run; bytes < end; bytes += sizeof(uint64_t)) {
        first = SUM_WORD(first, word_at(bytes));
        second = SUM_WORD(second, word_at(bytes + run));
        third = SUM_WORD(third, word_at(bytes + 2 * run));
    }
    return move_over_zeros(table, move_over_zeros(table, first) ^ second) ^ third;
}

WITH_INSTRUCTION static uint32_t crc32c_of(const uint8_t *bytes, int64_t size) {
    uint64_t sum = 0xFFFFFFFF;
    for (; size >= 3 * LONG_RUN; bytes += 3 * LONG_RUN, size -= 3 * LONG_RUN)
        sum = sum_runs(sum, bytes, LONG_RUN, long_run_table);
    for (; size >= 3 * SHORT_RUN; bytes += 3 * SHORT_RUN, size -= 3 * SHORT_RUN)
        sum = sum_runs(sum, bytes, SHORT_RUN, short_run_table);
    for (; size >= 8; bytes += 8, size -= 8) sum = SUM_WORD(sum, word_at(bytes));
    for (; size > 0; bytes++, size--) sum = SUM_BYTE(sum, *bytes);
    return (uint32_t)sum ^ 0xFFFFFFFF;
}

/* The sum of the eight bytes of a word, followed by as many zero bytes as the table begins with. */
static inline uint64_t sum_word(const uint32_t table[8][256], uint64_t word) {
    return table[7][word & 0xFF] ^ table[6][word >> 8 & 0xFF] ^ table[5][word >> 16 & 0xFF] ^ table[4][word >> 24 & 0xFF] ^
           table[3][word >> 32 & 0xFF] ^ table[2][word >> 40 & 0xFF] ^ table[1][word >> 48 & 0xFF] ^ table[0][word >> 56];
}

uint32_t crc32_of(const uint8_t *bytes, int64_t size) {
    uint64_t sum = 0xFFFFFFFF;
    for (; size >= 16; bytes += 16, size -= 16)
        sum = sum_word(crc32_table + 8, word_at(bytes) ^ sum) ^ sum_word(crc32_table, word_at(bytes + 8));
    for (; size >= 8; bytes += 8, size -= 8) sum = sum_word(crc32_table, word_at(bytes) ^ sum);
    for (; size > 0; bytes++, size--) sum = crc32_table[0][(sum ^ *bytes) & 0xFF] ^ sum >> 8;
    return (uint32_t)sum ^ 0xFFFFFFFF;
}

/* (data) -> CRC-32C */
KERNEL(sum_bytes) { results[0] = crc32c_of((const uint8_t *)arguments[0], arguments[1]); }

/* Set the fault of each batch of magic 2 in data whose checksum is wrong. (data, table) -> batches of other magics. */
KERNEL(check_default_crcs) {
    Batch *table = (Batch *)arguments[2];
    results[0] = 0;
    for (int64_t i = 0; i < arguments[3]; i++) {
        if (table[i].magic != 2) {
            results[0]++;
            continue;
        }
        Cursor data = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[0] + arguments[1]};
        if (!take(&data, table[i].position)) continue;
        const uint8_t *batch = take(&data, table[i].size);
        if (!batch || table[i].size < ATTRIBUTES_POSITION) continue;
        const uint8_t *covered = batch + ATTRIBUTES_POSITION;
        if (crc32c_of(covered, data.at - covered) != (uint32_t)big32(batch + CRC_POSITION)) table[i].fault = BAD_CRC;
    }
}

/* (data, table): set the fault of each message of magic 0 or 1 in data whose checksum is wrong. */
KERNEL(check_legacy_crcs) {
    Batch *table = (Batch *)arguments[2];
    for (int64_t i = 0; i < arguments[3]; i++) {
        if (table[i].magic == 2) continue;
        Cursor data = {(const uint8_t *)arguments[0], (const uint8_t *)arguments[0] + arguments[1]};
        Message message;
        if (take(&data, table[i].position) && !take_message(&data, &message) && !has_right_crc(&message))
            table[i].fault = BAD_CRC;
    }
}

/* (room, table): store the checksum of each batch in room. The first columns of the table are position and size. */
KERNEL(sum_batches) {
    uint8_t *room = (uint8_t *)arguments[0];
    const int64_t *table = (const int64_t *)arguments[2], columns = arguments[4];
    for (int64_t i = 0; i < arguments[3]; i++) {
        uint8_t *batch = room + table[i * columns];
        const int64_t covered = table[i * columns + 1] - ATTRIBUTES_POSITION;
        put_big32(batch + CRC_POSITION, (int32_t)crc32c_of(batch + ATTRIBUTES_POSITION, covered));
    }
}
