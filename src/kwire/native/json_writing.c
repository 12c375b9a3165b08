/* Arrow columns into JSON: the kernel of kwire.schemas.json_schema.Encoder.
 *
 * Follows the rows of a plan (kwire.wire.json_rows). A value that the schema does not allow is left to plain Python.
 */
#include "json_text.h"
#include "powers_of_ten.h"
#include "values_writing.h"

enum { MOST_CHARACTERS = 32, MOST_KEYS = 64 }; /* of a number; of a map, whose keys are compared with each other */

static inline int put_byte(Writer *writer, uint8_t byte) {
    if (UNLIKELY(!has_room(writer, 1))) return ROW_NEEDS_ROOM;
    *writer->out++ = byte;
    return 0;
}

/* Strings */

static int write_escaped(Writer *writer, uint8_t byte) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt", digits[] = "0123456789abcdef";
    const char *found = memchr(from, byte, sizeof from - 1);
    if (found) return write_bytes(writer, (const uint8_t[]){'\\', (uint8_t)to[found - from]}, 2);
    return write_bytes(writer, (const uint8_t[]){'\\', 'u', '0', '0', (uint8_t)digits[byte >> 4], (uint8_t)digits[byte & 15]}, 6);
}

static int write_text(Writer *writer, const uint8_t *pos, int64_t size) {
    const uint8_t *start = pos, *end = pos + size;
    uint64_t bits = 0, word;
    TRY(put_byte(writer, '"'));
    for (;;) {
        const uint8_t *clean = pos;
        for (; end - pos >= 8; pos += 8) {
            memcpy(&word, pos, 8);
            if (has_stop(word)) break;
            bits |= word;
        }
        while (pos < end && *pos != '"' && *pos != '\\' && *pos >= 0x20) bits |= *pos++;
        TRY(write_bytes(writer, clean, pos - clean));
        if (pos == end) break;
        TRY(write_escaped(writer, *pos++));
    }
    if (UNLIKELY(bits & HIGH_BITS) && !is_utf8(start, end)) return ROW_LEFT;
    return put_byte(writer, '"');
}

static int64_t count_characters(const uint8_t *bytes, int64_t size) {
    int64_t count = 0;
    for (int64_t i = 0; i < size; i++) count += (bytes[i] & 0xC0) != 0x80;
    return count;
}

static int is_one_of(const Writer *writer, const int64_t *row, const uint8_t *bytes, int64_t size) {
    const int64_t *values = writer->operands + row[TEXT_A];
    for (int64_t i = 0; i < row[TEXT_B]; i++, values += 2)
        if (values[1] == size && !memcmp(writer->constants + values[0], bytes, (size_t)size)) return 1;
    return 0;
}

static int write_string(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const uint8_t *bytes;
    const int64_t size = span(source, at, &bytes);
    if (row[TEXT_LEAST] > 0 || row[TEXT_GREATEST] < size) { /* not more characters than bytes */
        const int64_t count = count_characters(bytes, size);
        if (count < row[TEXT_LEAST] || count > row[TEXT_GREATEST]) return ROW_LEFT;
    }
    if (row[TEXT_A] >= 0 && !is_one_of(writer, row, bytes, size)) return ROW_LEFT;
    return write_text(writer, bytes, size);
}

/* Numbers */

static inline uint8_t *put_digits(uint8_t *at, uint64_t value) {
    uint8_t digits[20];
    int count = 0;
    do digits[count++] = (uint8_t)('0' + value % 10);
    while (value /= 10);
    while (count) *at++ = digits[--count];
    return at;
}

