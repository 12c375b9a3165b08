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
    Position at;          /* in a struct */
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
    const uint8_t *source;
    Cursor input;
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

/* Values: each function returns a new reference, or null with an exception. */

static PyObject *new_struct(const Layout *layout);

/* Make the default of a field. Each object has its own lists and structs: only what cannot be changed is shared. */
static inline PyObject *new_default(const Slot *slot) {
    if (slot->value) return new_reference(slot->value);
    return slot->layout ? new_struct(slot->layout) : PyList_New(0);
}

/* Make a struct in which all fields have their defaults. Such structs are nested as deep as their definition is. */
static PyObject *new_struct(const Layout *layout) {
    PyObject *made = layout->allocate(layout->type, 0);
    if (!made) return NULL;
    for (const Slot *slot = layout->slots, *end = slot + layout->count; slot < end; slot++)
        if (!(*field_of(made, slot) = new_default(slot))) {
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
        *field_of(made, &layout->slots[0]) = number;
        *field_of(made, &layout->slots[1]) = new_reference(layout->slots[1].value);
    } else if (number) {
        Py_DecRef(number);
    }
    return made;
}

/* Make an integer, or use the last one of the field again. */
static inline PyObject *new_integer(Reader *r, const Slot *slot, int64_t number) {
    if (number >= SMALLEST_SHARED && number <= LARGEST_SHARED) return PyLong_FromLong((long)number);
    Memo *memo = memo_of(r, slot);
    if (memo->object && memo->number == number && !memo->bytes) return new_reference(memo->object);
    memo->bytes = NULL;
    memo->number = number;
    return memo->object = PyLong_FromLongLong(number);
}

/* Make a value of fixed width from bytes that have been taken, and go on to the next one. */
static inline PyObject *new_fixed(Reader *r, const Slot *slot, int64_t code, const uint8_t **bytes) {
    const uint8_t *p = *bytes;
    switch (code) {
    case INT32: *bytes += 4; return new_integer(r, slot, big32(p));
    case INT16: *bytes += 2; return PyLong_FromLong(big16(p));
    case INT64: *bytes += 8; return new_integer(r, slot, big64(p));
    case BOOL: *bytes += 1; return new_reference(*p ? &_Py_TrueStruct : &_Py_FalseStruct);
    case INT8: *bytes += 1; return PyLong_FromLong((int8_t)*p);
    case UINT16: *bytes += 2; return PyLong_FromLong((uint16_t)big16(p));
    case UINT32: *bytes += 4; return PyLong_FromLongLong((uint32_t)big32(p));
    case FLOAT64: {
        const int64_t bits = big64(p);
        double number;
        memcpy(&number, &bits, 8);
        *bytes += 8;
        return PyFloat_FromDouble(number);
    }
    default: *bytes += UUID_BYTES; return new_uuid(p, r->job->uuid);
    }
}

/* Places */

/* Put a value, whose reference is taken, into its place. A null value is an error. */
static inline Outcome put(Reader *r, PyObject *value) {
    Frame *top = r->top;
    if (!value) return FAILED;
    switch (top->kind) {
    case STRUCT_OF: *field_of(top->object, top->at.slot++) = value; return DONE;
    case ARRAY_OF: return PyList_SetItem(top->object, top->index++, value) ? FAILED : DONE;
    case PAIR: return PyTuple_SetItem(top->object, top->index++, value) ? FAILED : DONE;
    default: r->message = value; return DONE;
    }
}

/* Set the next `count` fields to their defaults where they have no value. */
static inline Outcome put_defaults(Frame *top, int64_t count) {
    for (; count; count--, top->at.slot++) {
        PyObject **at = field_of(top->object, top->at.slot);
        if (!*at && !(*at = new_default(top->at.slot))) return FAILED;
    }
    return DONE;
}

static inline Frame *push(Reader *r, Kind kind, PyObject *object) {
    Frame *top = ++r->top;
    top->kind = kind;
    top->object = object;
    top->at.slot = NULL;
    top->index = 0;
    return top;
}

/* Leave a struct whose fields all have values, unless it is marked: then PERMUTE follows. */
static inline void close_struct(Reader *r) {
    if (!r->top->is_marked) r->top--;
}

/* Rows: each function does what a row says, and sets the next one. */

static inline Outcome read_struct(Reader *r) {
    const Layout *layout = (const Layout *)r->row->layout;
    PyObject *made = layout ? layout->allocate(layout->type, 0) : PyTuple_New(r->row->count);
    if (put(r, made)) return FAILED;
    Frame *top = push(r, layout ? STRUCT_OF : PAIR, made);
    top->at.layout = layout;
    if (layout) top->at.slot = layout->slots;
    top->is_flexible = r->row->flexible != 0;
    top->is_marked = r->marked;
    r->marked = 0;
    r->row++;
    return DONE;
}

