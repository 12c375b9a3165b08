/* Messages: from objects to bytes, by the rows of a plan (kwire.plan.rows).
 *
 * Values are read from the slots of the objects, and their types and ranges are checked here: the objects are anybody's.
 * No code of Python runs meanwhile, not even an __index__ or a finalizer, so references are borrowed and nothing moves.
 * An object that this file does not know, such as a set for an array, is left to the walker (kwire.plan.writing), which
 * writes it, or raises the error that says what is wrong.
 *
 * The output is collected in a buffer. Long bytes stay where they are until its size is known: they are copied once,
 * into the result.
 */
#include "messages.h"

typedef enum { ROOT, PAIR, ARRAY_OF, STRUCT_OF } Kind;

/* Lists and tuples, and objects of subclasses, which are what they contain. */
typedef struct {
    PyObject *object;
    int64_t count;
    int is_tuple;
} Sequence;

typedef struct {
    Kind kind;
    int is_marked, is_flexible;
    PyObject *object; /* of ROOT: the message */
    Position at;       /* in a struct */
    Sequence sequence; /* of an array or pair */
    int64_t index;     /* of its next element */
    /* of a tag section */
    Sequence unknown;
    int64_t next_entry, next_unknown;
    int64_t size_at, outside_before; /* where the size of the open field goes; Writer.outside at that time */
} Frame;

/* Bytes that belong into the output at a position of the buffer, and are not in it. */
typedef struct {
    int64_t position, size;
    const char *bytes;
} Piece;

enum { MAX_LENGTH = 0x7FFFFFFF }; /* of the protocol: int32 */
enum { FIXED_ROW_BYTES = MAX_CODES * UUID_BYTES };
#ifdef __SANITIZE_ADDRESS__ /* small, so that fuzzers meet their limits */
enum { BUFFER_BYTES = 16, LONG_BYTES = 8, MAX_PIECES = 4 };
#else
enum { BUFFER_BYTES = 1 << 16, LONG_BYTES = 4096, MAX_PIECES = 256 };
#endif

static uint8_t first_buffer[BUFFER_BYTES]; /* the GIL is held; most messages fit, and are copied from here */

typedef struct {
    const Job *job;
    const Row *row;
    uint8_t *buffer;
    int64_t size, capacity;
    int64_t outside; /* bytes of all pieces */
    int64_t piece_count;
    int marked;
    Frame *top;
    Piece pieces[MAX_PIECES];
    Frame frames[MAX_FRAMES];
} Writer;

/* What a step returns. REJECTED: left to the walker. FAILED: with an exception. */
typedef enum { DONE, REJECTED, FAILED } Outcome;

typedef struct {
    const char *bytes;
    int64_t size;
} Octets;

/* Output */

/* Make room for n bytes. */
static Outcome grow(Writer *w, int64_t n) {
    const int64_t capacity = 2 * (w->size + n);
    const int is_first = w->buffer == first_buffer;
    uint8_t *larger = is_first ? PyMem_Malloc(capacity) : PyMem_Realloc(w->buffer, capacity);
    if (!larger) {
        PyErr_NoMemory();
        return FAILED;
    }
    if (is_first) memcpy(larger, first_buffer, w->size);
    w->buffer = larger;
    w->capacity = capacity;
    return DONE;
}

static inline Outcome reserve(Writer *w, int64_t n) { return n <= w->capacity - w->size ? DONE : grow(w, n); }

/* The following functions write into room that is reserved. */

static inline void put_byte(Writer *w, int value) { w->buffer[w->size++] = (uint8_t)value; }

static inline void put16(Writer *w, int64_t value) {
    put_big16(w->buffer + w->size, (int16_t)value);
    w->size += 2;
}

static inline void put32(Writer *w, int64_t value) {
    put_big32(w->buffer + w->size, (int32_t)value);
    w->size += 4;
}

static inline void put64(Writer *w, uint64_t value) {
    put_big64(w->buffer + w->size, (int64_t)value);
    w->size += 8;
}