static int write_integer(Writer *writer, const int64_t *row, int64_t value) {
    if (UNLIKELY(value < row[TEXT_LEAST] || value > row[TEXT_GREATEST])) return ROW_LEFT;
    if (UNLIKELY(!has_room(writer, MOST_CHARACTERS))) return ROW_NEEDS_ROOM;
    if (value < 0) *writer->out++ = '-';
    writer->out = put_digits(writer->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
    return 0;
}

/* The shortest decimal number that is read as a double, the nearest of several: R. Giulietti, The Schubfach way to render
 * doubles. */

typedef struct {
    uint64_t digits;
    int power;
} Decimal;

/* The upper 64 bits of a product with a power of ten; the lowest one is set if any below are. */
static inline uint64_t times_power(const uint64_t power[2], uint64_t factor) {
    const unsigned __int128 low = (unsigned __int128)power[1] * factor, high = (unsigned __int128)power[0] * factor;
    const unsigned __int128 sum = high + (uint64_t)(low >> 64);
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

static Decimal shortest(uint64_t fraction, int exponent) {
    const int is_normal = exponent != 0;
    const uint64_t bits = is_normal ? fraction | 1ULL << 52 : fraction;
    const int binary = (is_normal ? exponent : 1) - 1075;
    if (binary <= 0 && binary > -53 && !(bits & ((1ULL << -binary) - 1))) return (Decimal){bits >> -binary, 0};
    const int is_edge = !fraction && exponent > 1; /* the number below is half as far */
    const int power = (binary * 1262611 - (is_edge ? 524031 : 0)) >> 22; /* log10 */
    const int shift = binary + ((-power * 1741647) >> 19) + 1;           /* log2 of the power */
    const uint64_t *scale = POWERS_OF_TEN[-power - LEAST_POWER], is_odd = bits & 1;
    const uint64_t lower = times_power(scale, (4 * bits - 2 + (uint64_t)is_edge) << shift) + is_odd;
    const uint64_t value = times_power(scale, (4 * bits) << shift);
    const uint64_t upper = times_power(scale, (4 * bits + 2) << shift) - is_odd;
    const uint64_t whole = value / 4, tens = whole / 10;
    if (whole >= 10) {
        const int down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up) return (Decimal){tens + (uint64_t)up, power + 1};
    }
    const int down = lower <= 4 * whole, up = 4 * whole + 4 <= upper;
    if (down != up) return (Decimal){whole + (uint64_t)up, power};
    const uint64_t middle = 4 * whole + 2;
    return (Decimal){whole + (uint64_t)(value > middle || (value == middle && (whole & 1))), power};
}

/* Write a number as msgspec does: 0.00001, 1e-6, 1000000000000000.0, 1e16. */
static int write_double(Writer *writer, const int64_t *row, int64_t bits) {
    double value, least, greatest;
    memcpy(&value, &bits, 8);
    memcpy(&least, &row[TEXT_LEAST], 8);
    memcpy(&greatest, &row[TEXT_GREATEST], 8);
    if (UNLIKELY(!(value >= least && value <= greatest))) return ROW_LEFT; /* also NaN */
    if (UNLIKELY(!has_room(writer, MOST_CHARACTERS))) return ROW_NEEDS_ROOM;
    uint8_t digits[20], *out = writer->out;
    if (bits < 0) *out++ = '-';
    Decimal number = {0, 0};
    if (value != 0) number = shortest((uint64_t)bits & ((1ULL << 52) - 1), (int)((uint64_t)bits >> 52 & 0x7FF));
    while (number.digits && number.digits % 10 == 0) {
        number.digits /= 10;
        number.power++;
    }
    const int64_t count = put_digits(digits, number.digits) - digits, point = count + number.power;
    if (point > 0 && point <= 16) {
        for (int64_t i = 0; i < point || i < count; i++) {
            if (i == point) *out++ = '.';
            *out++ = i < count ? digits[i] : '0';
        }
        if (point >= count) {
            *out++ = '.';
            *out++ = '0';
        }
    } else if (point > -5 && point <= 0) {
        *out++ = '0';
        *out++ = '.';
        for (int64_t i = point; i < 0; i++) *out++ = '0';
        memcpy(out, digits, (size_t)count);
        out += count;
    } else {
        *out++ = digits[0];
        if (count > 1) {
            *out++ = '.';
            memcpy(out, digits + 1, (size_t)count - 1);
            out += count - 1;
        }
        *out++ = 'e';
        if (point < 1) *out++ = '-';
        out = put_digits(out, (uint64_t)(point < 1 ? 1 - point : point - 1));
    }
    writer->out = out;
    return 0;
}

/* Values */

static int write_value(Writer *writer, int64_t number, int64_t at);

/* Write a value of an array or a map, which may be null only if its schema says so. */
static inline int write_item(Writer *writer, int64_t number, int64_t at) {
    const int64_t *row = writer->rows + number * ROW_WORDS;
    if (LIKELY(is_valid(writer->sources[row[TEXT_SOURCE]], at))) return write_value(writer, number, at);
    return row[TEXT_TAKES_NULL] == 1 ? write_bytes(writer, (const uint8_t *)"null", 4) : ROW_LEFT;
}

static int write_array(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const int32_t *offsets = (const int32_t *)source[SOURCE_OFFSETS];
    const int64_t first = offsets[at], end = offsets[at + 1];
    if (end - first < row[TEXT_LEAST] || end - first > row[TEXT_GREATEST]) return ROW_LEFT;
    TRY(put_byte(writer, '['));
    for (int64_t i = first; i < end; i++) {
        if (i > first) TRY(put_byte(writer, ','));
        TRY(write_item(writer, row[TEXT_A], i));
    }
    return put_byte(writer, ']');
}

static int write_map(Writer *writer, const int64_t *row, const int64_t *source, int64_t at) {
    const int32_t *offsets = (const int32_t *)source[SOURCE_OFFSETS];
    const int64_t first = offsets[at], end = offsets[at + 1], *names = writer->sources[row[TEXT_B]];
    const uint8_t *name, *other;
    if (end - first > MOST_KEYS) return ROW_LEFT;
    TRY(put_byte(writer, '{'));
    for (int64_t i = first; i < end; i++) {
        const int64_t size = span(names, i, &name);
        for (int64_t j = first; j < i; j++) /* the last value of a name counts */
            if (span(names, j, &other) == size && !memcmp(name, other, (size_t)size)) return ROW_LEFT;
        if (i > first) TRY(put_byte(writer, ','));
        TRY(write_text(writer, name, size));
        TRY(put_byte(writer, ':'));
        TRY(write_item(writer, row[TEXT_A], i));
    }
    return put_byte(writer, '}');
}

static int write_object(Writer *writer, const int64_t *row, int64_t at) {
    const int64_t *member = writer->operands + row[TEXT_A];
    uint8_t before = '{';
    for (int64_t i = 0; i < row[TEXT_B]; i++, member += 4) { /* place and size of the name, row, whether it is required */
        const int64_t *value = writer->rows + member[2] * ROW_WORDS;
        const int is_present = is_valid(writer->sources[value[TEXT_SOURCE]], at);
        if (!is_present && value[TEXT_TAKES_NULL] != 1) {
            if (member[3] || value[TEXT_TAKES_NULL]) return ROW_LEFT;
            continue;
        }
        if (UNLIKELY(!has_room(writer, member[1] + 5))) return ROW_NEEDS_ROOM;
        *writer->out++ = before;
        memcpy(writer->out, writer->constants + member[0], (size_t)member[1]);
        writer->out += member[1];
        before = ',';
        TRY(is_present ? write_value(writer, member[2], at) : write_bytes(writer, (const uint8_t *)"null", 4));
    }
    if (before == '{') TRY(put_byte(writer, '{'));
    return put_byte(writer, '}');
}

/* Write a value that is not null. */
static int write_value(Writer *writer, int64_t number, int64_t at) {
    const int64_t *row = writer->rows + number * ROW_WORDS, *source = writer->sources[row[TEXT_SOURCE]];
    switch (row[TEXT_OPERATION]) {
    case TEXT_OBJECT:
        return write_object(writer, row, at);
    case TEXT_ARRAY:
        return write_array(writer, row, source, at);
    case TEXT_MAP:
        return write_map(writer, row, source, at);
    case TEXT_INTEGER:
        return write_integer(writer, row, ((const int64_t *)source[SOURCE_DATA])[at]);
    case TEXT_NUMBER:
        return write_double(writer, row, ((const int64_t *)source[SOURCE_DATA])[at]);
    case TEXT_BOOLEAN: {
        const int is_true = bit(source[SOURCE_DATA], source[SOURCE_FIRST] + at);
        return write_bytes(writer, (const uint8_t *)(is_true ? "true" : "false"), is_true ? 4 : 5);
    }
    case TEXT_STRING:
        return write_string(writer, row, source, at);
    default: /* TEXT_LEFT */
        return ROW_LEFT;
    }
}

static int64_t encode(int64_t *job) { return encode_rows(job, write_value); }

PyObject *encode_json(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return run_job(objects, count, WRITE_JOB_WORDS, encode);
}
