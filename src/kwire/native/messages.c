/* Messages: from bytes to objects, by the rows of a plan (kwire.plan.rows).
 *
 * Each value is created once, from the bytes of the input, and goes to its place in a struct or list. Objects that are
 * not complete have null slots, which their deallocators skip; nothing else sees them. The collector is off meanwhile:
 * a message contains no cycles, and looking for some among its new lists took a third of the time.
 *
 * Every byte is checked against the end of the input before it is read. Input that the plan does not accept is left to
 * the walker (kwire.plan.reading), which raises the error, or accepts it if it is lenient.
 */
#include "messages.h"

/* What takes the next value. ROOT is below the message. PAIR: header and body of a frame. */
typedef enum { ROOT, PAIR, ARRAY_OF, STRUCT_OF } Kind;

typedef struct {
    Kind kind;
    int is_marked, is_flexible;
    PyObject *object;
    const Layout *layout;
    const Slot *slot;     /* of a struct: the next one */
    const Slot *kept;     /* the next one before SEEK */
    int64_t index, count; /* of an array or pair: the next element */
    /* of a tag section */
    int64_t tags, tags_left, last_tag, unknown;
    const uint8_t *section, *outer_end;
} Frame;

/* The last value of a field, which is used again if the next one is the same. It is in the message, so it is alive. */
typedef struct {
    PyObject *object;
    const uint8_t *bytes;
    int64_t number; /* of a string: how many bytes */
} Memo;

enum { MEMOS = 16 };

typedef struct {
    PyObject *data, *view; /* the input; a memoryview of its bytes, made when it is needed */
    const uint8_t *source, *p, *end;
    const Job *job;
    const Row *row;
    Frame *top;
    int views, marked;
    PyObject *message;
    Memo memos[MEMOS], last_list;
    Frame frames[MAX_FRAMES];
} Reader;

enum {
    SHORT_MESSAGE = 256, /* bytes: shorter ones make too few lists for the collector to run */
    SMALLEST_SHARED = -5, LARGEST_SHARED = 256, /* integers that Python has only once */
};

/* What a step returns. REJECTED: the plan does not accept the input. FAILED: with an exception. */
typedef enum { DONE, REJECTED, FAILED } Outcome;

/* Numbers */

static inline int64_t big16(const uint8_t *p) { return (int16_t)(p[0] << 8 | p[1]); }

static inline int64_t big32(const uint8_t *p) {
    uint32_t bits;
    memcpy(&bits, p, 4);
    return (int32_t)__builtin_bswap32(bits);
}

static inline uint64_t big64(const uint8_t *p) {
    uint64_t bits;
    memcpy(&bits, p, 8);
    return __builtin_bswap64(bits);
}

/* Read an unsigned varint; 0 if it is cut off or has more than `most` bytes. */
static inline int read_varint(Reader *r, int most, uint64_t *value) {
    const uint8_t *p = r->p;
    uint64_t found = 0;
    for (int i = 0; i < most && p < r->end; i++) {
        const uint8_t byte = *p++;
        found |= (uint64_t)(byte & 0x7F) << 7 * i;
        if (byte < 0x80) {
            *value = most == VARINT_BYTES ? (uint32_t)found : found;
            r->p = p;
            return 1;
        }
    }
    return 0;
}

/* Read a length or count: -1 for null, -2 on failure. */
static inline int64_t read_length(Reader *r) {
    const int64_t flags = r->row->a, left = r->end - r->p;
    int64_t n;
    if (flags & COMPACT) {
        if (left > 0 && *r->p < 0x80) {
            n = (int64_t)*r->p++ - 1;
        } else {
            uint64_t value;
            if (!read_varint(r, VARINT_BYTES, &value)) return -2;
            n = (int64_t)value - 1;
        }
    } else if (r->row->op == STRING) {
        if (left < 2) return -2;
        n = big16(r->p);
        r->p += 2;
    } else {
        if (left < 4) return -2;
        n = big32(r->p);
        r->p += 4;
    }
    if (n < 0) return flags & MAY_BE_NULL ? -1 : -2; /* W-14: any negative length is null */
    return n;
}