static inline void put_number(Writer *w, uint64_t value) { w->size = put_uvarint(w->buffer + w->size, value) - w->buffer; }

/* Write a length or count, -1 for null. */
static inline void put_length(Writer *w, const Row *row, int64_t n) {
    if (row->flags & COMPACT)
        put_number(w, (uint64_t)(n + 1));
    else if (row->op == STRING)
        put16(w, n);
    else
        put32(w, n);
}

/* Write bytes, or note where they belong. */
static inline Outcome put_octets(Writer *w, Octets octets) {
    if (octets.size >= LONG_BYTES && w->piece_count < MAX_PIECES) {
        w->pieces[w->piece_count++] = (Piece){w->size, octets.size, octets.bytes};
        w->outside += octets.size;
        return DONE;
    }
    if (reserve(w, octets.size)) return FAILED;
    if (octets.size) memcpy(w->buffer + w->size, octets.bytes, octets.size);
    w->size += octets.size;
    return DONE;
}

/* Values: what an object contains, if it is of a type that is known here. No function has an exception set. */

static inline int get_integer(PyObject *value, int64_t *number) {
    PyObject *type = Py_TYPE(value);
    if (type != &PyLong_Type && (type == &PyBool_Type || !PyType_IsSubtype(type, &PyLong_Type))) return 0;
    int overflow;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

static inline int get_double(PyObject *value, double *number) {
    int64_t integer;
    if (Py_TYPE(value) == &PyFloat_Type) {
        *number = PyFloat_AsDouble(value);
        return 1;
    }
    if (!get_integer(value, &integer)) return 0;
    *number = (double)integer;
    return 1;
}

static int get_text(PyObject *value, Octets *octets) {
    Py_ssize_t size;
    if (Py_TYPE(value) != &PyUnicode_Type) return 0;
    octets->bytes = PyUnicode_AsUTF8AndSize(value, &size);
    octets->size = size;
    if (!octets->bytes) PyErr_Clear(); /* a lone surrogate, or no memory: the walker finds out */
    return octets->bytes != NULL;
}

/* bytearray and memoryview keep their memory when the view of it is released: nothing else runs before it is copied. */
static int get_octets(PyObject *value, Octets *octets) {
    PyObject *type = Py_TYPE(value);
    if (type == &PyBytes_Type) {
        char *bytes;
        Py_ssize_t size;
        PyBytes_AsStringAndSize(value, &bytes, &size);
        *octets = (Octets){bytes, size};
        return 1;
    }
    Py_buffer view;
    if (type != &PyByteArray_Type && type != &PyMemoryView_Type) return 0;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0) { /* released, or not contiguous */
        PyErr_Clear();
        return 0;
    }
    *octets = (Octets){view.buf, view.len};
    PyBuffer_Release(&view);
    return 1;
}

/* Read the number of a uuid.UUID, of 128 bits. */
static int get_uuid(PyObject *value, const Layout *layout, uint64_t *high, uint64_t *low) {
    if (Py_TYPE(value) != layout->type) return 0;
    PyObject *number = *field_of(value, &layout->slots[0]);
    if (!number || Py_TYPE(number) != &PyLong_Type) return 0;
    *low = PyLong_AsUnsignedLongLongMask(number);
    int overflow;
    const int64_t whole = PyLong_AsLongLongAndOverflow(number, &overflow);
    *high = 0;
    if (!overflow) return whole >= 0;
    PyObject *bits = PyLong_FromLong(64), *rest = bits ? PyNumber_Rshift(number, bits) : NULL;
    if (rest) *high = PyLong_AsUnsignedLongLong(rest);
    if (rest) Py_DecRef(rest);
    if (bits) Py_DecRef(bits);
    if (!PyErr_Occurred()) return 1;
    PyErr_Clear(); /* negative, or above 128 bits */
    return 0;
}

