/* Arrow columns that kernels fill: what is not in columns.h because it is rare, or once a job. */
#include "columns.h"

enum { FEW_KEYS = 8, MOST_PROBES = 32 };

int no_room(Run *run, const int64_t *column, int64_t needed, int is_data) {
    run->job[JOB_ROOM_COLUMN] = (column - run->columns[0]) / COLUMN_WORDS;
    run->job[JOB_ROOM_NEEDED] = needed;
    run->job[JOB_ROOM_IS_DATA] = is_data;
    return needed > MAX_OFFSET ? ROW_TOO_LARGE : ROW_NEEDS_ROOM;
}

int append_null(Run *run, int64_t *column) {
    PLACE(column);
    if (column[COLUMN_VALIDITY]) set_bit((uint8_t *)column[COLUMN_VALIDITY], at, 0);
    const int64_t *children = run->operands + column[COLUMN_CHILDREN];
    switch (column[COLUMN_KIND]) {
    case KIND_BITS:
        set_bit((uint8_t *)column[COLUMN_DATA], at, 0);
        break;
    case KIND_WIDE:
        memset((uint8_t *)column[COLUMN_DATA] + at * column[COLUMN_WIDTH], 0, (size_t)column[COLUMN_WIDTH]);
        break;
    case KIND_BINARY:
        ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)column[COLUMN_DATA_BYTES];
        break;
    case KIND_STRUCT:
        for (int64_t i = 0; i < column[COLUMN_CHILD_COUNT]; i++) TRY(append_null(run, run->columns[children[i]]));
        break;
    case KIND_LIST:
        ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)run->columns[children[0]][COLUMN_LENGTH];
    }
    return 0;
}

/* Remove the values after the first `length` ones. */
void truncate_column(Run *run, int64_t *column, int64_t length) {
    const int64_t *children = run->operands + column[COLUMN_CHILDREN];
    column[COLUMN_LENGTH] = length;
    if (column[COLUMN_KIND] == KIND_BINARY)
        column[COLUMN_DATA_BYTES] = ((int32_t *)column[COLUMN_OFFSETS])[length];
    else if (column[COLUMN_KIND] == KIND_LIST)
        truncate_column(run, run->columns[children[0]], ((int32_t *)column[COLUMN_OFFSETS])[length]);
    else if (column[COLUMN_KIND] == KIND_STRUCT)
        for (int64_t i = 0; i < column[COLUMN_CHILD_COUNT]; i++)
            truncate_column(run, run->columns[children[i]], length);
}

/* Keys of maps */

static inline const uint8_t *key_at(const int64_t *keys, int64_t at, int64_t *size) {
    static const uint8_t bits[2] = {0, 1};
    const uint8_t *data = (const uint8_t *)keys[COLUMN_DATA];
    if (keys[COLUMN_KIND] == KIND_BINARY) {
        const int32_t *offsets = (const int32_t *)keys[COLUMN_OFFSETS];
        *size = offsets[at + 1] - offsets[at];
        return data + offsets[at];
    }
    if (keys[COLUMN_KIND] == KIND_BITS) {
        *size = 1;
        return bits + (data[at >> 3] >> (at & 7) & 1);
    }
    *size = keys[COLUMN_WIDTH];
    return data + at * *size;
}

static inline int is_same_key(const int64_t *keys, int64_t one, int64_t other) {
    int64_t size, other_size;
    const uint8_t *bytes = key_at(keys, one, &size), *other_bytes = key_at(keys, other, &other_size);
    return size == other_size && !memcmp(bytes, other_bytes, (size_t)size);
}

