/* Protobuf messages into Arrow columns: the kernel of kwire.schemas.protobuf.
 *
 * Follows the rows of a plan (kwire.wire.protobuf_rows). Fields come in any order, and more than once. So the columns of
 * a struct are as long as the struct was before its value, until their field is read; a field that comes again replaces
 * what is there, or adds to it; columns whose field did not come are filled at the end of the message.
 *
 * A row that does not follow the format is left to plain Python, which says what is wrong with it.
 */
#include "columns.h"

enum { VARINT, I64, LEN, GROUP, END_GROUP, I32 };
enum { MOST_TAG = 5 };

/* Bytes */

static inline int read_varint(Run *run, uint64_t *value) {
    return LIKELY(take_uvarint(&run->in, VARLONG_BYTES, value)) ? 0 : ROW_LEFT;
}

static inline int read_tag(Run *run, uint32_t *tag) {
    const uint8_t *start = run->in.at;
    uint64_t bits;
    TRY(read_varint(run, &bits));
    if (UNLIKELY(bits > UINT32_MAX || bits >> 3 == 0 || (bits & 7) > I32 || run->in.at - start > MOST_TAG))
        return ROW_LEFT;
    *tag = (uint32_t)bits;
    return 0;
}

static inline int read_length(Run *run, int64_t *size) {
    uint64_t bits;
    TRY(read_varint(run, &bits));
    if (UNLIKELY(bits > (uint64_t)bytes_left(&run->in))) return ROW_LEFT;
    *size = (int64_t)bits;
    return 0;
}

/* Skip a value that is not a group. */
static inline int skip_simple(Run *run, uint32_t wire_type) {
    uint64_t bits;
    int64_t size;
    switch (wire_type) {
    case VARINT:
        return read_varint(run, &bits);
    case I64:
        return skip(&run->in, 8) ? 0 : ROW_LEFT;
    case I32:
        return skip(&run->in, 4) ? 0 : ROW_LEFT;
    case LEN:
        TRY(read_length(run, &size));
        run->in.at += size;
        return 0;
    default:
        return ROW_LEFT;
    }
}

/* Skip the fields of a group, and its end; *last: where its fields end. */
static int skip_group(Run *run, uint32_t number, const uint8_t **last) {
    uint32_t open[MAX_NESTED], tag;
    int count = 0;
    for (;;) {
        if (UNLIKELY(run->depth + count >= MAX_NESTED)) return ROW_LEFT;
        open[count++] = number;
        do {
            *last = run->in.at;
            TRY(read_tag(run, &tag));
            if ((tag & 7) == END_GROUP) {
                if (UNLIKELY(tag >> 3 != open[--count])) return ROW_LEFT;
                if (!count) return 0;
            } else if ((tag & 7) != GROUP) {
                TRY(skip_simple(run, tag & 7));
            }
        } while ((tag & 7) != GROUP);
        number = tag >> 3;
    }
}

static inline int skip_value(Run *run, uint32_t tag) {
    const uint8_t *last;
    return LIKELY((tag & 7) != GROUP) ? skip_simple(run, tag & 7) : skip_group(run, tag >> 3, &last);
}

/* Messages inside of messages */

typedef struct {
    const uint8_t *end, *next;
} Outer;

/* Make the message or group at the position all there is; leave() continues after it. */
static inline int enter(Run *run, const int64_t *field, Outer *outer) {
    outer->end = run->in.end;
    if (LIKELY(field[FIELD_WIRE_TYPE] == LEN)) {
        int64_t size;
        TRY(read_length(run, &size));
        outer->next = run->in.end = run->in.at + size;
    } else {
        const uint8_t *start = run->in.at, *last;
        TRY(skip_group(run, (uint32_t)field[FIELD_NUMBER], &last));
        outer->next = run->in.at;
        run->in.at = start;
        run->in.end = last;
    }
    if (UNLIKELY(++run->depth > MAX_NESTED)) return ROW_LEFT;
    return 0;
}

static inline void leave(Run *run, const Outer *outer) {
    run->in.at = outer->next;
    run->in.end = outer->end;
    run->depth--;
}

/* Columns */

static int append16(Run *run, int64_t *column, uint64_t value) {
    PLACE(column);
    const uint64_t words[2] = {value, 0};
    memcpy((uint8_t *)column[COLUMN_DATA] + at * 16, words, 16);
    return 0;
}

static int append_number(Run *run, int64_t *column, int32_t number) {
    uint8_t text[12], *first = text + sizeof text;
    uint32_t rest = number < 0 ? -(uint32_t)number : (uint32_t)number;
    do *--first = (uint8_t)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--first = '-';
    return append_bytes(run, column, first, text + sizeof text - first);
}