static inline Outcome read_fixed(Reader *r) {
    const Row *row = r->row;
    const uint8_t *bytes = take(&r->input, row->bytes);
    if (!bytes) return REJECTED;
    uint64_t codes = (uint64_t)row->codes;
    PyObject *object = r->top->object;
    const Slot *slot = r->top->at.slot;
    for (const Slot *last = slot + row->count; slot < last; slot++, codes >>= 4)
        if (!(*field_of(object, slot) = new_fixed(r, slot, codes & 15, &bytes))) return FAILED;
    r->top->at.slot = slot;
    r->row++;
    return DONE;
}

static Outcome read_packed_run(Reader *r) {
    uint64_t codes = (uint64_t)r->row->codes;
    for (int64_t n = r->row->count; n; n--, codes >>= 4) {
        int64_t number;
        if (!take_packed(&r->input, codes & 15, &number)) return REJECTED;
        if (put(r, PyLong_FromLongLong(number))) return FAILED;
    }
    r->row++;
    return DONE;
}

static inline Outcome read_string(Reader *r) {
    const int64_t n = take_length(&r->input, r->row);
    if (n == -2 || n > MAX_STRING_BYTES) return REJECTED;
    r->row++;
    if (n < 0) return put(r, new_reference(&_Py_NoneStruct));
    const uint8_t *bytes = take(&r->input, n);
    if (!bytes) return REJECTED;
    Memo *memo = memo_of(r, r->top->at.slot);
    if (memo->object && memo->bytes && memo->number == n && !memcmp(memo->bytes, bytes, n))
        return put(r, new_reference(memo->object));
    PyObject *text = PyUnicode_DecodeUTF8((const char *)bytes, n, NULL);
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
        PyErr_Clear();
        return REJECTED;
    }
    *memo = (Memo){text, bytes, n};
    return put(r, text);
}

/* Make a memoryview of n bytes of the input. */
static PyObject *new_view(Reader *r, const uint8_t *bytes, int64_t n) {
    if (!r->view) {
        PyObject *whole = PyMemoryView_FromObject(r->data);
        r->view = whole ? PyObject_CallMethod(whole, "cast", "s", "B") : NULL;
        if (whole) Py_DecRef(whole);
    }
    return r->view ? PySequence_GetSlice(r->view, bytes - r->source, bytes - r->source + n) : NULL;
}

static inline Outcome read_bytes(Reader *r) {
    const int64_t n = take_length(&r->input, r->row);
    PyObject *value;
    if (n < 0) {
        if (n == -2) return REJECTED;
        value = new_reference(&_Py_NoneStruct);
    } else {
        const uint8_t *bytes = take(&r->input, n);
        if (!bytes) return REJECTED;
        value = r->views ? new_view(r, bytes, n) : PyBytes_FromStringAndSize((const char *)bytes, n);
    }
    r->row++;
    return put(r, value);
}

/* Read an array of numbers. One that equals the last one, as in-sync replicas do, is copied from it. */
static inline Outcome read_list(Reader *r) {
    const int64_t n = take_length(&r->input, r->row), code = r->row->code, width = r->row->width;
    if (n == -2) return REJECTED;
    r->row++;
    if (n < 0) return put(r, new_reference(&_Py_NoneStruct));
    if (n == 0) return put(r, PyList_New(0));
    const uint8_t *bytes = take(&r->input, n * width);
    if (!bytes) return REJECTED;
    Memo *last = &r->last_list;
    const int64_t kind = n << 4 | code;
    if (last->number == kind && !memcmp(last->bytes, bytes, n * width))
        return put(r, PyList_GetSlice(last->object, 0, n));
    last->bytes = bytes;
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    for (int64_t i = 0; i < n; i++) {
        PyObject *value = new_fixed(r, NULL, code, &bytes);
        if (!value) return FAILED;
        PyList_SetItem(list, i, value);
    }
    last->object = list;
    last->number = kind;
    return DONE;
}

static Outcome read_packed_list(Reader *r) {
    const int64_t n = take_length(&r->input, r->row), code = r->row->code;
    if (n == -2 || n > bytes_left(&r->input)) return REJECTED; /* each takes a byte at least */
    r->row++;
    if (n < 0) return put(r, new_reference(&_Py_NoneStruct));
    if (n == 0) return put(r, PyList_New(0));
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    for (int64_t i = 0; i < n; i++) {
        int64_t number;
        if (!take_packed(&r->input, code, &number)) return REJECTED;
        PyObject *value = PyLong_FromLongLong(number);
        if (!value) return FAILED;
        PyList_SetItem(list, i, value);
    }
    return DONE;
}

static inline Outcome read_array(Reader *r) {
    const Row *row = r->row;
    const int64_t n = take_length(&r->input, row);
    if (n == -2 || (n > 0 && n * row->min_bytes > bytes_left(&r->input))) return REJECTED;
    if (n <= 0) {
        r->row = r->job->rows + row->end;
        return n ? put(r, new_reference(&_Py_NoneStruct)) : put(r, PyList_New(0));
    }
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    push(r, ARRAY_OF, list)->count = n;
    r->row++;
    return DONE;
}

static inline Outcome next_element(Reader *r) {
    if (r->top->index < r->top->count) {
        r->row = r->job->rows + r->row->target;
    } else {
        r->top--;
        r->row++;
    }
    return DONE;
}

