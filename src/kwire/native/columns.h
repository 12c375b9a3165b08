/* Arrow columns that kernels fill, row by row of the input.
 *
 * Columns have a capacity that Python chose: a kernel stops before the input row that does not fit, and continues from
 * it when it is called with more. A row that a kernel does not read leaves nothing in the columns: it becomes a null,
 * and plain Python reads it or says what is wrong with it. build.py writes values.h: the layout of columns and of jobs, and the rows of plans.
 */
#pragma once
#include "cursor.h"
#include "native.h"
#include "utf8.h"

#include "values.h"

/* Why an input row ends early: it is left to plain Python, a column has to grow, a column cannot grow. */
enum { ROW_LEFT = 1, ROW_NEEDS_ROOM, ROW_TOO_LARGE };

typedef struct {
    const int64_t *rows, *operands;
    const uint8_t *constants;
    Cursor in;
    int64_t (*columns)[COLUMN_WORDS];
    int64_t *job;
    int64_t spare_items; /* items without bytes that this value may still have */
    int depth;
} Run;

#define TRY(expression)                    \
    do {                                   \
        int stop_ = (expression);          \
        if (UNLIKELY(stop_)) return stop_; \
    } while (0)

int no_room(Run *run, const int64_t *column, int64_t needed, int is_data);
int append_null(Run *run, int64_t *column); /* where the column has no nulls, below a null struct, any value */
void truncate_column(Run *run, int64_t *column, int64_t length);
int check_keys(Run *run, const int64_t *map, int64_t at); /* leaves a row to plain Python if its map has a key twice */

/* Fill columns from all rows of a job; read: one value with the plan's row `root`, 0 or why it ends early. */
int64_t decode_rows(int64_t *job, int (*read)(Run *run, int64_t root, const uint8_t *start, int64_t size));

/* Run a job, an array of int64 with this many words, without the GIL; returns its status. */
PyObject *run_job(PyObject *const *objects, Py_ssize_t count, int64_t words, int64_t (*run)(int64_t *));

static inline void set_bit(uint8_t *bits, int64_t at, int value) { /* clears those after it */
    const int shift = (int)(at & 7);
    uint8_t *byte = bits + (at >> 3);
    *byte = (uint8_t)((*byte & ((1 << shift) - 1)) | (value << shift));
}

/* Begin a value that is not null, and return its index, or -1 if the column is full. */
static inline int64_t reserve_value(int64_t *column) {
    const int64_t at = column[COLUMN_LENGTH];
    if (UNLIKELY(at >= column[COLUMN_CAPACITY])) return -1;
    if (column[COLUMN_VALIDITY]) set_bit((uint8_t *)column[COLUMN_VALIDITY], at, 1);
    column[COLUMN_LENGTH] = at + 1;
    return at;
}

#define PLACE(column)                \
    const int64_t at = reserve_value(column); \
    if (UNLIKELY(at < 0)) return no_room(run, column, column[COLUMN_LENGTH] + 1, 0)

static inline int append_bit(Run *run, int64_t *column, int value) {
    PLACE(column);
    set_bit((uint8_t *)column[COLUMN_DATA], at, value);
    return 0;
}

static inline int append4(Run *run, int64_t *column, uint32_t value) {
    PLACE(column);
    ((uint32_t *)column[COLUMN_DATA])[at] = value;
    return 0;
}

static inline int append8(Run *run, int64_t *column, uint64_t value) {
    PLACE(column);
    ((uint64_t *)column[COLUMN_DATA])[at] = value;
    return 0;
}

static inline int append_bytes(Run *run, int64_t *column, const uint8_t *bytes, int64_t size) {
    const int64_t used = column[COLUMN_DATA_BYTES];
    if (UNLIKELY(size > column[COLUMN_DATA_CAPACITY] - used)) return no_room(run, column, used + size, 1);
    PLACE(column);
    memcpy((uint8_t *)column[COLUMN_DATA] + used, bytes, (size_t)size);
    column[COLUMN_DATA_BYTES] = used + size;
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)(used + size);
    return 0;
}
