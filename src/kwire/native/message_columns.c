/* Columns of many messages, by the rows of a plan: each field in an array of its own, without an object for a value.
 *
 * A level is an array of the definition, its elements being its rows; the messages themselves are level 0. All elements
 * of one array are side by side, in the order of the arrays around them. Rows of the plan say where values go:
 *
 *     column    of the value, of the first one of FIXED and VARINTS; -1 if the field is not wanted
 *     level     of ARRAY; -1 if it is not wanted
 *
 * Elements of columns (kwire.plan.nested_columns allocates them, and fills them with what a message may omit):
 *
 *     numbers          in the machine's byte order; packed ones as int64
 *     STRING, BYTES    a Slice of bytes                        LIST, VARLIST    a Slice of numbers
 *     ARRAY            int64: elements, -1 for null            NULLABLE         a byte: whether the struct is present
 */
#include "kernels.h"
#include "plan_reading.h"
#include "utf8.h"

/* Where a value is in the source, and its bytes or numbers; -1 for null, or DEFAULT_SLICE. */
typedef struct {
    int64_t position, count;
} Slice;

/* Start and end of a message in the source; a negative start skips it. */
typedef struct {
    int64_t start, end;
} Bounds;

/* An open array or tag section. */
typedef struct {
    int64_t left;
    int64_t outer_row, step;  /* of an array: the row of the struct around it; how far an element moves the row */
    int64_t last_tag;         /* of a tag section */
    const uint8_t *outer_end; /* the end of the input around the tagged field */
} Frame;

typedef struct {
    const Row *plan;
    const uint8_t *source;
    uint8_t *const *columns; /* null: values of a run that are not wanted */
    Level *levels;
    int is_filling; /* else only counting */
    Frame frames[MAX_FRAMES + 1];
} Reading;

/* Store a number of the wire as element `at` of a column, unless that is null; its width on the wire. */
static inline int64_t store_number(uint8_t *column, int64_t at, int64_t code, const uint8_t *bytes) {
    switch (code) {
    case INT32:
    case UINT32:
        if (column) ((int32_t *)column)[at] = big32(bytes);
        return 4;
    case INT64:
    case FLOAT64:
        if (column) ((int64_t *)column)[at] = big64(bytes);
        return 8;
    case INT16:
    case UINT16:
        if (column) ((int16_t *)column)[at] = big16(bytes);
        return 2;
    case UUID:
        if (column) memcpy(column + at * UUID_BYTES, bytes, UUID_BYTES);
        return UUID_BYTES;
    default:
        if (column) column[at] = *bytes;
        return 1;
    }
}

static inline void store_slice(const Reading *reading, const Row *row, int64_t at, const uint8_t *bytes, int64_t count) {
    if (reading->is_filling && row->column >= 0)
        ((Slice *)reading->columns[row->column])[at] = (Slice){bytes - reading->source, count};
}

/* Read a message into row `at` of level 0; 0 if the plan does not accept it. */
static int read_one(Reading *reading, Cursor input, int64_t at) {
    const Row *const plan = reading->plan, *row = plan;
    uint8_t *const *const columns = reading->columns;
    Frame *top = reading->frames;
    int64_t n, value;
    for (;;) {
        switch (row->op) {
        case FIXED: {
            const uint8_t *bytes = take(&input, row->bytes);
            if (UNLIKELY(!bytes)) return 0;
            if (reading->is_filling && row->column >= 0) {
                uint64_t codes = (uint64_t)row->codes;
                for (uint8_t *const *column = columns + row->column; codes; codes >>= 4, column++)
                    bytes += store_number(*column, at, codes & 15, bytes);
            }
            row++;
            break;
        }
        case STRING:
        case BYTES:
        case LIST: {
            n = take_length(&input, row);
            if (UNLIKELY(n == -2 || (row->op == STRING && n > MAX_STRING_BYTES))) return 0;
            const int64_t size = n < 0 ? 0 : row->op == LIST ? n * row->width : n;
            const uint8_t *bytes = take(&input, size);
            if (UNLIKELY(!bytes || (row->op == STRING && !is_utf8(bytes, bytes + size)))) return 0;
            store_slice(reading, row, at, bytes, n);
            row++;
            break;
        }
        case NEXT:
            if (--top->left > 0) {
                at += top->step;
                row = plan + row->target;
            } else {
                at = top->outer_row;
                top--;
                row++;
            }
            break;
        case TAGS:
            if (UNLIKELY(!take_tag_count(&input, &n))) return 0;
            if (n == 0) {
                row = plan + row->end;
                break;
            }
            top++;
            top->left = n;
            top->last_tag = -1;
            top->outer_end = input.end;
            row++;
            break;
        case TAG_STEP: {
            if (top->left-- == 0) {
                top--;
                row = plan + row->end;
                break;
            }
            if (UNLIKELY(!take_tag(&input, top->last_tag, &top->last_tag, &n))) return 0;
            const int64_t entry = find_entry(row + 1, row->entries, top->last_tag);
            if (UNLIKELY(entry < 0)) return 0;
            if (entry == row->entries) { /* unknown */
                input.at += n;
                break;
            }
            input.end = input.at + n;
            row = plan + row[1 + entry].sub;
            break;
        }
        case TAG_END:
            if (UNLIKELY(input.at != input.end)) return 0;
            input.end = top->outer_end;
            row = plan + row->target;
            break;
        case ARRAY: {
            n = take_length(&input, row);
            if (UNLIKELY(n == -2 || (n > 0 && n * row->min_bytes > bytes_left(&input)))) return 0;
            const int is_wanted = row->level >= 0;
            if (is_wanted && reading->is_filling) ((int64_t *)columns[row->column])[at] = n;
            if (n <= 0) {
                row = plan + row->end;
                break;
            }
            top++;
            top->left = n;
            top->outer_row = at;
            top->step = is_wanted;
            if (is_wanted) {
                Level *level = &reading->levels[row->level];
                at = level->rows;
                level->rows += n;
                if (UNLIKELY(level->rows > level->room)) reading->is_filling = 0;
            }
            row++;
            break;
        }
        case NULLABLE: {
            int is_present;
            if (UNLIKELY(!take_presence(&input, row, &is_present))) return 0;
            if (reading->is_filling && row->column >= 0) columns[row->column][at] = (uint8_t)is_present;
            row = is_present ? row + 1 : plan + row->end;
            break;
        }
        case VARINTS: {
            uint64_t codes = (uint64_t)row->codes;
            for (int64_t i = 0; i < row->count; i++, codes >>= 4) {
                if (UNLIKELY(!take_packed(&input, codes & 15, &value))) return 0;
                if (!reading->is_filling || row->column < 0 || !columns[row->column + i]) continue;
                ((int64_t *)columns[row->column + i])[at] = value;
            }
            row++;
            break;
        }
        case VARLIST: {
            n = take_length(&input, row);
            if (UNLIKELY(n == -2 || n > bytes_left(&input))) return 0; /* each takes a byte at least */
            store_slice(reading, row, at, input.at, n);
            for (int64_t i = 0; i < n; i++)
                if (UNLIKELY(!take_packed(&input, row->code, &value))) return 0;
            row++;
            break;
        }
        case LENGTH: {
            const uint8_t *bytes = take(&input, 4);
            if (UNLIKELY(!bytes || big32(bytes) != bytes_left(&input))) return 0;
            row++;
            break;
        }
        case END: return input.at == input.end;
        default: row++; /* of no meaning for columns */
        }
    }
}