static inline int get_sequence(PyObject *value, Sequence *found) {
    PyObject *type = Py_TYPE(value);
    found->object = value;
    if (type == &PyList_Type || PyType_IsSubtype(type, &PyList_Type)) {
        found->is_tuple = 0;
        found->count = PyList_Size(value);
        return 1;
    }
    if (type != &PyTuple_Type && !PyType_IsSubtype(type, &PyTuple_Type)) return 0;
    found->is_tuple = 1;
    found->count = PyTuple_Size(value);
    return 1;
}

static inline PyObject *element(const Sequence *sequence, int64_t index) {
    return sequence->is_tuple ? PyTuple_GetItem(sequence->object, index) : PyList_GetItem(sequence->object, index);
}

static inline int is_object_of(PyObject *value, const Layout *layout) {
    return Py_TYPE(value) == layout->type || PyType_IsSubtype(Py_TYPE(value), layout->type);
}

/* Defaults (W-21) */

typedef enum { IS_OTHER, IS_DEFAULT, IS_UNKNOWN } Comparison;

static Comparison compare_values(const Job *job, PyObject *value, PyObject *wanted) {
    PyObject *type = Py_TYPE(wanted);
    Octets mine, its;
    if (type == &PyFloat_Type) { /* as IEEE 754 compares: NaN is never the default, and -0.0 is 0.0 */
        if (Py_TYPE(value) != type) return value == &_Py_NoneStruct ? IS_OTHER : IS_UNKNOWN;
        return PyFloat_AsDouble(value) == PyFloat_AsDouble(wanted) ? IS_DEFAULT : IS_OTHER;
    }
    if (value == wanted) return IS_DEFAULT;
    if (wanted == &_Py_NoneStruct || value == &_Py_NoneStruct) return IS_OTHER;
    if (type == &PyLong_Type) {
        int64_t number, its_number;
        if (!get_integer(value, &number) || !get_integer(wanted, &its_number)) return IS_UNKNOWN;
        return number == its_number ? IS_DEFAULT : IS_OTHER;
    }
    if (type == &PyBool_Type) return Py_TYPE(value) == type ? IS_OTHER : IS_UNKNOWN;
    if (type == &PyUnicode_Type) {
        if (!get_text(value, &mine) || !get_text(wanted, &its)) return IS_UNKNOWN;
    } else if (type == &PyBytes_Type) {
        if (!get_octets(value, &mine) || !get_octets(wanted, &its)) return IS_UNKNOWN;
    } else {
        uint64_t high, low, its_high, its_low;
        if (!get_uuid(value, job->uuid, &high, &low) || !get_uuid(wanted, job->uuid, &its_high, &its_low))
            return IS_UNKNOWN;
        return high == its_high && low == its_low ? IS_DEFAULT : IS_OTHER;
    }
    return mine.size == its.size && !memcmp(mine.bytes, its.bytes, mine.size) ? IS_DEFAULT : IS_OTHER;
}

/* Structs are nested as deep as their definition is. */
static Comparison compare_default(const Job *job, PyObject *value, const Slot *slot) {
    if (!value) return IS_UNKNOWN;
    if (slot->value) return compare_values(job, value, slot->value);
    if (value == &_Py_NoneStruct) return IS_OTHER;
    if (!slot->layout) {
        Sequence list;
        return !get_sequence(value, &list) ? IS_UNKNOWN : list.count ? IS_OTHER : IS_DEFAULT;
    }
    const Layout *layout = slot->layout;
    if (!is_object_of(value, layout)) return IS_UNKNOWN;
    for (const Slot *field = layout->slots, *end = field + layout->count; field < end; field++) {
        const Comparison found = compare_default(job, *field_of(value, field), field);
        if (found != IS_DEFAULT) return found;
    }
    return IS_DEFAULT;
}

/* Places */

/* Look at the next value: null if it is missing. */
static inline PyObject *peek(Writer *w) {
    Frame *top = w->top;
    switch (top->kind) {
    case STRUCT_OF: return *field_of(top->object, top->at.slot);
    case ARRAY_OF:
    case PAIR: return element(&top->sequence, top->index);
    default: return top->object;
    }
}

