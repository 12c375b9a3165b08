/* Values of Avro into Arrow columns: the kernel of kwire.schemas.avro.
 *
 * Follows the rows of a plan (kwire.wire.value_rows). Every byte is checked against the end of its value. A row that breaks
 * the format is left to plain Python (kwire.schemas.avro.reading), which says what is wrong with it.
 */
#include "columns.h"

/* Primitive values */

/* last_shift, last_byte: of the last byte that a number of the type may have, and its largest value. */
static inline int read_varint(Run *run, int64_t *value, int last_shift, uint64_t last_byte) {
    const uint8_t *pos = run->in.at, *end = run->in.end;
    uint64_t bits = 0;
    if (UNLIKELY(pos >= end)) return ROW_LEFT;
    if (LIKELY(*pos < 0x80)) {
        bits = *pos++;
    } else {
        int shift = 0;
        for (;; shift += 7) {
            if (UNLIKELY(pos >= end)) return ROW_LEFT;
            const uint64_t byte = *pos++;
            if (UNLIKELY(shift == last_shift && byte > last_byte)) return ROW_LEFT;
            bits |= (byte & 0x7F) << shift;
            if (byte < 0x80) break;
        }
    }
    run->in.at = pos;
    *value = unzigzag(bits);
    return 0;
}

static inline int read_long(Run *run, int64_t *value) {
    return read_varint(run, value, 63, 1);
}

static inline int read_int(Run *run, int64_t *value) {
    return read_varint(run, value, 28, 15);
}

static inline int read_length(Run *run, int64_t *size) {
    TRY(read_long(run, size));
    return LIKELY((uint64_t)*size <= (uint64_t)bytes_left(&run->in)) ? 0 : ROW_LEFT;
}

static inline int read_bytes(Run *run, int64_t *column, int is_text) {
    int64_t size;
    TRY(read_length(run, &size));
    if (is_text && UNLIKELY(!is_utf8(run->in.at, run->in.at + size))) return ROW_LEFT;
    TRY(append_bytes(run, column, run->in.at, size));
    run->in.at += size;
    return 0;
}

/* Read an index below count. */
static inline int read_index(Run *run, int64_t count, int64_t *index) {
    TRY(read_int(run, index));
    return LIKELY((uint64_t)*index < (uint64_t)count) ? 0 : ROW_LEFT;
}

static int read_promoted(Run *run, const int64_t *row, int64_t *column) {
    const int64_t source = row[2], target = row[3], factor = row[5];
    int64_t whole = 0;
    double real = 0;
    float single;
    if (source == NUMBER_INT32) {
        TRY(read_int(run, &whole));
    } else if (source == NUMBER_INT64) {
        TRY(read_long(run, &whole));
    } else {
        const uint8_t *bytes = take(&run->in, sizeof single);
        if (!bytes) return ROW_LEFT;
        memcpy(&single, bytes, sizeof single);
        real = single;
    }
    if (target == NUMBER_INT64) {
        if (LIKELY(whole >= row[6] && whole <= row[7])) return append8(run, column, (uint64_t)(whole * factor));
        return ROW_LEFT;
    }
    if (target == NUMBER_FLOAT32) {
        single = (float)whole;
        uint32_t bits;
        memcpy(&bits, &single, 4);
        return append4(run, column, bits);
    }
    if (source != NUMBER_FLOAT32) real = row[4] ? (double)(float)whole : (double)whole;
    uint64_t bits;
    memcpy(&bits, &real, 8);
    return append8(run, column, bits);
}

/* Whether |number| of `width` bytes, lowest byte first, is below the limit. */
static int is_below(const uint8_t *number, const uint8_t *limit, int64_t width) {
    uint8_t absolute[32];
    const int negative = number[width - 1] >> 7;
    unsigned carry = (unsigned)negative;
    for (int64_t i = 0; i < width; i++) {
        const unsigned byte = (negative ? (uint8_t)~number[i] : number[i]) + carry;
        absolute[i] = (uint8_t)byte;
        carry = byte >> 8;
    }
    for (int64_t i = width - 1; i >= 0; i--)
        if (absolute[i] != limit[i]) return absolute[i] < limit[i];
    return 0;
}