/* Read all messages. A message that cannot be read adds no rows, and its start becomes -1; once a level has no room for
 * its rows, or if there are no columns, rows are only counted: then the columns are of no use. Results: how many messages cannot be read;
 * whether a level had no room. */
KERNEL(read_columns) {
    const uint8_t *const source = (const uint8_t *)arguments[0];
    const int64_t source_bytes = arguments[1], count = arguments[3], level_count = arguments[11];
    Bounds *const bounds = (Bounds *)arguments[2];
    Reading reading;
    reading.plan = (const Row *)arguments[5];
    reading.source = source;
    reading.columns = (uint8_t *const *)arguments[8];
    reading.levels = (Level *)arguments[10];
    reading.is_filling = arguments[9] > 0;
    Level *const levels = reading.levels;
    int64_t unreadable = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t start = bounds[i].start, end = bounds[i].end;
        if (start < 0) continue;
        for (int64_t j = 0; j < level_count; j++) levels[j].before = levels[j].rows;
        if (start <= end && end <= source_bytes && read_one(&reading, (Cursor){source + start, source + end}, i)) continue;
        for (int64_t j = 0; j < level_count; j++) levels[j].rows = levels[j].before;
        bounds[i].start = -1;
        unreadable++;
    }
    results[0] = unreadable;
    results[1] = !reading.is_filling;
}

enum { WORD = 8, SHORT = 32 }; /* bytes that are copied at once, where nothing behind them ends */

static inline void copy_bytes(uint8_t *to, const uint8_t *from, int64_t size, int64_t room, int64_t readable) {
    const int64_t most = room < readable ? room : readable;
    if (LIKELY(size <= WORD && most >= WORD))
        memcpy(to, from, WORD);
    else if (LIKELY(size <= SHORT && most >= SHORT))
        memcpy(to, from, SHORT);
    else
        memcpy(to, from, (size_t)size);
}

/* Gather slices of the source into Arrow's offsets and data. code: 0 for bytes, else that of the numbers, which are
 * stored in the machine's byte order, packed ones as int64. constant: what DEFAULT_SLICE stands for. The caller has
 * added up the slices: the data has room for them. */
KERNEL(gather) {
    const uint8_t *const source = (const uint8_t *)arguments[0], *const source_end = source + arguments[1];
    const Slice *const slices = (const Slice *)arguments[2];
    const int64_t count = arguments[3], code = arguments[7];
    const uint8_t *const constant = (const uint8_t *)arguments[5];
    int32_t *const offsets = (int32_t *)arguments[8];
    uint8_t *const data = (uint8_t *)arguments[10];
    const int64_t room = arguments[11];
    (void)results;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        offsets[i] = (int32_t)total;
        const uint8_t *bytes = source + slices[i].position, *end = source_end;
        int64_t n = slices[i].count;
        if (n == DEFAULT_SLICE) {
            bytes = constant;
            n = arguments[6];
            end = bytes + n;
        }
        if (n <= 0) continue;
        if (code == 0) {
            copy_bytes(data + total, bytes, n, room - total, end - bytes);
        } else if (code >= PACKED16) {
            Cursor packed = {bytes, end};
            for (int64_t j = 0; j < n; j++) { /* none fails: read_columns has read them; unless the bytes have changed */
                int64_t value = 0;
                take_packed(&packed, code, &value);
                ((int64_t *)data)[total + j] = value;
            }
        } else if (code == INT32) {
            for (int64_t j = 0; j < n; j++) ((int32_t *)data)[total + j] = big32(bytes + 4 * j);
        } else {
            for (int64_t j = 0; j < n; j++) bytes += store_number(data, total + j, code, bytes);
        }
        total += n;
    }
    offsets[count] = (int32_t)total;
}