static inline void advance(Writer *w) {
    if (w->top->kind == STRUCT_OF)
        w->top->at.slot++;
    else
        w->top->index++;
}

static inline PyObject *next_value(Writer *w) {
    PyObject *value = peek(w);
    advance(w);
    return value;
}

static inline void push_sequence(Writer *w, Kind kind, const Sequence *sequence) {
    Frame *top = ++w->top;
    top->kind = kind;
    top->at.slot = NULL;
    top->sequence = *sequence;
    top->index = 0;
}

/* Leave a struct, unless it is marked: then PERMUTE follows. */
static inline void close_struct(Writer *w) {
    if (!w->top->is_marked) w->top--;
}

/* Rows: each function does what a row says, and sets the next one. */

static Outcome write_struct(Writer *w) {
    const Layout *layout = (const Layout *)w->row->layout;
    PyObject *value = next_value(w);
    if (!value) return REJECTED;
    if (!layout) { /* header and body of a frame */
        Sequence both;
        if (!get_sequence(value, &both) || both.count != w->row->count) return REJECTED;
        push_sequence(w, PAIR, &both);
    } else {
        if (!is_object_of(value, layout)) return REJECTED;
        Frame *top = ++w->top;
        top->kind = STRUCT_OF;
        top->object = value;
        top->at.layout = layout;
        top->at.slot = layout->slots;
        top->is_flexible = w->row->flexible != 0;
        top->is_marked = w->marked;
        w->marked = 0;
    }
    w->row++;
    return DONE;
}

/* Write one value of fixed width; 0 if it is not one. */
static inline int put_fixed(Writer *w, PyObject *value, int64_t code) {
    int64_t number;
    if (!value) return 0;
    switch (code) {
    case BOOL:
        if (Py_TYPE(value) != &PyBool_Type) return 0;
        put_byte(w, value == &_Py_TrueStruct);
        return 1;
    case FLOAT64: {
        double real;
        uint64_t bits;
        if (!get_double(value, &real)) return 0;
        memcpy(&bits, &real, 8);
        put64(w, bits);
        return 1;
    }
    case UUID: {
        uint64_t high, low;
        if (!get_uuid(value, w->job->uuid, &high, &low)) return 0;
        put64(w, high);
        put64(w, low);
        return 1;
    }
    }
    if (!get_integer(value, &number)) return 0;
    switch (code) {
    case INT32: put32(w, number); return number == (int32_t)number;
    case INT16: put16(w, number); return number == (int16_t)number;
    case INT64: put64(w, (uint64_t)number); return 1;
    case INT8: put_byte(w, (int)number); return number == (int8_t)number;
    case UINT16: put16(w, number); return number == (uint16_t)number;
    default: put32(w, number); return number == (uint32_t)number;
    }
}

/* Write an integer as KIP-625 packs it; 0 if it is not one. */
static int put_packed(Writer *w, PyObject *value, int64_t code) {
    const int is_long = code == PACKED64 || code == UPACKED64, is_short = code == PACKED16 || code == UPACKED16;
    int64_t number;
    if (!value || !get_integer(value, &number)) return 0;
    if (!is_long && number != (is_short ? (int16_t)number : (int32_t)number)) return 0;
    if (code == PACKED16 || code == PACKED32 || code == PACKED64)
        put_number(w, zigzag(number));
    else
        put_number(w, is_long ? (uint64_t)number : is_short ? (uint16_t)number : (uint32_t)number);
    return 1;
}

static inline Outcome write_fixed(Writer *w) {
    const Row *row = w->row;
    uint64_t codes = (uint64_t)row->codes;
    if (reserve(w, FIXED_ROW_BYTES)) return FAILED;
    PyObject *object = w->top->object;
    const Slot *slot = w->top->at.slot;
    for (const Slot *last = slot + row->count; slot < last; slot++, codes >>= 4)
        if (!put_fixed(w, *field_of(object, slot), codes & 15)) return REJECTED;
    w->top->at.slot = slot;
    w->row++;
    return DONE;
}

