/* Arrow columns into Protobuf messages: the kernel of kwire.schemas.protobuf.Encoder.
 *
 * Follows the rows of a plan (kwire.wire.protobuf_rows). Fields are written in the order of their numbers, as
 * google.protobuf writes them.
 */
#include "values_writing.h"

enum { END_GROUP = 4, START_GROUP = 3, SECONDS_TAG = 1 << 3, NANOS_TAG = 2 << 3, MICROS = 1000000 };

static inline int write_uvarint(Writer *writer, uint64_t bits) {
    if (UNLIKELY(!has_room(writer, VARLONG_BYTES))) return ROW_NEEDS_ROOM;
    writer->out = put_uvarint(writer->out, bits);
    return 0;
}

static inline const int64_t *source_of(const Writer *writer, const int64_t *row) { return writer->sources[row[PUT_SOURCE]]; }

static inline int32_t number4(const int64_t *source, int64_t at) { return ((const int32_t *)source[SOURCE_DATA])[at]; }

static inline int64_t number8(const int64_t *source, int64_t at) { return ((const int64_t *)source[SOURCE_DATA])[at]; }

/* Find the number of an enum's name. The table has a count, then size, place and number of each name, by size and bytes. */
static int find_number(const Writer *writer, const int64_t *row, const int64_t *source, int64_t at, int64_t *number) {
    const uint8_t *bytes;
    const int64_t size = span(source, at, &bytes), *names = writer->operands + row[PUT_A];
    int64_t low = 0, high = *names++;
    while (low < high) {
        const int64_t middle = (low + high) / 2, *name = names + 3 * middle;
        int order = name[0] < size ? -1 : name[0] > size;
        if (!order) order = memcmp(writer->constants + name[1], bytes, (size_t)size);
        if (!order) {
            *number = name[2];
            return 0;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return ROW_LEFT; /* perhaps a number as text */
}

/* Read a number as it is written, as 64 bits, of a row that has one. */
static inline int take_number(const Writer *writer, const int64_t *row, int64_t at, uint64_t *bits) {
    const int64_t *source = source_of(writer, row);
    int64_t value;
    switch (row[PUT_OPERATION]) {
    case PUT_BOOL:
        *bits = (uint64_t)bit(source[SOURCE_DATA], source[SOURCE_FIRST] + at);
        return 0;
    case PUT_INT32:
        *bits = (uint64_t)(int64_t)number4(source, at);
        return 0;
    case PUT_SINT32:
        *bits = zigzag(number4(source, at));
        return 0;
    case PUT_COPY4:
        *bits = (uint32_t)number4(source, at);
        return 0;
    case PUT_SINT64:
        *bits = zigzag(number8(source, at));
        return 0;
    case PUT_UINT32:
    case PUT_FIXED32:
        value = number8(source, at);
        *bits = (uint64_t)value;
        return value < 0 || value > UINT32_MAX ? ROW_LEFT : 0;
    case PUT_UINT64:
    case PUT_FIXED64:
        *bits = (uint64_t)number8(source, 2 * at);
        return number8(source, 2 * at + 1) ? ROW_LEFT : 0;
    case PUT_ENUM:
        TRY(find_number(writer, row, source, at, &value));
        *bits = (uint64_t)value;
        return 0;
    default: /* PUT_INT64, PUT_COPY8 */
        *bits = (uint64_t)number8(source, at);
        return 0;
    }
}

static inline int write_bits(Writer *writer, const int64_t *row, uint64_t bits) {
    const int64_t size = row[PUT_WIDTH]; /* 0: a varint */
    return size ? write_bytes(writer, (const uint8_t *)&bits, size) : write_uvarint(writer, bits);
}

static int write_field(Writer *writer, int64_t number, int64_t at);
static int write_single(Writer *writer, const int64_t *row, int64_t at);

/* Write a body after its length, for which one byte is kept; longer bodies are moved. */
static inline int write_sized(
    Writer *writer, const int64_t *row, int64_t at, int (*write)(Writer *writer, const int64_t *row, int64_t at)) {
    if (UNLIKELY(!has_room(writer, 1))) return ROW_NEEDS_ROOM;
    uint8_t *start = ++writer->out;
    TRY(write(writer, row, at));
    const int64_t size = writer->out - start, more = uvarint_bytes((uint64_t)size) - 1;
    if (UNLIKELY(more)) {
        if (!has_room(writer, more)) return ROW_NEEDS_ROOM;
        memmove(start + more, start, (size_t)size);
        writer->out += more;
    }
    put_uvarint(start - 1, (uint64_t)size);
    return 0;
}

static int write_fields(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *fields = writer->operands + row[PUT_A];
    uint64_t oneofs = 0;
    for (int64_t i = 0; i < row[PUT_B]; i++) {
        const int64_t *field = writer->rows + fields[i] * ROW_WORDS;
        if (!is_valid(source_of(writer, field), at)) continue;
        if (field[PUT_ONEOF] >= 0) {
            const uint64_t oneof = 1ULL << field[PUT_ONEOF];
            if (oneofs & oneof) return ROW_LEFT; /* two members */
            oneofs |= oneof;
        }
        TRY(write_field(writer, fields[i], at));
    }
    return 0;
}

static int write_time(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t micros = number8(source_of(writer, row), at);
    int64_t seconds = micros / MICROS, rest = micros % MICROS;
    if (!row[PUT_A] && rest < 0) { /* nanoseconds of a timestamp count forward, those of a duration have its sign */
        seconds--;
        rest += MICROS;
    }
    if (seconds || row[PUT_B] & 1) {
        TRY(write_uvarint(writer, SECONDS_TAG));
        TRY(write_uvarint(writer, (uint64_t)seconds));
    }
    if (rest || row[PUT_B] & 2) {
        TRY(write_uvarint(writer, NANOS_TAG));
        TRY(write_uvarint(writer, (uint64_t)(rest * 1000)));
    }
    return 0;
}

static int write_boxed(Writer *writer, const int64_t *row, int64_t at) { return write_field(writer, row[PUT_A], at); }

static int write_entry(Writer *writer, const int64_t *row, int64_t at) {
    TRY(write_field(writer, row[PUT_A], at));
    const int64_t *value = writer->rows + row[PUT_B] * ROW_WORDS;
    return is_valid(source_of(writer, value), at) ? write_field(writer, row[PUT_B], at) : 0;
}

static int write_packed(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *item = writer->rows + row[PUT_A] * ROW_WORDS;
    const int32_t *offsets = (const int32_t *)source_of(writer, row)[SOURCE_OFFSETS];
    uint64_t bits;
    for (int64_t i = offsets[at]; i < offsets[at + 1]; i++) {
        if (UNLIKELY(!is_valid(source_of(writer, item), i))) return ROW_LEFT;
        TRY(take_number(writer, item, i, &bits));
        TRY(write_bits(writer, item, bits));
    }
    return 0;
}

static int write_items(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *item = writer->rows + row[PUT_A] * ROW_WORDS;
    const int32_t *offsets = (const int32_t *)source_of(writer, row)[SOURCE_OFFSETS];
    for (int64_t i = offsets[at]; i < offsets[at + 1]; i++) {
        if (row[PUT_OPERATION] == PUT_MAP) {
            TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
            TRY(write_sized(writer, row, i, write_entry));
            continue;
        }
        if (UNLIKELY(!is_valid(source_of(writer, item), i))) return ROW_LEFT;
        TRY(write_single(writer, item, i));
    }
    return 0;
}

/* Write a tag and a value that is not null. */
static int write_single(Writer *writer, const int64_t *row, int64_t at) {
    const uint8_t *bytes;
    uint64_t bits;
    int64_t size;
    switch (row[PUT_OPERATION]) {
    case PUT_BYTES:
        size = span(source_of(writer, row), at, &bytes);
        if (row[PUT_A] && UNLIKELY(!is_utf8(bytes, bytes + size))) return ROW_LEFT;
        if (UNLIKELY(!has_room(writer, 2 * VARLONG_BYTES + size))) return ROW_NEEDS_ROOM;
        writer->out = put_uvarint(put_uvarint(writer->out, (uint64_t)row[PUT_TAG]), (uint64_t)size);
        memcpy(writer->out, bytes, (size_t)size);
        writer->out += size;
        return 0;
    case PUT_MESSAGE:
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_sized(writer, row, at, write_fields);
    case PUT_GROUP:
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        TRY(write_fields(writer, row, at));
        return write_uvarint(writer, (uint64_t)(row[PUT_TAG] + END_GROUP - START_GROUP));
    case PUT_TIME:
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_sized(writer, row, at, write_time);
    case PUT_BOXED:
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_sized(writer, row, at, write_boxed);
    default:
        TRY(take_number(writer, row, at, &bits));
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_bits(writer, row, bits);
    }
}

/* Write a field that is not null; nothing for a default that is not sent. */
static int write_field(Writer *writer, int64_t number, int64_t at) {
    const int64_t *row = writer->rows + number * ROW_WORDS, *source = source_of(writer, row);
    const int32_t *offsets = (const int32_t *)source[SOURCE_OFFSETS];
    uint64_t bits;
    switch (row[PUT_OPERATION]) {
    case PUT_LIST:
    case PUT_MAP:
        return write_items(writer, row, at);
    case PUT_PACKED:
        if (offsets[at] == offsets[at + 1]) return 0;
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_sized(writer, row, at, write_packed);
    case PUT_BYTES:
        if (row[PUT_IS_IMPLICIT] && offsets[at] == offsets[at + 1]) return 0;
        return write_single(writer, row, at);
    case PUT_MESSAGE:
    case PUT_GROUP:
    case PUT_TIME:
    case PUT_BOXED:
        return write_single(writer, row, at);
    default:
        TRY(take_number(writer, row, at, &bits));
        if (row[PUT_IS_IMPLICIT] && !bits) return 0;
        TRY(write_uvarint(writer, (uint64_t)row[PUT_TAG]));
        return write_bits(writer, row, bits);
    }
}

static int write_message(Writer *writer, int64_t root, int64_t at) {
    return write_fields(writer, writer->rows + root * ROW_WORDS, at);
}

static int64_t encode(int64_t *job) { return encode_rows(job, write_message); }

PyObject *encode_protobuf(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, WRITE_JOB_WORDS, encode);
}