static int read_decimal(Run *run, const int64_t *row, int64_t *column) {
    const int64_t width = column[COLUMN_WIDTH];
    int64_t size = row[2];
    uint8_t number[32];
    if (size < 0) {
        TRY(read_length(run, &size));
    } else if (bytes_left(&run->in) < size) {
        return ROW_LEFT;
    }
    const uint8_t *bytes = run->in.at;
    const uint8_t sign = size && bytes[0] >> 7 ? 0xFF : 0;
    for (int64_t i = 0; i < width; i++) number[i] = i < size ? bytes[size - 1 - i] : sign;
    int fits = size && is_below(number, run->constants + row[3], width) && number[width - 1] >> 7 == (sign & 1);
    for (int64_t i = 0; fits && i < size - width; i++) fits = bytes[i] == sign;
    if (!fits) return ROW_LEFT;
    PLACE(column);
    memcpy((uint8_t *)column[COLUMN_DATA] + at * width, number, (size_t)width);
    run->in.at += size;
    return 0;
}

/* Values of all types */

static int read_value(Run *run, int64_t number);

/* Read the count of a block's items, 0 at the end, and the end of the block if it has a size. */
static int read_block(Run *run, int64_t *count, const uint8_t **block_end) {
    int64_t size;
    *block_end = NULL;
    TRY(read_long(run, count));
    if (LIKELY(*count >= 0)) return 0;
    if (*count == INT64_MIN) return ROW_LEFT;
    *count = -*count;
    TRY(read_length(run, &size));
    *block_end = run->in.at + size;
    return 0;
}

/* Check the number of items of a block before any is read. */
static int check_items(Run *run, int64_t count, int64_t min_bytes) {
    if (LIKELY(min_bytes && count <= bytes_left(&run->in) / min_bytes)) return 0;
    if (!min_bytes && count <= run->spare_items) {
        run->spare_items -= count;
        return 0;
    }
    return ROW_LEFT;
}

static int read_list(Run *run, const int64_t *row, int is_map) {
    int64_t *column = run->columns[row[1]], count;
    int64_t *child = run->columns[run->operands[column[COLUMN_CHILDREN]]];
    const int64_t item = row[2], key = row[5];
    for (;;) {
        const uint8_t *block_end;
        TRY(read_block(run, &count, &block_end));
        if (!count) break;
        TRY(check_items(run, count, row[4]));
        for (int64_t i = 0; i < count; i++) {
            if (is_map) {
                TRY(read_value(run, key));
                TRY(read_value(run, item));
                if (UNLIKELY(reserve_value(child) < 0)) return no_room(run, child, child[COLUMN_LENGTH] + 1, 0);
            } else {
                TRY(read_value(run, item));
            }
        }
        if (block_end && block_end != run->in.at) return ROW_LEFT;
    }
    PLACE(column);
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)child[COLUMN_LENGTH];
    return 0;
}

static int skip_length(Run *run) {
    int64_t size;
    TRY(read_length(run, &size));
    run->in.at += size;
    return 0;
}

static int skip_list(Run *run, const int64_t *row, int is_map) {
    const int64_t item = row[2], item_bytes = row[3];
    for (;;) {
        const uint8_t *block_end;
        int64_t count;
        TRY(read_block(run, &count, &block_end));
        if (!count) return 0;
        TRY(check_items(run, count, row[4]));
        if (block_end) {
            run->in.at = block_end;
        } else if (item_bytes >= 0) { /* count * item_bytes is at most the remaining bytes: check_items */
            run->in.at += count * item_bytes;
        } else {
            for (int64_t i = 0; i < count; i++) {
                if (is_map) TRY(skip_length(run));
                TRY(read_value(run, item));
            }
        }
    }
}

static int read_member(Run *run, const int64_t *row) {
    int64_t *column = run->columns[row[1]];
    const int64_t *children = run->operands + column[COLUMN_CHILDREN];
    for (int64_t i = 0; i < column[COLUMN_CHILD_COUNT]; i++)
        if (i != row[3]) TRY(append_null(run, run->columns[children[i]]));
    TRY(read_value(run, row[2]));
    PLACE(column);
    (void)at;
    return 0;
}

static int read_constant(Run *run, const int64_t *row) {
    const Cursor outer = run->in;
    const int64_t spare_items = run->spare_items;
    const uint8_t *constant = run->constants + row[3];
    run->in = (Cursor){constant, constant + row[4]};
    run->spare_items = INT64_MAX;
    const int stop = read_value(run, row[2]);
    run->in = outer;
    run->spare_items = spare_items;
    return stop;
}

static int read_symbol(Run *run, const int64_t *row, int64_t *column) {
    int64_t index;
    TRY(read_index(run, row[3], &index));
    const int64_t *symbol = run->operands + row[2] + 2 * index;
    if (UNLIKELY(symbol[0] < 0)) return ROW_LEFT;
    return append_bytes(run, column, run->constants + symbol[0], symbol[1]);
}

static inline int read_steps(Run *run, const int64_t *row) {
    const int64_t *steps = run->operands + row[2];
    for (int64_t i = 0; i < row[3]; i++) TRY(read_value(run, steps[i]));
    return 0;
}