/* Read an integer as KIP-625 packs it; 0 if it is cut off, too long or too large. */
static int read_packed(Reader *r, int64_t code, int64_t *value) {
    const int is_long = code == PACKED64 || code == UPACKED64, is_short = code == PACKED16 || code == UPACKED16;
    uint64_t bits;
    if (!read_varint(r, is_long ? VARLONG_BYTES : VARINT_BYTES, &bits) || (is_short && bits > 0xFFFF)) return 0;
    if (code == PACKED16 || code == PACKED32 || code == PACKED64)
        *value = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    else
        *value = is_long ? (int64_t)bits : is_short ? (int16_t)bits : (int32_t)bits;
    return 1;
}

/* Values: each function returns a new reference, or null with an exception. */

static PyObject *new_struct(const Layout *layout);

/* Make the default of a field. Each object has its own lists and structs: only what cannot be changed is shared. */
static inline PyObject *new_default(const Slot *slot) {
    if (slot->value) return shared(slot->value);
    return slot->layout ? new_struct(slot->layout) : PyList_New(0);
}

/* Make a struct in which all fields have their defaults. Such structs are nested as deep as their definition is. */
static PyObject *new_struct(const Layout *layout) {
    PyObject *made = layout->allocate(layout->type, 0);
    if (!made) return NULL;
    for (const Slot *slot = layout->slots, *end = slot + layout->count; slot < end; slot++)
        if (!(*place(made, slot) = new_default(slot))) {
            Py_DecRef(made);
            return NULL;
        }
    return made;
}

/* Slots have three words, and three has no divisor in common with the number of memos: neighbours do not collide. */
static inline Memo *memo_of(Reader *r, const Slot *slot) { return &r->memos[(uintptr_t)slot / 8 % MEMOS]; }