/* Append the name of an enum's number. */
static int append_name(Run *run, const int64_t *field, int64_t *column, int32_t number) {
    const int64_t *names = run->operands + field[FIELD_A];
    int64_t low = 0, high = names[0];
    names++;
    if (LIKELY(number >= 0 && number < high && names[3 * number] == number)) { /* numbers from 0 on, as most have */
        low = number;
    } else {
        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (names[3 * middle] < number)
                low = middle + 1;
            else
                high = middle;
        }
        if (low == names[-1] || names[3 * low] != number) return append_number(run, column, number);
    }
    return append_bytes(run, column, run->constants + names[3 * low + 1], names[3 * low + 2]);
}

/* Remove the value at an index, if there is one. */
static inline void remove_value(int64_t *column, int64_t at) {
    if (UNLIKELY(column[COLUMN_LENGTH] > at)) {
        column[COLUMN_LENGTH] = at;
        if (column[COLUMN_KIND] == KIND_BINARY) column[COLUMN_DATA_BYTES] = ((int32_t *)column[COLUMN_OFFSETS])[at];
    }
}

/* Whether there is a value at an index. A null is removed: it stands for a field that was absent in the first of two
 * messages that are merged. */
static inline int has_value(Run *run, int64_t *column, int64_t at) {
    if (LIKELY(column[COLUMN_LENGTH] == at)) return 0;
    const uint8_t *bits = (const uint8_t *)column[COLUMN_VALIDITY];
    if (!bits || bits[at >> 3] >> (at & 7) & 1) return 1;
    truncate_column(run, column, at);
    return 0;
}

static inline int open_struct(Run *run, int64_t *column, int64_t at) {
    if (!has_value(run, column, at) && UNLIKELY(reserve_value(column) < 0)) return no_room(run, column, at + 1, 0);
    return 0;
}

/* Begin the list of a row, if it is not begun, and return its items. */
static inline int open_list(Run *run, int64_t *column, int64_t at, int64_t **items) {
    *items = run->columns[run->operands[column[COLUMN_CHILDREN]]];
    if (column[COLUMN_LENGTH] > at) return 0;
    if (UNLIKELY(reserve_value(column) < 0)) return no_room(run, column, at + 1, 0);
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)(*items)[COLUMN_LENGTH];
    return 0;
}

static inline void close_list(int64_t *column, int64_t at, const int64_t *items) {
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)items[COLUMN_LENGTH];
}

/* Append what a column has where its field is absent. */
static int append_absent(Run *run, const int64_t *field) {
    int64_t *column = run->columns[field[FIELD_COLUMN]];
    const int64_t at = column[COLUMN_LENGTH];
    if (field[FIELD_IS_NULLABLE]) return append_null(run, column);
    switch (field[FIELD_OPERATION]) {
    case PB_MESSAGE: {
        const int64_t *fields = run->operands + field[FIELD_B];
        TRY(open_struct(run, column, at));
        for (int64_t i = 1; i <= fields[0]; i++) TRY(append_absent(run, run->rows + fields[i] * ROW_WORDS));
        return 0;
    }
    case PB_LIST:
    case PB_MAP: {
        int64_t *items;
        return open_list(run, column, at, &items);
    }
    case PB_BOXED:
        return append_absent(run, run->rows + field[FIELD_A] * ROW_WORDS);
    case PB_SKIP:
        return 0;
    case PB_BOOL:
        return append_bit(run, column, 0);
    case PB_ENUM:
        return append_name(run, field, column, 0);
    case PB_RAW:
    case PB_STRING:
    case PB_BYTES:
        return append_bytes(run, column, run->constants, 0);
    case PB_INT32:
    case PB_SINT32:
    case PB_COPY4:
        return append4(run, column, 0);
    case PB_UINT64:
    case PB_FIXED64:
        return append16(run, column, 0);
    default:
        return append8(run, column, 0);
    }
}

/* Values */

static int read_fields(Run *run, const int64_t *message, int64_t at);

static int read_message(Run *run, const int64_t *field, int64_t at) {
    Outer outer;
    TRY(enter(run, field, &outer));
    TRY(open_struct(run, run->columns[field[FIELD_COLUMN]], at));
    TRY(read_fields(run, field, at));
    leave(run, &outer);
    return 0;
}

static int read_raw(Run *run, const int64_t *field, int64_t at) {
    int64_t *column = run->columns[field[FIELD_COLUMN]];
    Outer outer;
    TRY(enter(run, field, &outer));
    const int64_t size = bytes_left(&run->in);
    if (!has_value(run, column, at)) {
        TRY(append_bytes(run, column, run->in.at, size));
    } else { /* bytes of messages that follow each other are one message */
        const int64_t used = column[COLUMN_DATA_BYTES];
        if (UNLIKELY(size > column[COLUMN_DATA_CAPACITY] - used)) return no_room(run, column, used + size, 1);
        memcpy((uint8_t *)column[COLUMN_DATA] + used, run->in.at, (size_t)size);
        column[COLUMN_DATA_BYTES] = used + size;
        ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)(used + size);
    }
    leave(run, &outer);
    return 0;
}

