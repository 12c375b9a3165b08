/* JSON into Arrow columns: the kernel of kwire.schemas.json_schema.
 *
 * Follows the rows of a plan (kwire.wire.json_rows). Properties come in any order; columns of those that did not come get
 * a null at the end of the object. A row that is not JSON, or not of the schema's types, is left to plain Python, which
 * says what is wrong with it; so are rare forms, which json_rows names.
 */
#include "columns.h"
#include "json_text.h"

enum { MOST_DEPTH = 200, MOST_DIGITS = 19, MOST_TEXT_KEYS = 8, MOST_EXACT_POWER = 22, MOST_FRACTION = 19 };

/* Bytes */

static inline void skip_space(Run *run) {
    while (run->in.at < run->in.end && (*run->in.at == ' ' || *run->in.at == '\n' || *run->in.at == '\r' || *run->in.at == '\t'))
        run->in.at++;
}

/* The next byte, 0 at the end. */
static inline uint8_t peek(const Run *run) { return LIKELY(run->in.at < run->in.end) ? *run->in.at : 0; }

/* Step over spaces and a byte. */
static inline int expect(Run *run, uint8_t byte) {
    if (UNLIKELY(peek(run) != byte)) {
        skip_space(run);
        if (peek(run) != byte) return ROW_LEFT;
    }
    run->in.at++;
    return 0;
}

static inline int expect_word(Run *run, const char *word, int64_t size) {
    if (bytes_left(&run->in) < size || memcmp(run->in.at, word, (size_t)size)) return ROW_LEFT;
    run->in.at += size;
    return 0;
}

/* After an item: *more: whether another one follows. */
static inline int next_item(Run *run, uint8_t close, int *more) {
    skip_space(run);
    const uint8_t byte = peek(run);
    if (UNLIKELY(byte != ',' && byte != close)) return ROW_LEFT;
    run->in.at++;
    *more = byte == ',';
    return 0;
}

/* After the start of an array or object: *more: whether it has items. */
static inline int first_item(Run *run, uint8_t close, int *more) {
    skip_space(run);
    *more = peek(run) != close;
    run->in.at += !*more;
    return 0;
}

/* Strings */

typedef struct {
    const uint8_t *start, *end; /* between the quotes */
    int has_escapes;
} String;

static inline int read_string(Run *run, String *found) {
    TRY(expect(run, '"'));
    const uint8_t *pos = run->in.at;
    uint64_t bits = 0, word;
    found->start = pos;
    found->has_escapes = 0;
    for (;;) {
        while (run->in.end - pos >= 8) {
            memcpy(&word, pos, 8);
            if (has_stop(word)) break;
            bits |= word;
            pos += 8;
        }
        while (pos < run->in.end && *pos != '"' && *pos != '\\' && *pos >= 0x20) bits |= *pos++;
        if (UNLIKELY(run->in.end - pos < 2 && (pos == run->in.end || *pos == '\\'))) return ROW_LEFT;
        if (LIKELY(*pos == '"')) break;
        if (UNLIKELY(*pos < 0x20)) return ROW_LEFT;
        found->has_escapes = 1;
        bits |= pos[1];
        pos += 2;
    }
    found->end = pos;
    run->in.at = pos + 1;
    if (UNLIKELY(bits & HIGH_BITS) && !is_utf8(found->start, pos)) return ROW_LEFT;
    return 0;
}

static inline int read_hex(const uint8_t **pos, const uint8_t *end, uint32_t *value) {
    if (end - *pos < 4) return ROW_LEFT;
    *value = 0;
    for (int i = 0; i < 4; i++) {
        const uint8_t byte = *(*pos)++, letter = byte | 0x20;
        if (byte >= '0' && byte <= '9')
            *value = *value << 4 | (uint32_t)(byte - '0');
        else if (letter >= 'a' && letter <= 'f')
            *value = *value << 4 | (uint32_t)(letter - 'a' + 10);
        else
            return ROW_LEFT;
    }
    return 0;
}