/* Make a uuid.UUID, whose slots are `int` and `is_safe`. */
static PyObject *new_uuid(const uint8_t *p, const Layout *layout) {
    char digits[2 * UUID_BYTES + 1];
    for (int i = 0; i < UUID_BYTES; i++) {
        digits[2 * i] = "0123456789abcdef"[p[i] >> 4];
        digits[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
    }
    digits[2 * UUID_BYTES] = 0;
    PyObject *number = PyLong_FromString(digits, NULL, 16);
    PyObject *made = number ? layout->allocate(layout->type, 0) : NULL;
    if (made) {
        *place(made, &layout->slots[0]) = number;
        *place(made, &layout->slots[1]) = shared(layout->slots[1].value);
    } else if (number) {
        Py_DecRef(number);
    }
    return made;
}

/* Make an integer, or use the last one of the field again. */
static inline PyObject *new_integer(Reader *r, const Slot *slot, int64_t number) {
    if (number >= SMALLEST_SHARED && number <= LARGEST_SHARED) return PyLong_FromLong((long)number);
    Memo *memo = memo_of(r, slot);
    if (memo->object && memo->number == number && !memo->bytes) return shared(memo->object);
    memo->bytes = NULL;
    memo->number = number;
    return memo->object = PyLong_FromLongLong(number);
}

/* Make a value of fixed width from bytes that have been checked. */
static inline PyObject *new_fixed(Reader *r, const Slot *slot, int64_t code) {
    const uint8_t *p = r->p;
    switch (code) {
    case INT32: r->p += 4; return new_integer(r, slot, big32(p));
    case INT16: r->p += 2; return PyLong_FromLong(big16(p));
    case INT64: r->p += 8; return new_integer(r, slot, (int64_t)big64(p));
    case BOOL: r->p += 1; return shared(*p ? &_Py_TrueStruct : &_Py_FalseStruct);
    case INT8: r->p += 1; return PyLong_FromLong((int8_t)*p);
    case UINT16: r->p += 2; return PyLong_FromLong((uint16_t)big16(p));
    case UINT32: r->p += 4; return PyLong_FromLongLong((uint32_t)big32(p));
    case FLOAT64: {
        const uint64_t bits = big64(p);
        double number;
        memcpy(&number, &bits, 8);
        r->p += 8;
        return PyFloat_FromDouble(number);
    }
    default: r->p += UUID_BYTES; return new_uuid(p, r->job->uuid);
    }
}

/* Places */

/* Put a value, whose reference is taken, into its place. A null value is an error. */
static inline Outcome put(Reader *r, PyObject *value) {
    Frame *top = r->top;
    if (!value) return FAILED;
    switch (top->kind) {
    case STRUCT_OF: *place(top->object, top->slot++) = value; return DONE;
    case ARRAY_OF: return PyList_SetItem(top->object, top->index++, value) ? FAILED : DONE;
    case PAIR: return PyTuple_SetItem(top->object, top->index++, value) ? FAILED : DONE;
    default: r->message = value; return DONE;
    }
}

/* Give the class's defaults to those of the next `count` fields that have no value. */
static inline Outcome put_defaults(Frame *top, int64_t count) {
    for (; count; count--, top->slot++) {
        PyObject **at = place(top->object, top->slot);
        if (!*at && !(*at = new_default(top->slot))) return FAILED;
    }
    return DONE;
}

static inline Frame *push(Reader *r, Kind kind, PyObject *object) {
    Frame *top = ++r->top;
    top->kind = kind;
    top->object = object;
    top->slot = NULL;
    top->index = 0;
    return top;
}

/* Leave a struct whose fields all have values, unless it is marked: then PERMUTE follows. */
static inline void close_struct(Reader *r) {
    if (!r->top->is_marked) r->top--;
}

/* Rows: each function does what a row says, and sets the next one. */

static inline Outcome read_struct(Reader *r) {
    const Layout *layout = (const Layout *)r->row->g;
    PyObject *made = layout ? layout->allocate(layout->type, 0) : PyTuple_New(r->row->a);
    if (put(r, made)) return FAILED;
    Frame *top = push(r, layout ? STRUCT_OF : PAIR, made);
    top->layout = layout;
    if (layout) top->slot = layout->slots;
    top->is_flexible = r->row->c != 0;
    top->is_marked = r->marked;
    r->marked = 0;
    r->row++;
    return DONE;
}

static inline Outcome read_fixed(Reader *r) {
    const Row *row = r->row;
    if (row->c > r->end - r->p) return REJECTED;
    uint64_t codes = (uint64_t)row->a;
    PyObject *object = r->top->object;
    const Slot *slot = r->top->slot;
    for (const Slot *last = slot + row->b; slot < last; slot++, codes >>= 4)
        if (!(*place(object, slot) = new_fixed(r, slot, codes & 15))) return FAILED;
    r->top->slot = slot;
    r->row++;
    return DONE;
}

static Outcome read_packed_run(Reader *r) {
    uint64_t codes = (uint64_t)r->row->a;
    for (int64_t n = r->row->b; n; n--, codes >>= 4) {
        int64_t number;
        if (!read_packed(r, codes & 15, &number)) return REJECTED;
        if (put(r, PyLong_FromLongLong(number))) return FAILED;
    }
    r->row++;
    return DONE;
}

static inline Outcome read_string(Reader *r) {
    const int64_t n = read_length(r);
    if (n == -2 || n > r->end - r->p || n > MAX_STRING_BYTES) return REJECTED;
    r->row++;
    if (n < 0) return put(r, shared(&_Py_NoneStruct));
    const uint8_t *bytes = r->p;
    Memo *memo = memo_of(r, r->top->slot);
    r->p += n;
    if (memo->object && memo->bytes && memo->number == n && !memcmp(memo->bytes, bytes, n))
        return put(r, shared(memo->object));
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes, n, NULL);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        return REJECTED;
    }
    *memo = (Memo){text, bytes, n};
    return put(r, text);
}