static int read_time(Run *run, const int64_t *field, int64_t at) {
    int64_t *column = run->columns[field[FIELD_COLUMN]];
    Outer outer;
    TRY(enter(run, field, &outer));
    if (!has_value(run, column, at)) column[COLUMN_SECONDS] = column[COLUMN_NANOS] = 0;
    column[COLUMN_LENGTH] = at;
    while (run->in.at < run->in.end) {
        uint32_t tag;
        uint64_t bits;
        TRY(read_tag(run, &tag));
        if (tag == (1 << 3 | VARINT)) {
            TRY(read_varint(run, &bits));
            column[COLUMN_SECONDS] = (int64_t)bits;
        } else if (tag == (2 << 3 | VARINT)) {
            TRY(read_varint(run, &bits));
            column[COLUMN_NANOS] = (int32_t)bits;
        } else {
            TRY(skip_value(run, tag));
        }
    }
    const int64_t nanos = column[COLUMN_NANOS];
    const int rounds_down = !field[FIELD_A] && nanos % 1000 < 0; /* a duration rounds towards zero */
    const __int128 micros = (__int128)column[COLUMN_SECONDS] * 1000000 + (nanos / 1000 - rounds_down);
    if (UNLIKELY(micros < INT64_MIN || micros > INT64_MAX)) return ROW_LEFT;
    TRY(append8(run, column, (uint64_t)micros));
    leave(run, &outer);
    return 0;
}

static int read_value(Run *run, const int64_t *field, int64_t at);

static int read_boxed(Run *run, const int64_t *field, int64_t at) {
    const int64_t *value = run->rows + field[FIELD_A] * ROW_WORDS;
    const uint32_t wanted = (uint32_t)(value[FIELD_NUMBER] << 3 | value[FIELD_WIRE_TYPE]);
    Outer outer;
    TRY(enter(run, field, &outer));
    if (!has_value(run, run->columns[field[FIELD_COLUMN]], at)) TRY(append_absent(run, value));
    while (run->in.at < run->in.end) {
        uint32_t tag;
        TRY(read_tag(run, &tag));
        TRY(tag == wanted ? read_value(run, value, at) : skip_value(run, tag));
    }
    leave(run, &outer);
    return 0;
}

static inline int read_scalar(Run *run, const int64_t *field, int64_t *column) {
    uint64_t bits;
    TRY(read_varint(run, &bits));
    switch (field[FIELD_OPERATION]) {
    case PB_BOOL:
        return append_bit(run, column, bits != 0);
    case PB_INT32:
        return append4(run, column, (uint32_t)bits);
    case PB_INT64:
        return append8(run, column, bits);
    case PB_UINT32:
        return append8(run, column, bits & UINT32_MAX);
    case PB_UINT64:
        return append16(run, column, bits);
    case PB_SINT32: {
        const uint32_t low = (uint32_t)bits;
        return append4(run, column, low >> 1 ^ -(low & 1));
    }
    case PB_SINT64:
        return append8(run, column, bits >> 1 ^ -(bits & 1));
    default: /* PB_ENUM */
        return append_name(run, field, column, (int32_t)bits);
    }
}

/* Read a value into a column at an index, in place of one that is there. */
static int read_value(Run *run, const int64_t *field, int64_t at) {
    int64_t *column = run->columns[field[FIELD_COLUMN]];
    const uint8_t *bytes;
    int64_t size;
    uint32_t four;
    uint64_t eight;
    switch (field[FIELD_OPERATION]) {
    case PB_MESSAGE:
        return read_message(run, field, at);
    case PB_RAW:
        return read_raw(run, field, at);
    case PB_TIME:
        return read_time(run, field, at);
    case PB_BOXED:
        return read_boxed(run, field, at);
    case PB_STRING:
    case PB_BYTES:
        TRY(read_length(run, &size));
        bytes = run->in.at;
        run->in.at += size;
        if (field[FIELD_OPERATION] == PB_STRING && UNLIKELY(!is_utf8(bytes, run->in.at))) return ROW_LEFT;
        remove_value(column, at);
        return append_bytes(run, column, bytes, size);
    case PB_FIXED32:
    case PB_COPY4:
        if (UNLIKELY(!(bytes = take(&run->in, 4)))) return ROW_LEFT;
        memcpy(&four, bytes, 4);
        remove_value(column, at);
        return field[FIELD_OPERATION] == PB_COPY4 ? append4(run, column, four) : append8(run, column, four);
    case PB_FIXED64:
    case PB_COPY8:
        if (UNLIKELY(!(bytes = take(&run->in, 8)))) return ROW_LEFT;
        memcpy(&eight, bytes, 8);
        remove_value(column, at);
        return field[FIELD_OPERATION] == PB_COPY8 ? append8(run, column, eight) : append16(run, column, eight);
    default:
        remove_value(column, at);
        return read_scalar(run, field, column);
    }
}