static int read_nested(Run *run, const int64_t *row) {
    int64_t index;
    switch (row[0]) {
    case OP_RECORD: {
        TRY(read_steps(run, row));
        int64_t *column = run->columns[row[1]];
        PLACE(column);
        (void)at;
        return 0;
    }
    case OP_ARRAY:
        return read_list(run, row, 0);
    case OP_MAP:
        return read_list(run, row, 1);
    case OP_MEMBER:
        return read_member(run, row);
    case OP_CONSTANT:
        return read_constant(run, row);
    case OP_SKIP_RECORD:
        return read_steps(run, row);
    case OP_SKIP_ARRAY:
        return skip_list(run, row, 0);
    case OP_SKIP_MAP:
        return skip_list(run, row, 1);
    default: /* OP_UNION, OP_SKIP_UNION */
        TRY(read_index(run, row[3], &index));
        return read_value(run, run->operands[row[2] + index]);
    }
}

/* Read a value that has no values inside. */
static inline int read_leaf(Run *run, const int64_t *row, int64_t *column) {
    int64_t number;
    switch (row[0]) {
    case OP_NULL:
        return append_null(run, column);
    case OP_BOOLEAN: {
        if (UNLIKELY(run->in.at >= run->in.end)) return ROW_LEFT;
        if (UNLIKELY(*run->in.at > 1)) return ROW_LEFT;
        PLACE(column);
        set_bit((uint8_t *)column[COLUMN_DATA], at, *run->in.at++);
        return 0;
    }
    case OP_INT:
        TRY(read_int(run, &number));
        return append4(run, column, (uint32_t)number);
    case OP_LONG:
        TRY(read_long(run, &number));
        if (UNLIKELY(number < row[3] || number > row[4])) return ROW_LEFT;
        return append8(run, column, (uint64_t)number * (uint64_t)row[2]);
    case OP_FLOAT: {
        uint32_t bits;
        const uint8_t *bytes = take(&run->in, sizeof bits);
        if (UNLIKELY(!bytes)) return ROW_LEFT;
        memcpy(&bits, bytes, sizeof bits);
        return append4(run, column, bits);
    }
    case OP_DOUBLE: {
        uint64_t bits;
        const uint8_t *bytes = take(&run->in, sizeof bits);
        if (UNLIKELY(!bytes)) return ROW_LEFT;
        memcpy(&bits, bytes, sizeof bits);
        return append8(run, column, bits);
    }
    case OP_NUMBER:
        return read_promoted(run, row, column);
    case OP_BYTES:
        return read_bytes(run, column, (int)row[2]);
    case OP_FIXED: {
        const uint8_t *bytes = run->in.at;
        return LIKELY(skip(&run->in, row[2])) ? append_bytes(run, column, bytes, row[2]) : ROW_LEFT;
    }
    case OP_ENUM:
        return read_symbol(run, row, column);
    case OP_DECIMAL:
        return read_decimal(run, row, column);
    case OP_SKIP_FIXED:
        return LIKELY(skip(&run->in, row[2])) ? 0 : ROW_LEFT;
    case OP_SKIP_NUMBER:
        return row[2] == 5 ? read_int(run, &number) : read_long(run, &number);
    case OP_SKIP_BYTES:
        return skip_length(run);
    case OP_SKIP_ENUM:
        return read_index(run, row[3], &number);
    default: /* OP_UNRESOLVED */
        return ROW_LEFT;
    }
}

static inline int is_nested(int64_t operation) {
    return (operation >= OP_RECORD && operation <= OP_CONSTANT) || operation >= OP_SKIP_RECORD;
}

static int read_value(Run *run, int64_t number) {
    const int64_t *row = run->rows + number * ROW_WORDS;
    if (!is_nested(row[0])) return read_leaf(run, row, run->columns[row[1]]);
    if (UNLIKELY(run->depth >= MAX_DEPTH)) return ROW_LEFT;
    run->depth++;
    const int stop = read_nested(run, row);
    run->depth--;
    return stop;
}

/* Read an input row. */
static int read_row(Run *run, int64_t root, const uint8_t *start, int64_t size) {
    run->in.at = start;
    run->in.end = start + size;
    run->spare_items = SPARE_ITEMS + size;
    run->depth = 0;
    TRY(read_value(run, root));
    return LIKELY(run->in.at == run->in.end || run->job[JOB_ALLOW_TRAILING]) ? 0 : ROW_LEFT;
}

static int64_t decode(int64_t *job) { return decode_rows(job, read_row); }

PyObject *decode_avro(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, JOB_WORDS, decode);
}