/* Make a memoryview of the next n bytes of the input. */
static PyObject *new_view(Reader *r, int64_t n) {
    if (!r->view) {
        PyObject *whole = PyMemoryView_FromObject(r->data);
        r->view = whole ? PyObject_CallMethod(whole, "cast", "s", "B") : NULL;
        if (whole) Py_DecRef(whole);
    }
    return r->view ? PySequence_GetSlice(r->view, r->p - r->source, r->p - r->source + n) : NULL;
}

static inline Outcome read_bytes(Reader *r) {
    const int64_t n = read_length(r);
    PyObject *value;
    if (n < 0) {
        if (n == -2) return REJECTED;
        value = shared(&_Py_NoneStruct);
    } else {
        if (n > r->end - r->p) return REJECTED;
        value = r->views ? new_view(r, n) : PyBytes_FromStringAndSize((const char *)r->p, n);
        r->p += n;
    }
    r->row++;
    return put(r, value);
}

/* Read an array of numbers. One that equals the last one, as in-sync replicas do, is copied from it. */
static inline Outcome read_list(Reader *r) {
    const int64_t n = read_length(r), code = r->row->b, width = r->row->c;
    const uint8_t *bytes = r->p;
    if (n == -2 || (n > 0 && n * width > r->end - r->p)) return REJECTED;
    r->row++;
    if (n < 0) return put(r, shared(&_Py_NoneStruct));
    if (n == 0) return put(r, PyList_New(0));
    Memo *last = &r->last_list;
    const int64_t kind = n << 4 | code;
    if (last->number == kind && !memcmp(last->bytes, bytes, n * width)) {
        r->p += n * width;
        return put(r, PyList_GetSlice(last->object, 0, n));
    }
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    for (int64_t i = 0; i < n; i++) {
        PyObject *value = new_fixed(r, NULL, code);
        if (!value) return FAILED;
        PyList_SetItem(list, i, value);
    }
    *last = (Memo){list, bytes, kind};
    return DONE;
}

static Outcome read_packed_list(Reader *r) {
    const int64_t n = read_length(r), code = r->row->b;
    if (n == -2 || n > r->end - r->p) return REJECTED; /* each takes a byte at least */
    r->row++;
    if (n < 0) return put(r, shared(&_Py_NoneStruct));
    if (n == 0) return put(r, PyList_New(0));
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    for (int64_t i = 0; i < n; i++) {
        int64_t number;
        if (!read_packed(r, code, &number)) return REJECTED;
        PyObject *value = PyLong_FromLongLong(number);
        if (!value) return FAILED;
        PyList_SetItem(list, i, value);
    }
    return DONE;
}

static inline Outcome read_array(Reader *r) {
    const Row *row = r->row;
    const int64_t n = read_length(r);
    if (n == -2 || (n > 0 && n * row->c > r->end - r->p)) return REJECTED;
    if (n <= 0) {
        r->row = r->job->rows + row->b;
        return n ? put(r, shared(&_Py_NoneStruct)) : put(r, PyList_New(0));
    }
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    push(r, ARRAY_OF, list)->count = n;
    r->row++;
    return DONE;
}

static inline Outcome next_element(Reader *r) {
    if (r->top->index < r->top->count) {
        r->row = r->job->rows + r->row->a;
    } else {
        r->top--;
        r->row++;
    }
    return DONE;
}

static Outcome read_nullable(Reader *r) {
    int is_null;
    if (r->row->b) { /* a varint, 0 is null (W-16) */
        uint64_t marker;
        if (!read_varint(r, VARINT_BYTES, &marker)) return REJECTED;
        is_null = marker == 0;
    } else { /* a signed byte, negative is null (W-15) */
        if (r->p >= r->end) return REJECTED;
        is_null = (int8_t)*r->p++ < 0;
    }
    if (!is_null) {
        r->row++;
        return DONE;
    }
    r->row = r->job->rows + r->row->a;
    return put(r, shared(&_Py_NoneStruct));
}