/* Write a string without its escape sequences, which does not make it longer; returns its end, or null for a fault. */
static uint8_t *unescape(const String *string, uint8_t *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const uint8_t *pos = string->start;
    while (pos < string->end) {
        if (LIKELY(*pos != '\\')) {
            *out++ = *pos++;
            continue;
        }
        pos += 2;
        if (pos[-1] != 'u') {
            const char *found = memchr(from, pos[-1], sizeof from - 1);
            if (!found) return NULL;
            *out++ = (uint8_t)to[found - from];
            continue;
        }
        uint32_t code, low;
        if (read_hex(&pos, string->end, &code)) return NULL;
        if (code >= 0xD800 && code < 0xE000) { /* the first of a pair */
            if (code >= 0xDC00 || string->end - pos < 6 || *pos++ != '\\' || *pos++ != 'u') return NULL;
            if (read_hex(&pos, string->end, &low) || low < 0xDC00 || low >= 0xE000) return NULL;
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        if (code < 0x80) {
            *out++ = (uint8_t)code;
            continue;
        }
        const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        *out++ = (uint8_t)((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | code >> 6 * more);
        for (int i = more - 1; i >= 0; i--) *out++ = (uint8_t)(0x80 | (code >> 6 * i & 0x3F));
    }
    return out;
}

static inline int append_string(Run *run, int64_t *column, const String *string) {
    const int64_t size = string->end - string->start;
    if (LIKELY(!string->has_escapes)) return append_bytes(run, column, string->start, size);
    const int64_t used = column[COLUMN_DATA_BYTES];
    if (size > column[COLUMN_DATA_CAPACITY] - used) return no_room(run, column, used + size, 1);
    uint8_t *data = (uint8_t *)column[COLUMN_DATA], *end = unescape(string, data + used);
    if (!end) return ROW_LEFT;
    PLACE(column);
    column[COLUMN_DATA_BYTES] = end - data;
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)(end - data);
    return 0;
}

/* Numbers */

typedef struct {
    uint64_t digits; /* as an integer, times 10^power */
    int power, is_negative, is_integer;
} Number;

static inline int is_digit(const Run *run) { return run->in.at < run->in.end && *run->in.at >= '0' && *run->in.at <= '9'; }

static inline int read_digits(Run *run, Number *found, int *count) {
    if (UNLIKELY(!is_digit(run))) return ROW_LEFT;
    do {
        found->digits = found->digits * 10 + (uint64_t)(*run->in.at++ - '0');
        *count += *count || found->digits;
    } while (is_digit(run));
    return *count > MOST_DIGITS ? ROW_LEFT : 0;
}

static int read_power(Run *run, Number *found) {
    const int is_negative = peek(run) == '-';
    run->in.at += is_negative || peek(run) == '+';
    if (!is_digit(run)) return ROW_LEFT;
    int power = 0;
    for (; is_digit(run); run->in.at++) {
        power = power * 10 + (*run->in.at - '0');
        if (power > 99) return ROW_LEFT;
    }
    found->power += is_negative ? -power : power;
    return 0;
}

static inline int read_decimal(Run *run, Number *found) {
    int count = 0;
    *found = (Number){.is_negative = peek(run) == '-', .is_integer = 1};
    run->in.at += found->is_negative;
    const uint8_t *start = run->in.at;
    TRY(read_digits(run, found, &count));
    if (UNLIKELY(*start == '0' && run->in.at - start > 1)) return ROW_LEFT; /* 01 */
    if (peek(run) == '.') {
        found->is_integer = 0;
        start = ++run->in.at;
        TRY(read_digits(run, found, &count));
        if (UNLIKELY(run->in.at - start > INT16_MAX)) return ROW_LEFT;
        found->power = -(int)(run->in.at - start);
    }
    if (UNLIKELY((peek(run) | 0x20) == 'e')) {
        found->is_integer = 0;
        run->in.at++;
        return read_power(run, found);
    }
    /* Python has no integer -0, and a float of it is 0.0. */
    return UNLIKELY(found->is_integer && found->is_negative && !found->digits) ? ROW_LEFT : 0;
}

/* digits / 10^power, rounded to the nearest double, or to the even one of two. Bit by bit: macOS has no division of
 * 128 bits that is promised. */
static double divided(uint64_t digits, int power) {
    uint64_t divisor = 1;
    for (int i = 0; i < power; i++) divisor *= 10;
    uint64_t quotient = digits / divisor, rest = digits % divisor;
    int exponent = 0;
    for (; !(quotient >> 53); exponent--) { /* one bit more than a double has */
        const uint64_t carry = rest >> 63;
        rest <<= 1;
        const int is_one = carry || rest >= divisor;
        if (is_one) rest -= divisor;
        quotient = quotient << 1 | (uint64_t)is_one;
    }
    int is_exact = !rest;
    for (; quotient >> 54; exponent++) {
        is_exact &= !(quotient & 1);
        quotient >>= 1;
    }
    if ((quotient & 1) && (!is_exact || (quotient & 2))) quotient += 2;
    const uint64_t scale = (uint64_t)(1023 + exponent + 1) << 52; /* a power of two */
    double factor;
    memcpy(&factor, &scale, 8);
    return (double)(quotient >> 1) * factor;
}

static int to_double(const Number *number, double *value) {
    static const double powers[MOST_EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                        1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const int power = number->power;
    double found;
    if (power == 0 || !number->digits)
        found = (double)number->digits;
    else if (number->digits <= 1ULL << 53 && power >= -MOST_EXACT_POWER && power <= MOST_EXACT_POWER)
        found = power < 0 ? (double)number->digits / powers[-power] : (double)number->digits * powers[power];
    else if (power < 0 && power >= -MOST_FRACTION)
        found = divided(number->digits, -power);
    else
        return ROW_LEFT;
    *value = number->is_negative ? -found : found;
    return 0;
}

static inline int read_integer(Run *run, int64_t *column) {
    Number number;
    TRY(read_decimal(run, &number));
    if (UNLIKELY(!number.is_integer || number.digits > (uint64_t)INT64_MAX + (uint64_t)number.is_negative))
        return ROW_LEFT;
    return append8(run, column, number.is_negative ? -number.digits : number.digits);
}

static inline int read_real(Run *run, int64_t *column) {
    Number number;
    double value;
    uint64_t bits;
    TRY(read_decimal(run, &number));
    TRY(to_double(&number, &value));
    memcpy(&bits, &value, 8);
    return append8(run, column, bits);
}

/* Values that are skipped, or copied as text without spaces */

static inline void copy_text(uint8_t **out, const uint8_t *start, const uint8_t *end) {
    if (!out) return;
    memcpy(*out, start, (size_t)(end - start));
    *out += end - start;
}

/* Step over a string. As text, one with escape sequences is left: there are several ways to write them. */
static int scan_string(Run *run, uint8_t **out, String *found) {
    TRY(read_string(run, found));
    copy_text(out, found->start - 1, found->end + 1);
    if (LIKELY(!found->has_escapes)) return 0;
    if (out) return ROW_LEFT;
    const int64_t size = found->end - found->start;
    if (size > 4 * run->job[JOB_SCRATCH_CAPACITY]) {
        run->job[JOB_ROOM_COLUMN] = NO_COLUMN;
        run->job[JOB_ROOM_NEEDED] = size / 4 + 1;
        return ROW_NEEDS_ROOM;
    }
    return unescape(found, (uint8_t *)run->job[JOB_SCRATCH]) ? 0 : ROW_LEFT;
}

static int scan_number(Run *run, uint8_t **out) {
    const uint8_t *start = run->in.at;
    Number number;
    TRY(read_decimal(run, &number));
    if (out && (!number.is_integer || number.digits > INT64_MAX)) return ROW_LEFT;
    copy_text(out, start, run->in.at);
    return 0;
}

/* A number as it is written, which no double holds: of a decimal. */
static int read_digits_as_text(Run *run, int64_t *column) {
    String written = {.start = run->in.at};
    Number number;
    TRY(read_decimal(run, &number));
    written.end = run->in.at;
    return append_string(run, column, &written);
}

static int scan_value(Run *run, uint8_t **out, int depth);

static int scan_object(Run *run, uint8_t **out, int depth) {
    String names[MOST_TEXT_KEYS], skipped;
    int more;
    TRY(first_item(run, '}', &more));
    for (int count = 0; more; count++) {
        String *name = out ? &names[count] : &skipped;
        if (out && count == MOST_TEXT_KEYS) return ROW_LEFT;
        TRY(scan_string(run, out, name));
        for (int i = 0; out && i < count; i++) /* the last one of a name counts */
            if (names[i].end - names[i].start == name->end - name->start &&
                !memcmp(names[i].start, name->start, (size_t)(name->end - name->start)))
                return ROW_LEFT;
        TRY(expect(run, ':'));
        copy_text(out, run->in.at - 1, run->in.at);
        TRY(scan_value(run, out, depth));
        TRY(next_item(run, '}', &more));
        copy_text(out, run->in.at - 1, run->in.at - !more);
    }
    return 0;
}

static int scan_array(Run *run, uint8_t **out, int depth) {
    int more;
    TRY(first_item(run, ']', &more));
    while (more) {
        TRY(scan_value(run, out, depth));
        TRY(next_item(run, ']', &more));
        copy_text(out, run->in.at - 1, run->in.at - !more);
    }
    return 0;
}

static int scan_value(Run *run, uint8_t **out, int depth) {
    String string;
    skip_space(run);
    const uint8_t *start = run->in.at;
    switch (peek(run)) {
    case '"':
        return scan_string(run, out, &string);
    case '{':
    case '[':
        if (UNLIKELY(depth == MOST_DEPTH)) return ROW_LEFT;
        run->in.at++;
        copy_text(out, start, run->in.at);
        TRY((*start == '{' ? scan_object : scan_array)(run, out, depth + 1));
        copy_text(out, run->in.at - 1, run->in.at);
        return 0;
    case 't':
        TRY(expect_word(run, "true", 4));
        break;
    case 'f':
        TRY(expect_word(run, "false", 5));
        break;
    case 'n':
        TRY(expect_word(run, "null", 4));
        break;
    default:
        return scan_number(run, out);
    }
    copy_text(out, start, run->in.at);
    return 0;
}

static int read_text(Run *run, int64_t *column) {
    const int64_t used = column[COLUMN_DATA_BYTES], most = bytes_left(&run->in);
    if (UNLIKELY(most > column[COLUMN_DATA_CAPACITY] - used)) return no_room(run, column, used + most, 1);
    uint8_t *data = (uint8_t *)column[COLUMN_DATA], *end = data + used;
    TRY(scan_value(run, &end, 0));
    PLACE(column);
    column[COLUMN_DATA_BYTES] = end - data;
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)(end - data);
    return 0;
}

/* Values */

static int read_value(Run *run, const int64_t *row);

/* Return the row of a property, null if it is not read. */
static inline const int64_t *find_member(const Run *run, const int64_t *object, const String *name) {
    const int64_t *members = run->operands + object[VALUE_A], size = name->end - name->start;
    int64_t low = 0, high = members[0];
    members++;
    while (low < high) {
        const int64_t middle = (low + high) / 2, *member = members + 3 * middle;
        int order = member[1] < size ? -1 : member[1] > size;
        if (!order) order = memcmp(run->constants + member[0], name->start, (size_t)size);
        if (!order) return run->rows + member[2] * ROW_WORDS;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int read_object(Run *run, const int64_t *object) {
    int64_t *column = run->columns[object[VALUE_COLUMN]];
    const int64_t *members = run->operands + object[VALUE_A], at = column[COLUMN_LENGTH];
    int more;
    TRY(expect(run, '{'));
    if (UNLIKELY(reserve_value(column) < 0)) return no_room(run, column, at + 1, 0);
    TRY(first_item(run, '}', &more));
    while (more) {
        String name;
        TRY(read_string(run, &name));
        if (UNLIKELY(name.has_escapes)) return ROW_LEFT;
        TRY(expect(run, ':'));
        const int64_t *member = find_member(run, object, &name);
        if (!member) {
            TRY(scan_value(run, NULL, 0));
        } else {
            if (UNLIKELY(run->columns[member[VALUE_COLUMN]][COLUMN_LENGTH] > at)) return ROW_LEFT; /* there twice */
            TRY(read_value(run, member));
        }
        TRY(next_item(run, '}', &more));
    }
    for (int64_t i = 0; i < members[0]; i++) {
        int64_t *child = run->columns[run->rows[members[3 * i + 3] * ROW_WORDS + VALUE_COLUMN]];
        if (child[COLUMN_LENGTH] == at) TRY(append_null(run, child));
    }
    return 0;
}

static int read_array(Run *run, const int64_t *array) {
    int64_t *column = run->columns[array[VALUE_COLUMN]];
    const int64_t *item = run->rows + array[VALUE_A] * ROW_WORDS, *items = run->columns[item[VALUE_COLUMN]];
    int more;
    TRY(expect(run, '['));
    PLACE(column);
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)items[COLUMN_LENGTH];
    TRY(first_item(run, ']', &more));
    while (more) {
        TRY(read_value(run, item));
        TRY(next_item(run, ']', &more));
    }
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)items[COLUMN_LENGTH];
    return 0;
}

static int read_map(Run *run, const int64_t *map) {
    int64_t *column = run->columns[map[VALUE_COLUMN]];
    int64_t *entries = run->columns[run->operands[column[COLUMN_CHILDREN]]];
    int64_t *names = run->columns[run->operands[entries[COLUMN_CHILDREN]]];
    int more;
    TRY(expect(run, '{'));
    PLACE(column);
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)entries[COLUMN_LENGTH];
    TRY(first_item(run, '}', &more));
    while (more) {
        String name;
        if (UNLIKELY(reserve_value(entries) < 0)) return no_room(run, entries, entries[COLUMN_LENGTH] + 1, 0);
        TRY(read_string(run, &name));
        TRY(append_string(run, names, &name));
        TRY(expect(run, ':'));
        TRY(read_value(run, run->rows + map[VALUE_A] * ROW_WORDS));
        TRY(next_item(run, '}', &more));
    }
    ((int32_t *)column[COLUMN_OFFSETS])[at + 1] = (int32_t)entries[COLUMN_LENGTH];
    return check_keys(run, column, at);
}