static uint64_t hash_key(const int64_t *keys, int64_t at) {
    int64_t size;
    const uint8_t *bytes = key_at(keys, at, &size);
    uint64_t hash = (uint64_t)size, word;
    for (; size > 0; bytes += 8, size -= 8) {
        word = 0;
        memcpy(&word, bytes, size < 8 ? (size_t)size : 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
        hash ^= hash >> 32;
    }
    hash *= 0x9E3779B97F4A7C15ULL; /* the last digits of a name are in the high bits of its word */
    return hash ^ hash >> 32;
}

/* Many keys are put into a table of their indexes. */
int check_keys(Run *run, const int64_t *column, int64_t at) {
    const int32_t *offsets = (const int32_t *)column[COLUMN_OFFSETS];
    const int64_t *entries = run->columns[run->operands[column[COLUMN_CHILDREN]]];
    const int64_t *keys = run->columns[run->operands[entries[COLUMN_CHILDREN]]];
    const int64_t first = offsets[at], count = offsets[at + 1] - first;
    if (count <= FEW_KEYS) {
        for (int64_t i = 1; i < count; i++)
            for (int64_t j = 0; j < i; j++)
                if (UNLIKELY(is_same_key(keys, first + i, first + j))) return ROW_LEFT;
        return 0;
    }
    int64_t slots = 4 * FEW_KEYS;
    while (slots < 2 * count) slots *= 2;
    if (slots > run->job[JOB_SCRATCH_CAPACITY]) {
        run->job[JOB_ROOM_COLUMN] = NO_COLUMN;
        run->job[JOB_ROOM_NEEDED] = slots;
        return ROW_NEEDS_ROOM;
    }
    int32_t *table = (int32_t *)run->job[JOB_SCRATCH];
    memset(table, 0xFF, 4 * (size_t)slots);
    for (int64_t i = first; i < first + count; i++) {
        int64_t slot = (int64_t)(hash_key(keys, i) & (uint64_t)(slots - 1));
        for (int probes = 0; table[slot] >= 0; slot = (slot + 1) & (slots - 1))
            if (UNLIKELY(++probes > MOST_PROBES || is_same_key(keys, i, table[slot]))) return ROW_LEFT;
        table[slot] = (int32_t)i;
    }
    return 0;
}

int64_t decode_rows(int64_t *job, int (*read)(Run *run, int64_t root, const uint8_t *start, int64_t size)) {
    Run run = {
        .rows = (const int64_t *)job[JOB_ROWS],
        .operands = (const int64_t *)job[JOB_OPERANDS],
        .constants = (const uint8_t *)job[JOB_CONSTANTS],
        .columns = (int64_t(*)[COLUMN_WORDS])job[JOB_COLUMNS],
        .job = job,
    };
    const int64_t *starts = (const int64_t *)job[JOB_STARTS], *ends = (const int64_t *)job[JOB_ENDS];
    int64_t *roots = (int64_t *)job[JOB_ROOTS];
    const uint8_t *bytes = (const uint8_t *)job[JOB_BYTES];
    int64_t *column = run.columns[job[JOB_ROOT_COLUMN]];
    int64_t *i = &job[JOB_DONE];
    for (; *i < job[JOB_COUNT]; ++*i) {
        const uint8_t *start = bytes + starts[*i];
        int stop = roots[*i] < 0 ? append_null(&run, column) : read(&run, roots[*i], start, ends[*i] - starts[*i]);
        if (LIKELY(!stop)) continue;
        truncate_column(&run, column, *i);
        if (stop == ROW_LEFT) {
            stop = append_null(&run, column);
            if (!stop) {
                roots[*i] = LEFT;
                job[JOB_LEFT_COUNT]++;
                continue;
            }
            truncate_column(&run, column, *i);
        }
        return stop == ROW_NEEDS_ROOM ? STATUS_NO_ROOM : STATUS_TOO_LARGE;
    }
    return STATUS_FINISHED;
}

PyObject *run_job(PyObject *const *objects, Py_ssize_t count, int64_t words, int64_t (*run)(int64_t *)) {
    Py_buffer view;
    if (count != 1) return PyErr_Format(PyExc_TypeError, "takes 1 argument, got %zd", count);
    if (PyObject_GetBuffer(objects[0], &view, PyBUF_C_CONTIGUOUS) < 0) return NULL;
    PyObject *made = NULL;
    if (view.itemsize != 8 || view.len != 8 * words || view.readonly) {
        PyErr_Format(PyExc_ValueError, "not a job");
    } else {
        PyThreadState *thread = PyEval_SaveThread();
        const int64_t status = run(view.buf);
        PyEval_RestoreThread(thread);
        made = PyLong_FromLongLong(status);
    }
    PyBuffer_Release(&view);
    return made;
}