static inline Outcome put_absent(Reader *r) {
    const Row *row = r->row;
    if (put_defaults(r->top, row->f)) return FAILED;
    if (row->g && !r->top->is_flexible) close_struct(r);
    r->row += row->f;
    return DONE;
}

static inline Outcome open_tags(Reader *r) {
    Frame *top = r->top;
    uint64_t n;
    if (r->p < r->end && *r->p == 0) {
        r->p++;
        if (put_defaults(top, top->layout->slots + top->layout->count - top->slot)) return FAILED;
        close_struct(r);
        r->row = r->job->rows + r->row->b;
        return DONE;
    }
    if (!read_varint(r, VARINT_BYTES, &n) || 2 * n > (uint64_t)(r->end - r->p)) return REJECTED; /* two bytes at least */
    top->tags = top->tags_left = (int64_t)n;
    top->last_tag = -1;
    top->unknown = 0;
    top->section = r->p;
    r->row++;
    return DONE;
}

/* Find the entry of a tag: its index, `count` if there is none, -1 if the tag is misplaced (W-27). */
static int64_t find_entry(const Row *entries, int64_t count, int64_t tag) {
    for (int64_t i = 0; i < count; i++)
        if (entries[i].a == tag && entries[i].b == LIVE) return i;
    for (int64_t i = 0; i < count; i++)
        if (entries[i].a == tag) return -1;
    return count;
}

/* Make the list of the unknown fields of a section, in a second pass over it. */
static PyObject *unknown_fields(Reader *r, const Row *entries, int64_t count) {
    const Frame *top = r->top;
    PyObject *list = PyList_New(top->unknown);
    if (!list) return NULL;
    r->p = top->section;
    int64_t index = 0;
    for (int64_t i = 0; i < top->tags; i++) {
        uint64_t tag = 0, n = 0;
        read_varint(r, VARINT_BYTES, &tag);
        read_varint(r, VARINT_BYTES, &n);
        if (n > (uint64_t)(r->end - r->p)) n = 0; /* another thread changes the input */
        if (find_entry(entries, count, (int64_t)tag) == count && index < top->unknown) {
            PyObject *field = pair(PyLong_FromLongLong((int64_t)tag),
                                   PyBytes_FromStringAndSize((const char *)r->p, (Py_ssize_t)n));
            if (!field) {
                Py_DecRef(list);
                return NULL;
            }
            PyList_SetItem(list, index++, field);
        }
        r->p += n;
    }
    if (index < top->unknown) PyList_SetSlice(list, index, top->unknown, NULL); /* as above */
    return list;
}

static Outcome close_tags(Reader *r) {
    const Row *step = r->row;
    Frame *top = r->top;
    top->slot = top->layout->slots + top->layout->count - 1 - step->a;
    if (put_defaults(top, step->a)) return FAILED;
    if (top->unknown ? put(r, unknown_fields(r, step + 1, step->a)) : put_defaults(top, 1)) return FAILED;
    close_struct(r);
    r->row = r->job->rows + step->b;
    return DONE;
}

static Outcome next_tag(Reader *r) {
    const Row *step = r->row, *entries = step + 1;
    Frame *top = r->top;
    uint64_t tag, n;
    if (top->tags_left-- == 0) return close_tags(r);
    if (!read_varint(r, VARINT_BYTES, &tag) || (int64_t)tag <= top->last_tag || tag > MAX_TAG) return REJECTED;
    if (!read_varint(r, VARINT_BYTES, &n) || n > (uint64_t)(r->end - r->p)) return REJECTED;
    top->last_tag = (int64_t)tag;
    const int64_t index = find_entry(entries, step->a, (int64_t)tag);
    if (index < 0) return REJECTED;
    if (index == step->a) {
        top->unknown++;
        r->p += n;
        return DONE;
    }
    top->outer_end = r->end;
    r->end = r->p + n;
    top->slot = top->layout->slots + top->layout->count - 1 - step->a + index;
    r->row = r->job->rows + entries[index].c;
    return DONE;
}