static int read_value(Run *run, const int64_t *row) {
    int64_t *column = run->columns[row[VALUE_COLUMN]];
    String string;
    skip_space(run);
    if (UNLIKELY(peek(run) == 'n')) {
        TRY(expect_word(run, "null", 4));
        return append_null(run, column);
    }
    switch (row[VALUE_OPERATION]) {
    case JSON_OBJECT:
        return read_object(run, row);
    case JSON_ARRAY:
        return read_array(run, row);
    case JSON_MAP:
        return read_map(run, row);
    case JSON_INTEGER:
        return read_integer(run, column);
    case JSON_NUMBER:
        return read_real(run, column);
    case JSON_BOOLEAN: {
        const int is_true = peek(run) == 't';
        TRY(is_true ? expect_word(run, "true", 4) : expect_word(run, "false", 5));
        return append_bit(run, column, is_true);
    }
    case JSON_DECIMAL:
        if (LIKELY(peek(run) != '"')) return read_digits_as_text(run, column);
        TRY(read_string(run, &string));
        return append_string(run, column, &string);
    case JSON_STRING_OR_TEXT:
        if (UNLIKELY(peek(run) != '"')) return read_text(run, column);
        /* fall through */
    case JSON_STRING:
        TRY(read_string(run, &string));
        return append_string(run, column, &string);
    default: /* JSON_TEXT */
        return read_text(run, column);
    }
}

static int read_row(Run *run, int64_t root, const uint8_t *start, int64_t size) {
    run->in.at = start;
    run->in.end = start + size;
    TRY(read_value(run, run->rows + root * ROW_WORDS));
    skip_space(run);
    return run->in.at == run->in.end ? 0 : ROW_LEFT;
}

static int64_t decode(int64_t *job) { return decode_rows(job, read_row); }

PyObject *decode_json(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, JOB_WORDS, decode);
}
