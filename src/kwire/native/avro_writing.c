/* Arrow columns into values of Avro: the kernel of kwire.schemas.avro.Encoder.
 *
 * Follows the rows of a plan (kwire.wire.value_rows) for each row of the array. The output has a capacity that Python
 * chose: the kernel stops before the row that does not fit, and continues from it when it is called with more. A row
 * that cannot be written is left to plain Python (kwire.schemas.avro.writing), which says what is wrong with it.
 */
#include "values_writing.h"

static inline int write_number(Writer *writer, int64_t value) {
    if (UNLIKELY(!has_room(writer, VARLONG_BYTES))) return ROW_NEEDS_ROOM;
    writer->out = put_varint(writer->out, value);
    return 0;
}

static int write_symbol(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const uint8_t *bytes;
    const int64_t size = span(source, at, &bytes);
    const int64_t *symbol = writer->operands + row[2];
    for (int64_t i = 0; i < row[3]; i++, symbol += 2)
        if (symbol[1] == size && !memcmp(writer->constants + symbol[0], bytes, (size_t)size))
            return write_number(writer, i);
    return ROW_LEFT;
}

static int write_decimal(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const int64_t width = row[3];
    const uint8_t *number = (const uint8_t *)source[SOURCE_DATA] + at * width;
    const uint8_t sign = number[width - 1] >> 7 ? 0xFF : 0;
    int64_t size = width;
    while (size > 1 && number[size - 1] == sign && number[size - 2] >> 7 == (sign & 1)) size--;
    if (row[2] < 0)
        TRY(write_number(writer, size));
    else if (size > row[2])
        return ROW_LEFT;
    if (!has_room(writer, width + (row[2] > 0 ? row[2] : 0))) return ROW_NEEDS_ROOM;
    for (int64_t i = row[2] - 1; i >= size; i--) *writer->out++ = sign;
    for (int64_t i = size - 1; i >= 0; i--) *writer->out++ = number[i];
    return 0;
}

static int write_value(Writer *writer, int64_t number, int64_t at);

static int write_list(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const int32_t *offsets = (const int32_t *)source[SOURCE_OFFSETS];
    const int64_t first = offsets[at], end = offsets[at + 1];
    if (end > first) {
        TRY(write_number(writer, end - first));
        for (int64_t i = first; i < end; i++) {
            if (row[0] == WRITE_MAP) TRY(write_value(writer, row[3], i));
            TRY(write_value(writer, row[2], i));
        }
    }
    return write_number(writer, 0);
}

static int write_members(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const int64_t *members = writer->operands + row[2], *found = 0;
    if (is_valid(source, at))
        for (int64_t i = 0; i < row[3]; i++) {
            const int64_t *member = members + 3 * i; /* index, row, source */
            if (!is_valid(writer->sources[member[2]], at)) continue;
            if (found) return ROW_LEFT;
            found = member;
        }
    if (found) {
        TRY(write_number(writer, found[0]));
        return write_value(writer, found[1], at);
    }
    return row[4] < 0 ? ROW_LEFT : write_number(writer, row[4]);
}

static int write_steps(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *steps = writer->operands + row[2];
    for (int64_t i = 0; i < row[3]; i++) TRY(write_value(writer, steps[i], at));
    return 0;
}

static int write_present(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const uint8_t *bytes;
    int64_t size;
    switch (row[0]) {
    case WRITE_BOOLEAN: {
        const uint8_t value = (uint8_t)bit(source[SOURCE_DATA], source[SOURCE_FIRST] + at);
        return write_bytes(writer, &value, 1);
    }
    case WRITE_INT:
        return write_number(writer, ((const int32_t *)source[SOURCE_DATA])[at]);
    case WRITE_LONG: {
        int64_t value = ((const int64_t *)source[SOURCE_DATA])[at];
        if (row[2] != 1) value = value / row[2] - (value % row[2] < 0);
        return write_number(writer, value);
    }
    case WRITE_PLAIN:
        return write_bytes(writer, (const uint8_t *)source[SOURCE_DATA] + at * row[2], row[2]);
    case WRITE_BYTES:
        size = span(source, at, &bytes);
        TRY(write_number(writer, size));
        return write_bytes(writer, bytes, size);
    case WRITE_FIXED:
        size = span(source, at, &bytes);
        return size == row[2] ? write_bytes(writer, bytes, size) : ROW_LEFT;
    case WRITE_ENUM:
        return write_symbol(writer, row, source, at);
    case WRITE_DECIMAL:
        return write_decimal(writer, row, source, at);
    case WRITE_RECORD:
        return write_steps(writer, row, at);
    default: /* WRITE_ARRAY, WRITE_MAP */
        return write_list(writer, row, source, at);
    }
}

static int write_any(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *source = writer->sources[row[1]];
    switch (row[0]) {
    case WRITE_NULL:
        return 0;
    case WRITE_CONSTANT:
        return write_bytes(writer, writer->constants + row[2], row[3]);
    case WRITE_MEMBERS:
        return write_members(writer, row, source, at);
    case WRITE_NULLABLE:
        if (!is_valid(source, at)) return write_number(writer, row[3]);
        TRY(write_number(writer, row[4]));
        return write_value(writer, row[2], at);
    case WRITE_BRANCH:
        TRY(write_number(writer, row[4]));
        return write_value(writer, row[2], at);
    default:
        return LIKELY(is_valid(source, at)) ? write_present(writer, row, source, at) : ROW_LEFT;
    }
}

static int write_value(Writer *writer, int64_t number, int64_t at) {
    const int stop = write_any(writer, writer->rows + number * ROW_WORDS, at);
    return UNLIKELY(stop) ? stop : 0; /* not a tail call, with which clang inlines worse: 10 % more time a row */
}

static int64_t encode(int64_t *job) { return encode_rows(job, write_value); }

PyObject *encode_avro(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, WRITE_JOB_WORDS, encode);
}