static Outcome write_packed_run(Writer *w) {
    uint64_t codes = (uint64_t)w->row->codes;
    if (reserve(w, MAX_CODES * VARLONG_BYTES)) return FAILED;
    for (int64_t n = w->row->count; n; n--, codes >>= 4)
        if (!put_packed(w, next_value(w), codes & 15)) return REJECTED;
    w->row++;
    return DONE;
}

static inline Outcome write_octets(Writer *w) {
    const Row *row = w->row;
    PyObject *value = next_value(w);
    Octets octets;
    if (!value || reserve(w, VARINT_BYTES)) return value ? FAILED : REJECTED;
    w->row++;
    if (value == &_Py_NoneStruct) {
        put_length(w, row, -1);
        return row->flags & MAY_BE_NULL ? DONE : REJECTED;
    }
    if (row->op == STRING ? !get_text(value, &octets) : !get_octets(value, &octets)) return REJECTED;
    if (octets.size > (row->op == STRING ? MAX_STRING_BYTES : MAX_LENGTH)) return REJECTED;
    put_length(w, row, octets.size);
    return put_octets(w, octets);
}

/* Write the count of an array, with room for `width` bytes for each element; a null array has none. */
static inline Outcome put_count(Writer *w, int64_t width, Sequence *found) {
    const Row *row = w->row;
    PyObject *value = next_value(w);
    if (!value) return REJECTED;
    if (value == &_Py_NoneStruct) {
        if (!(row->flags & MAY_BE_NULL)) return REJECTED;
        *found = (Sequence){.count = 0};
    } else if (!get_sequence(value, found) || found->count > MAX_LENGTH) {
        return REJECTED;
    }
    if (reserve(w, VARINT_BYTES + found->count * width)) return FAILED;
    put_length(w, row, found->object ? found->count : -1);
    return DONE;
}

/* Write an array of numbers. */
static inline Outcome write_list(Writer *w) {
    const Row *row = w->row;
    const int is_packed = row->op == VARLIST;
    Sequence list;
    const Outcome outcome = put_count(w, is_packed ? VARLONG_BYTES : row->width, &list);
    if (outcome) return outcome;
    for (int64_t i = 0; i < list.count; i++)
        if (is_packed ? !put_packed(w, element(&list, i), row->code) : !put_fixed(w, element(&list, i), row->code))
            return REJECTED;
    w->row++;
    return DONE;
}

static inline Outcome write_array(Writer *w) {
    Sequence array;
    const Outcome outcome = put_count(w, 0, &array);
    if (outcome) return outcome;
    if (array.count) {
        push_sequence(w, ARRAY_OF, &array);
        w->row++;
    } else {
        w->row = w->job->rows + w->row->end;
    }
    return DONE;
}

static inline Outcome next_element(Writer *w) {
    if (w->top->index < w->top->sequence.count) {
        w->row = w->job->rows + w->row->target;
    } else {
        w->top--;
        w->row++;
    }
    return DONE;
}

static Outcome write_nullable(Writer *w) {
    const int is_tagged = w->row->tagged != 0;
    if (reserve(w, 1)) return FAILED;
    if (peek(w) != &_Py_NoneStruct) {
        put_byte(w, 1);
        w->row++;
        return DONE;
    }
    put_byte(w, is_tagged ? 0 : 0xFF); /* W-15, W-16 */
    advance(w);
    w->row = w->job->rows + w->row->end;
    return DONE;
}

/* Fields that this version lacks have to be at their defaults (W-31), unless they are ignorable. */
static inline Outcome skip_absent(Writer *w) {
    const Row *first = w->row, *end = first + first->rows;
    Frame *top = w->top;
    for (const Row *row = first; row < end; row++, top->at.slot++)
        if (!row->ignorable && compare_default(w->job, *field_of(top->object, top->at.slot), top->at.slot) != IS_DEFAULT) return REJECTED;
    if (first->trailing && !top->is_flexible) close_struct(w);
    w->row = end;
    return DONE;
}

