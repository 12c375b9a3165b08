/* Arrow columns that kernels write values from: what the encoders of all formats share.
 *
 * A kernel follows the rows of a plan for each row of the array. The output has a capacity that Python chose: the kernel
 * stops before the row that does not fit, and continues from it when it is called with more. A row that cannot be written
 * is left to plain Python, which says what is wrong with it.
 */
#pragma once
#include "columns.h"

typedef struct {
    const int64_t *rows, *operands;
    const uint8_t *constants;
    const int64_t (*sources)[SOURCE_WORDS];
    uint8_t *out, *end;
} Writer;

static inline int bit(int64_t address, int64_t at) { return ((const uint8_t *)address)[at >> 3] >> (at & 7) & 1; }

static inline int is_valid(const int64_t *source, int64_t at) {
    return !source[SOURCE_VALIDITY] || bit(source[SOURCE_VALIDITY], source[SOURCE_FIRST] + at);
}

static inline int has_room(const Writer *writer, int64_t bytes) { return writer->end - writer->out >= bytes; }

static inline int write_bytes(Writer *writer, const uint8_t *bytes, int64_t size) {
    if (UNLIKELY(!has_room(writer, size))) return ROW_NEEDS_ROOM;
    memcpy(writer->out, bytes, (size_t)size);
    writer->out += size;
    return 0;
}

/* The bytes of a value. The pointer is never null, as memcpy and memcmp require also for no bytes: Python sees to it
 * (kwire.schemas.plan_encoder.source_words). */
static inline int64_t span(const int64_t *source, int64_t at, const uint8_t **bytes) {
    const int32_t *offsets = (const int32_t *)source[SOURCE_OFFSETS];
    *bytes = (const uint8_t *)source[SOURCE_DATA] + offsets[at];
    return offsets[at + 1] - offsets[at];
}

/* Write all rows of a job; write: one value with the plan's row `root`, 0 or why it ends early. Inlined: each kernel has
 * its own loop. */
static inline int64_t encode_rows(int64_t *job, int (*write)(Writer *writer, int64_t root, int64_t at)) {
    Writer writer = {
        .rows = (const int64_t *)job[WRITE_JOB_ROWS],
        .operands = (const int64_t *)job[WRITE_JOB_OPERANDS],
        .constants = (const uint8_t *)job[WRITE_JOB_CONSTANTS],
        .sources = (const int64_t(*)[SOURCE_WORDS])job[WRITE_JOB_SOURCES],
    };
    uint8_t *out = (uint8_t *)job[WRITE_JOB_OUT], *nulls = (uint8_t *)job[WRITE_JOB_NULLS];
    int32_t *ends = (int32_t *)job[WRITE_JOB_ENDS];
    int64_t *i = &job[WRITE_JOB_DONE];
    writer.end = out + job[WRITE_JOB_CAPACITY];
    for (; *i < job[WRITE_JOB_COUNT]; ++*i) {
        int stop = 0;
        writer.out = out + job[WRITE_JOB_USED];
        if (!nulls[*i]) {
            stop = write_bytes(&writer, (const uint8_t *)job[WRITE_JOB_PREFIX], job[WRITE_JOB_PREFIX_SIZE]);
            if (!stop) stop = write(&writer, job[WRITE_JOB_ROOT], *i);
        }
        if (LIKELY(!stop))
            job[WRITE_JOB_USED] = writer.out - out;
        else if (stop == ROW_LEFT)
            nulls[*i] = ROW_IS_LEFT;
        else
            return STATUS_NO_ROOM;
        ends[*i + 1] = (int32_t)job[WRITE_JOB_USED];
    }
    return STATUS_FINISHED;
}