static Outcome read_nullable(Reader *r) {
    int is_present;
    if (!take_presence(&r->input, r->row, &is_present)) return REJECTED;
    if (is_present) {
        r->row++;
        return DONE;
    }
    r->row = r->job->rows + r->row->end;
    return put(r, new_reference(&_Py_NoneStruct));
}

static inline Outcome put_absent(Reader *r) {
    const Row *row = r->row;
    if (put_defaults(r->top, row->rows)) return FAILED;
    if (row->trailing && !r->top->is_flexible) close_struct(r);
    r->row += row->rows;
    return DONE;
}

static inline Outcome open_tags(Reader *r) {
    Frame *top = r->top;
    int64_t n;
    if (!take_tag_count(&r->input, &n)) return REJECTED;
    if (n == 0) {
        if (put_defaults(top, top->at.layout->slots + top->at.layout->count - top->at.slot)) return FAILED;
        close_struct(r);
        r->row = r->job->rows + r->row->end;
        return DONE;
    }
    top->tags = top->tags_left = n;
    top->last_tag = -1;
    top->unknown = 0;
    top->section = r->input.at;
    r->row++;
    return DONE;
}

/* Make the list of the unknown fields of a section, in a second pass over it. */
static PyObject *unknown_fields(Reader *r, const Row *entries, int64_t count) {
    const Frame *top = r->top;
    PyObject *list = PyList_New(top->unknown);
    if (!list) return NULL;
    Cursor section = {top->section, r->input.at};
    int64_t index = 0, tag = -1, n;
    for (int64_t i = 0; i < top->tags && take_tag(&section, tag, &tag, &n); i++) {
        const uint8_t *bytes = take(&section, n);
        if (find_entry(entries, count, tag) != count || index == top->unknown) continue;
        PyObject *field = pair(PyLong_FromLongLong(tag), PyBytes_FromStringAndSize((const char *)bytes, n));
        if (!field) {
            Py_DecRef(list);
            return NULL;
        }
        PyList_SetItem(list, index++, field);
    }
    /* Fewer than before only if another thread changes the input. */
    if (index < top->unknown) PyList_SetSlice(list, index, top->unknown, NULL);
    return list;
}

static Outcome close_tags(Reader *r) {
    const Row *step = r->row;
    Frame *top = r->top;
    top->at.slot = top->at.layout->slots + top->at.layout->count - 1 - step->entries;
    if (put_defaults(top, step->entries)) return FAILED;
    if (top->unknown ? put(r, unknown_fields(r, step + 1, step->entries)) : put_defaults(top, 1)) return FAILED;
    close_struct(r);
    r->row = r->job->rows + step->end;
    return DONE;
}

static Outcome next_tag(Reader *r) {
    const Row *step = r->row, *entries = step + 1;
    Frame *top = r->top;
    int64_t n;
    if (top->tags_left-- == 0) return close_tags(r);
    if (!take_tag(&r->input, top->last_tag, &top->last_tag, &n)) return REJECTED;
    const int64_t index = find_entry(entries, step->entries, top->last_tag);
    if (index < 0) return REJECTED;
    const uint8_t *bytes = take(&r->input, n);
    if (index == step->entries) {
        top->unknown++;
        return DONE;
    }
    top->outer_end = r->input.end;
    r->input = (Cursor){bytes, bytes + n};
    top->at.slot = top->at.layout->slots + top->at.layout->count - 1 - step->entries + index;
    r->row = r->job->rows + entries[index].sub;
    return DONE;
}

static Outcome end_tag(Reader *r) {
    if (r->input.at != r->input.end) return REJECTED;
    r->input.end = r->top->outer_end;
    r->row = r->job->rows + r->row->target;
    return DONE;
}

static Outcome read_frame_length(Reader *r) {
    const uint8_t *bytes = take(&r->input, 4);
    const int64_t n = bytes ? big32(bytes) : -1;
    if (n < 0 || n > bytes_left(&r->input)) return REJECTED;
    r->input.end = r->input.at + n;
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
        default:
            MOVE(r);
            outcome = DONE;
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
        reader.input = (Cursor){reader.source + start, reader.source + view.len};
        reader.job = job;
        reader.row = job->rows;
        reader.views = views;
        reader.marked = 0;
        for (int i = 0; i < MEMOS; i++) reader.memos[i].object = NULL;
        reader.last_list.number = 0;
        reader.frames[0] = (Frame){.kind = ROOT};
        reader.top = reader.frames;
        outcome = read_rows(&reader);
        *position = reader.input.at - reader.source;
        const int is_short = job->rows->op == LENGTH && bytes_left(&reader.input) > 0;
        if (outcome == DONE && (is_short || (!partial && *position < view.len))) outcome = REJECTED;
        if (reader.view) Py_DecRef(reader.view);
        if (was_on) PyGC_Enable();
    }
    PyBuffer_Release(&view);
    if (outcome == DONE || !reader.message) return reader.message;
    Py_DecRef(reader.message);
    return NULL;
}