/* Read an unknown tagged field: 0 if it is no pair of a tag and bytes. */
static int get_unknown(const Sequence *unknown, int64_t index, int64_t *tag, Octets *octets) {
    Sequence field;
    return get_sequence(element(unknown, index), &field) && field.count == 2 && get_integer(element(&field, 0), tag) &&
           get_octets(element(&field, 1), octets) && octets->size <= MAX_LENGTH;
}

/* Check that the tags of unknown fields ascend (W-24) and belong to no field (T-12). */
static int check_unknown(PyObject *value, const Row *entries, int64_t entry_count, Sequence *unknown) {
    if (!value || !get_sequence(value, unknown)) return 0;
    int64_t tag, previous = -1;
    Octets octets;
    for (int64_t i = 0; i < unknown->count; i++) {
        if (!get_unknown(unknown, i, &tag, &octets) || tag <= previous || tag > MAX_TAG) return 0;
        for (int64_t j = 0; j < entry_count; j++)
            if (entries[j].tag == tag) return 0;
        previous = tag;
    }
    return 1;
}

static inline Outcome open_tags(Writer *w) {
    const Row *tags = w->row, *entries = tags + 2; /* after TAGS and TAG_STEP */
    Frame *top = w->top;
    int64_t count = 0;
    if (reserve(w, VARINT_BYTES)) return FAILED;
    for (int64_t i = 0; i < tags->entries; i++) {
        const Slot *slot = top->at.slot + i;
        if (entries[i].state == ELSEWHERE || (entries[i].state == LACKING && entries[i].ignorable)) continue;
        const Comparison found = compare_default(w->job, *field_of(top->object, slot), slot);
        if (found == IS_UNKNOWN || (found == IS_OTHER && entries[i].state == LACKING)) return REJECTED;
        count += found == IS_OTHER;
    }
    if (!check_unknown(*field_of(top->object, top->at.slot + tags->entries), entries, tags->entries, &top->unknown)) return REJECTED;
    count += top->unknown.count;
    put_number(w, (uint64_t)count);
    if (!count) {
        close_struct(w);
        w->row = w->job->rows + tags->end;
        return DONE;
    }
    top->next_entry = top->next_unknown = 0;
    w->row++;
    return DONE;
}

/* Write the unknown fields with tags below `limit`. */
static Outcome put_unknown_below(Writer *w, int64_t limit) {
    Frame *top = w->top;
    for (; top->next_unknown < top->unknown.count; top->next_unknown++) {
        int64_t tag = 0;
        Octets octets;
        if (!get_unknown(&top->unknown, top->next_unknown, &tag, &octets)) return REJECTED;
        if (tag > limit) break;
        if (reserve(w, 2 * VARINT_BYTES)) return FAILED;
        put_number(w, (uint64_t)tag);
        put_number(w, (uint64_t)octets.size);
        if (put_octets(w, octets)) return FAILED;
    }
    return DONE;
}

static Outcome next_tag(Writer *w) {
    const Row *step = w->row, *entries = step + 1;
    Frame *top = w->top;
    const Slot *tagged = top->at.layout->slots + top->at.layout->count - 1 - step->entries;
    int64_t i = top->next_entry;
    while (i < step->entries && (entries[i].state != LIVE || compare_default(w->job, *field_of(top->object, tagged + i), tagged + i)))
        i++;
    const Outcome outcome = put_unknown_below(w, i < step->entries ? entries[i].tag : (int64_t)MAX_TAG);
    if (outcome) return outcome;
    if (i == step->entries) {
        close_struct(w);
        w->row = w->job->rows + step->end;
        return DONE;
    }
    if (reserve(w, VARINT_BYTES + 1)) return FAILED;
    put_number(w, (uint64_t)entries[i].tag);
    top->next_entry = i + 1;
    top->size_at = w->size++; /* of one byte, as nearly all are */
    top->outside_before = w->outside;
    top->at.slot = tagged + i;
    w->row = w->job->rows + entries[i].sub;
    return DONE;
}