static Outcome end_tag(Reader *r) {
    if (r->p != r->end) return REJECTED;
    r->end = r->top->outer_end;
    r->row = r->job->rows + r->row->a;
    return DONE;
}

static Outcome read_frame_length(Reader *r) {
    if (r->end - r->p < 4) return REJECTED;
    const int64_t n = big32(r->p);
    r->p += 4;
    if (n < 0 || n > r->end - r->p) return REJECTED;
    r->end = r->p + n;
    r->row++;
    return DONE;
}

/* The rows of structs with fields that are tagged in other versions: values are out of the order of the class. */
static Outcome move(Reader *r) {
    Frame *top = r->top;
    switch (r->row->op) {
    case MARK: r->marked = 1; break;
    case SEEK:
        top->kept = top->slot;
        top->slot = top->layout->slots + r->row->a;
        break;
    case BACK: top->slot = top->kept; break;
    case SKIP: top->slot++; break;
    default: r->top--; /* PERMUTE */
    }
    r->row++;
    return DONE;
}

/* Follow the rows to the end of the message. */
static Outcome read_rows(Reader *r) {
    for (;;) {
        Outcome outcome;
        switch (r->row->op) {
        case STRUCT: outcome = read_struct(r); break;
        case FIXED: outcome = read_fixed(r); break;
        case STRING: outcome = read_string(r); break;
        case BYTES: outcome = read_bytes(r); break;
        case LIST: outcome = read_list(r); break;
        case VARLIST: outcome = read_packed_list(r); break;
        case ARRAY: outcome = read_array(r); break;
        case NEXT: outcome = next_element(r); break;
        case NULLABLE: outcome = read_nullable(r); break;
        case ABSENT: outcome = put_absent(r); break;
        case TAGS: outcome = open_tags(r); break;
        case TAG_STEP: outcome = next_tag(r); break;
        case TAG_END: outcome = end_tag(r); break;
        case VARINTS: outcome = read_packed_run(r); break;
        case LENGTH: outcome = read_frame_length(r); break;
        case END: return DONE;
        default: outcome = move(r);
        }
        if (outcome) return outcome;
    }
}

PyObject *read_message(PyObject *data, const Job *job, int64_t start, int views, int partial, int64_t *position) {
    Py_buffer view;
    Outcome outcome = REJECTED;
    Reader reader;
    reader.message = reader.view = NULL;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    if (start >= 0 && start <= view.len) {
        const int was_on = view.len - start >= SHORT_MESSAGE && PyGC_Disable();
        reader.data = data;
        reader.source = view.buf;
        reader.p = reader.source + start;
        reader.end = reader.source + view.len;
        reader.job = job;
        reader.row = job->rows;
        reader.views = views;
        reader.marked = 0;
        for (int i = 0; i < MEMOS; i++) reader.memos[i].object = NULL;
        reader.last_list.number = 0;
        reader.frames[0] = (Frame){.kind = ROOT};
        reader.top = reader.frames;
        outcome = read_rows(&reader);
        *position = reader.p - reader.source;
        const int is_short = job->rows->op == LENGTH && reader.p < reader.end;
        if (outcome == DONE && (is_short || (!partial && *position < view.len))) outcome = REJECTED;
        if (reader.view) Py_DecRef(reader.view);
        if (was_on) PyGC_Enable();
    }
    PyBuffer_Release(&view);
    if (outcome == DONE || !reader.message) return reader.message;
    Py_DecRef(reader.message);
    return NULL;
}