/* Fields */

static int read_map(Run *run, const int64_t *field, int64_t at) {
    const int64_t *entry = run->rows + field[FIELD_A] * ROW_WORDS;
    int64_t *column = run->columns[field[FIELD_COLUMN]], *entries;
    TRY(open_list(run, column, at, &entries));
    TRY(read_message(run, entry, entries[COLUMN_LENGTH]));
    close_list(column, at, entries);
    return 0;
}

static int read_list(Run *run, const int64_t *field, int64_t at, int is_packed) {
    const int64_t *item = run->rows + field[FIELD_A] * ROW_WORDS;
    int64_t *column = run->columns[field[FIELD_COLUMN]], *items;
    TRY(open_list(run, column, at, &items));
    if (is_packed) {
        const uint8_t *outer_end = run->in.end;
        int64_t size;
        TRY(read_length(run, &size));
        run->in.end = run->in.at + size;
        while (run->in.at < run->in.end) TRY(read_value(run, item, items[COLUMN_LENGTH]));
        run->in.end = outer_end;
    } else {
        TRY(read_value(run, item, items[COLUMN_LENGTH]));
    }
    close_list(column, at, items);
    return 0;
}

static int read_field(Run *run, const int64_t *field, int64_t at, uint32_t tag) {
    const int64_t operation = field[FIELD_OPERATION];
    const int is_packed = (tag & 7) != field[FIELD_WIRE_TYPE];
    if (UNLIKELY(is_packed) && ((tag & 7) != LEN || operation != PB_LIST || field[FIELD_WIRE_TYPE] == GROUP))
        return skip_value(run, tag);
    if (UNLIKELY(field[FIELD_OTHERS] >= 0)) {
        const int64_t *others = run->operands + field[FIELD_OTHERS];
        for (int64_t i = 1; i <= others[0]; i++) {
            int64_t *other = run->columns[others[i]];
            if (other[COLUMN_LENGTH] > at) truncate_column(run, other, at);
        }
    }
    switch (operation) {
    case PB_LIST:
        return read_list(run, field, at, is_packed);
    case PB_MAP:
        return read_map(run, field, at);
    case PB_SKIP:
        return skip_value(run, tag);
    default:
        return read_value(run, field, at);
    }
}

/* Return the row of a field, null if it is not read. */
static inline const int64_t *find_field(const Run *run, const int64_t *message, uint32_t number) {
    const int64_t *numbers = run->operands + message[FIELD_A];
    if (LIKELY(number < numbers[0])) {
        const int64_t row = numbers[1 + number];
        return row < 0 ? NULL : run->rows + row * ROW_WORDS;
    }
    const int64_t *fields = run->operands + message[FIELD_B];
    int64_t low = 1, high = fields[0] + 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const int64_t *field = run->rows + fields[middle] * ROW_WORDS;
        if (field[FIELD_NUMBER] == number) return field;
        if (field[FIELD_NUMBER] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Read fields up to the end into the columns of a struct at an index. */
static int read_fields(Run *run, const int64_t *message, int64_t at) {
    while (run->in.at < run->in.end) {
        uint32_t tag;
        TRY(read_tag(run, &tag));
        const int64_t *field = find_field(run, message, tag >> 3);
        TRY(field ? read_field(run, field, at, tag) : skip_value(run, tag));
    }
    const int64_t *fields = run->operands + message[FIELD_B];
    for (int64_t i = 1; i <= fields[0]; i++) {
        const int64_t *field = run->rows + fields[i] * ROW_WORDS, *column = run->columns[field[FIELD_COLUMN]];
        if (field[FIELD_OPERATION] == PB_SKIP) continue;
        if (column[COLUMN_LENGTH] == at)
            TRY(append_absent(run, field));
        else if (field[FIELD_OPERATION] == PB_MAP)
            TRY(check_keys(run, column, at));
    }
    return 0;
}

static int read_row(Run *run, int64_t root, const uint8_t *start, int64_t size) {
    const int64_t *message = run->rows + root * ROW_WORDS;
    int64_t *column = run->columns[message[FIELD_COLUMN]];
    const int64_t at = column[COLUMN_LENGTH];
    run->in.at = start;
    run->in.end = start + size;
    run->depth = 0;
    TRY(open_struct(run, column, at));
    return read_fields(run, message, at);
}

static int64_t decode(int64_t *job) { return decode_rows(job, read_row); }

PyObject *decode_protobuf(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, JOB_WORDS, decode);
}