/* Write the size of a tagged value. If it needs more than the byte that is reserved, the value moves. */
static Outcome end_tag(Writer *w) {
    const Frame *top = w->top;
    const int64_t at = top->size_at, inside = w->size - at - 1;
    const int64_t size = inside + w->outside - top->outside_before;
    if (size > MAX_LENGTH) return REJECTED;
    const int64_t more = uvarint_bytes((uint64_t)size) - 1;
    if (more) {
        if (reserve(w, more)) return FAILED;
        memmove(w->buffer + at + 1 + more, w->buffer + at + 1, inside);
        for (int64_t i = w->piece_count; i && w->pieces[i - 1].position > at; i--) w->pieces[i - 1].position += more;
    }
    const int64_t end = w->size + more;
    w->size = at;
    put_number(w, (uint64_t)size);
    w->size = end;
    w->row = w->job->rows + w->row->target;
    return DONE;
}

/* Follow the rows to the end of the message. */
static Outcome write_rows(Writer *w) {
    for (;;) {
        Outcome outcome;
        switch (w->row->op) {
        case STRUCT: outcome = write_struct(w); break;
        case FIXED: outcome = write_fixed(w); break;
        case STRING:
        case BYTES: outcome = write_octets(w); break;
        case LIST:
        case VARLIST: outcome = write_list(w); break;
        case ARRAY: outcome = write_array(w); break;
        case NEXT: outcome = next_element(w); break;
        case NULLABLE: outcome = write_nullable(w); break;
        case ABSENT: outcome = skip_absent(w); break;
        case TAGS: outcome = open_tags(w); break;
        case TAG_STEP: outcome = next_tag(w); break;
        case TAG_END: outcome = end_tag(w); break;
        case VARINTS: outcome = write_packed_run(w); break;
        case LENGTH:
            w->size += 4; /* of the empty buffer */
            w->row++;
            outcome = DONE;
            break;
        case END: return DONE;
        default:
            MOVE(w);
            outcome = DONE;
        }
        if (outcome) return outcome;
    }
}

/* Make the result: the buffer, and the pieces where they belong. */
static PyObject *join(Writer *w) {
    if (!w->piece_count) return PyBytes_FromStringAndSize((const char *)w->buffer, w->size);
    PyObject *made = PyBytes_FromStringAndSize(NULL, w->size + w->outside);
    char *out = made ? PyBytes_AsString(made) : NULL;
    if (!out) return made;
    int64_t done = 0;
    for (const Piece *piece = w->pieces, *end = piece + w->piece_count; piece < end; piece++) {
        memcpy(out, w->buffer + done, piece->position - done);
        out += piece->position - done;
        memcpy(out, piece->bytes, piece->size);
        out += piece->size;
        done = piece->position;
    }
    memcpy(out, w->buffer + done, w->size - done);
    return made;
}

PyObject *write_message(PyObject *message, const Job *job) {
    Writer writer;
    writer.job = job;
    writer.row = job->rows;
    writer.buffer = first_buffer;
    writer.size = writer.outside = writer.piece_count = 0;
    writer.capacity = BUFFER_BYTES;
    writer.marked = 0;
    writer.frames[0] = (Frame){.kind = ROOT, .object = message};
    writer.top = writer.frames;
    PyObject *made = NULL;
    if (write_rows(&writer) == DONE) {
        const int64_t whole = writer.size + writer.outside;
        const int is_framed = job->rows->op == LENGTH;
        if (!is_framed || whole - 4 <= MAX_LENGTH) {
            if (is_framed) put_big32(writer.buffer, (int32_t)(whole - 4));
            made = join(&writer);
        }
    }
    if (writer.buffer != first_buffer) PyMem_Free(writer.buffer);
    return made;
}
