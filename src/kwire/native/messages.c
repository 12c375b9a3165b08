/* Messages: from bytes to objects, by the rows of a plan (kwire.plan.rows).
 *
 * Each value is created once, from the bytes of the input, and goes to its place in a struct or list. Objects that are
 * not complete have null slots, which their deallocators skip; nothing else sees them. The collector is off meanwhile:
 * a message contains no cycles, and looking for some among its new lists took a third of the time.
 *
 * Every byte is checked against the end of the input before it is read. Input that the plan does not accept is left to
 * the walker (kwire.plan.reading), which raises the error, or accepts it if it is lenient.
 */
#include "native.h"
#include "plan.h"

typedef struct {
    int64_t op, a, b, c, d, e, f, g;
} Row;

/* The layout of a class, which kwire.plan.layouts writes: the offset of each field in an object, and its default. */
typedef struct {
    int64_t offset, kind;
    void *value; /* CONSTANT: the object; NEW_STRUCT: its Layout */
} Slot;

typedef struct {
    PyObject *type;
    PyObject *(*allocate)(PyObject *, Py_ssize_t);
    int64_t count;
    Slot slots[];
} Layout;

/* What message_codec keeps of a plan: rows, in which operand g of STRUCT is the address of a Layout, 0 for the pair of
 * a frame; the constants; and the bytes of output to reserve for eight of input when encoding. The last one grows when
 * it was too small. */
typedef struct {
    const Row *rows;
    const char *constants;
    int64_t encode_eighths;
    const Layout *uuid;
} Job;

/* What takes the next value: a struct, a list, or the pair of a frame. */
typedef struct {
    PyObject *object;
    const Layout *layout; /* null unless a struct */
    const Slot *slot;     /* of a struct: the next one */
    const Slot *kept;     /* the next one before SEEK */
    int64_t index, count; /* of a list or pair: the next element */
    int is_pair, is_marked, is_flexible;
    /* of a tag section */
    int64_t tags, tags_left, last_tag, unknown;
    const uint8_t *section, *outer_end;
} Frame;

typedef struct {
    PyObject *data; /* the input, for views of it */
    const uint8_t *source, *p, *end;
    const Job *job;
    const Row *row;
    Frame *top;
    int views, marked;
    Frame frames[MAX_FRAMES]; /* the first one takes the message */
} Reader;

/* Shorter input makes too few lists for the collector to run. */
enum { SHORT_MESSAGE = 256 };

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

static inline PyObject *shared(PyObject *object) {
    Py_IncRef(object);
    return object;
}

static inline PyObject **place(PyObject *object, const Slot *slot) {
    return (PyObject **)((char *)object + slot->offset);
}

static PyObject *new_struct(const Layout *layout);

static PyObject *new_default(const Slot *slot) {
    if (slot->kind == CONSTANT) return shared(slot->value);
    return slot->kind == NEW_LIST ? PyList_New(0) : new_struct(slot->value);
}

static PyObject *new_struct(const Layout *layout) {
    PyObject *made = layout->allocate(layout->type, 0);
    for (int64_t i = 0; made && i < layout->count; i++)
        if (!(*place(made, &layout->slots[i]) = new_default(&layout->slots[i]))) {
            Py_DecRef(made);
            return NULL;
        }
    return made;
}

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

/* Make a value of fixed width from bytes that have been checked. */
static inline PyObject *new_fixed(Reader *r, int64_t code) {
    const uint8_t *p = r->p;
    switch (code) {
    case INT32: r->p += 4; return PyLong_FromLong(big32(p));
    case INT16: r->p += 2; return PyLong_FromLong(big16(p));
    case INT64: r->p += 8; return PyLong_FromLongLong((int64_t)big64(p));
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
    if (top->layout) {
        *place(top->object, top->slot++) = value;
        return DONE;
    }
    return (top->is_pair ? PyTuple_SetItem : PyList_SetItem)(top->object, top->index++, value) ? FAILED : DONE;
}

/* Give the class's defaults to those of the next `count` fields that have no value. */
static inline Outcome put_defaults(Frame *top, int64_t count) {
    for (; count; count--, top->slot++) {
        PyObject **at = place(top->object, top->slot);
        if (!*at && !(*at = new_default(top->slot))) return FAILED;
    }
    return DONE;
}

static inline Frame *push(Reader *r, PyObject *object) {
    Frame *top = ++r->top;
    top->object = object;
    top->layout = NULL;
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
    Frame *top = push(r, made);
    top->layout = layout;
    top->slot = layout ? layout->slots : NULL;
    top->is_pair = !layout;
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
        if (!(*place(object, slot) = new_fixed(r, codes & 15))) return FAILED;
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
    PyObject *text;
    if (n < 0) {
        if (n == -2) return REJECTED;
        text = shared(&_Py_NoneStruct);
    } else {
        if (n > r->end - r->p || n > MAX_STRING_BYTES) return REJECTED;
        text = PyUnicode_DecodeUTF8((const char *)r->p, n, NULL);
        if (!text && PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) {
            PyErr_Clear();
            return REJECTED;
        }
        r->p += n;
    }
    r->row++;
    return put(r, text);
}

static inline Outcome read_bytes(Reader *r) {
    const int64_t n = read_length(r), at = r->p - r->source;
    PyObject *value;
    if (n < 0) {
        if (n == -2) return REJECTED;
        value = shared(&_Py_NoneStruct);
    } else {
        if (n > r->end - r->p) return REJECTED;
        value = r->views ? PySequence_GetSlice(r->data, at, at + n) : PyBytes_FromStringAndSize((const char *)r->p, n);
        r->p += n;
    }
    r->row++;
    return put(r, value);
}

static inline Outcome read_list(Reader *r, int is_packed) {
    const int64_t n = read_length(r), code = r->row->b;
    if (n == -2 || (n > 0 && n * (is_packed ? 1 : r->row->c) > r->end - r->p)) return REJECTED;
    r->row++;
    if (n < 0) return put(r, shared(&_Py_NoneStruct));
    PyObject *list = PyList_New(n);
    if (put(r, list)) return FAILED;
    for (int64_t i = 0; i < n; i++) {
        int64_t number;
        if (is_packed && !read_packed(r, code, &number)) return REJECTED;
        PyObject *value = is_packed ? PyLong_FromLongLong(number) : new_fixed(r, code);
        if (!value) return FAILED;
        PyList_SetItem(list, i, value);
    }
    return DONE;
}

static inline Outcome read_array(Reader *r) {
    const Row *row = r->row;
    const int64_t n = read_length(r);
    if (n == -2 || (n > 0 && n * row->c > r->end - r->p)) return REJECTED;
    PyObject *list = n < 0 ? shared(&_Py_NoneStruct) : PyList_New(n);
    if (put(r, list)) return FAILED;
    if (n <= 0) {
        r->row = r->job->rows + row->b;
        return DONE;
    }
    Frame *top = push(r, list);
    top->is_pair = 0;
    top->count = n;
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
    for (int64_t i = 0, index = 0; i < top->tags; i++) {
        uint64_t tag = 0, n = 0;
        read_varint(r, VARINT_BYTES, &tag);
        read_varint(r, VARINT_BYTES, &n);
        if (find_entry(entries, count, (int64_t)tag) == count) {
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
        case LIST: outcome = read_list(r, 0); break;
        case VARLIST: outcome = read_list(r, 1); break;
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

/* Read a message at `start`: a new reference, or null: rejected, or an exception. partial: bytes may follow; *position
 * is where they start. */
static PyObject *read_message(PyObject *data, const Job *job, int64_t start, int views, int partial, int64_t *position) {
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    PyObject *message = NULL, *root = start >= 0 && start <= view.len ? PyList_New(1) : NULL;
    if (root) {
        const int was_on = view.len - start >= SHORT_MESSAGE && PyGC_Disable();
        Reader reader;
        reader.data = data;
        reader.source = view.buf;
        reader.p = reader.source + start;
        reader.end = reader.source + view.len;
        reader.job = job;
        reader.row = job->rows;
        reader.views = views;
        reader.marked = 0;
        reader.top = reader.frames - 1;
        push(&reader, root)->is_pair = 0;
        const Outcome outcome = read_rows(&reader);
        const int is_framed = job->rows->op == LENGTH;
        *position = reader.p - reader.source;
        if (outcome == DONE && (!is_framed || reader.p == reader.end) && (partial || *position == view.len))
            message = shared(PyList_GetItem(root, 0));
        Py_DecRef(root);
        if (was_on) PyGC_Enable();
    }
    PyBuffer_Release(&view);
    return message;
}

/* Calls from Python. `self` of both functions: the tuple (address of a Job, walk, what the Job refers to). */

/* Assign the arguments of a call to the parameters, of which the first `required` have no default; 0 on an error. */
static int assign(PyObject *const *objects, Py_ssize_t count, PyObject *keywords, const char *const *names,
                  Py_ssize_t required, PyObject **values) {
    Py_ssize_t most = 0, named = keywords ? PyTuple_Size(keywords) : 0;
    while (names[most]) most++;
    for (Py_ssize_t i = 0; i < most; i++) values[i] = i < count ? objects[i] : NULL;
    if (count > most) {
        PyErr_Format(PyExc_TypeError, "takes %zd positional arguments, got %zd", most, count);
        return 0;
    }
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = PyTuple_GetItem(keywords, k);
        Py_ssize_t i = 0;
        while (i < most && PyUnicode_CompareWithASCIIString(name, names[i])) i++;
        if (i == most || values[i]) {
            PyErr_Format(PyExc_TypeError, "%s argument '%U'", i == most ? "unexpected keyword" : "multiple values for",
                         name);
            return 0;
        }
        values[i] = objects[count + k];
    }
    for (Py_ssize_t i = 0; i < required; i++)
        if (!values[i]) {
            PyErr_Format(PyExc_TypeError, "missing argument '%s'", names[i]);
            return 0;
        }
    return 1;
}

static int is_true(PyObject *value) { return value ? PyObject_IsTrue(value) : 0; }

static PyObject *flag(int is_set) { return is_set ? &_Py_TrueStruct : &_Py_FalseStruct; }

/* Read a message with compiled code, else with the walker: (object, position after it). */
static PyObject *read_or_walk(PyObject *self, PyObject *data, int64_t start, int views, int lenient, int partial,
                              int allow_trailing, int64_t *position) {
    const Job *job = (const Job *)PyLong_AsLongLong(PyTuple_GetItem(self, 0));
    PyObject *source = data;
    if (views) {
        PyObject *view = PyMemoryView_FromObject(data);
        source = view ? PyObject_CallMethod(view, "cast", "s", "B") : NULL;
        if (view) Py_DecRef(view);
        if (!source) return NULL;
    }
    PyObject *message = read_message(source, job, start, views, partial, position);
    if (views) Py_DecRef(source);
    if (message || PyErr_Occurred()) return message;
    PyObject *found = PyObject_CallFunction(PyTuple_GetItem(self, 1), "OLOOOO", data, (long long)start, flag(views),
                                            flag(lenient), flag(partial), flag(allow_trailing));
    if (!found) return NULL;
    PyObject *after = PyTuple_GetItem(found, 1);
    message = PyTuple_GetItem(found, 0);
    if (after && message) {
        *position = PyLong_AsLongLong(after);
        Py_IncRef(message);
    }
    Py_DecRef(found);
    return message;
}

static PyObject *decode(PyObject *self, PyObject *const *objects, Py_ssize_t count, PyObject *keywords) {
    static const char *const names[] = {"data", "views", "lenient", "allow_trailing", NULL};
    PyObject *values[4];
    int64_t position;
    if (!assign(objects, count, keywords, names, 1, values)) return NULL;
    const int views = is_true(values[1]), lenient = is_true(values[2]), trailing = is_true(values[3]);
    if (views < 0 || lenient < 0 || trailing < 0) return NULL;
    return read_or_walk(self, values[0], 0, views, lenient, 0, trailing, &position);
}

static PyObject *decode_from(PyObject *self, PyObject *const *objects, Py_ssize_t count, PyObject *keywords) {
    static const char *const names[] = {"data", "pos", "views", "lenient", NULL};
    PyObject *values[4];
    int64_t position;
    if (!assign(objects, count, keywords, names, 2, values)) return NULL;
    const int64_t start = PyLong_AsLongLong(values[1]);
    if (start == -1 && PyErr_Occurred()) return NULL;
    const int views = is_true(values[2]), lenient = is_true(values[3]);
    if (views < 0 || lenient < 0) return NULL;
    PyObject *message = read_or_walk(self, values[0], start, views, lenient, 1, 0, &position);
    return message ? pair(message, PyLong_FromLongLong(position)) : NULL;
}

static PyMethodDef decode_methods[] = {
    {"decode", (PyCFunction)(void *)decode, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"decode_from", (PyCFunction)(void *)decode_from, METH_FASTCALL | METH_KEYWORDS, NULL},
};

PyObject *decoders(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    if (count != 3) return PyErr_Format(PyExc_TypeError, "takes 3 arguments, got %zd", count);
    PyObject *self = PyTuple_New(3), *found = NULL;
    for (Py_ssize_t i = 0; self && i < 3; i++) PyTuple_SetItem(self, i, shared(objects[i]));
    if (self) {
        found = pair(PyCFunction_NewEx(&decode_methods[0], self, NULL), PyCFunction_NewEx(&decode_methods[1], self, NULL));
        Py_DecRef(self);
    }
    return found;
}

PyObject *slots(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    if (count != 1) return PyErr_Format(PyExc_TypeError, "takes 1 argument, got %zd", count);
    PyObject *offsets = PyDict_New();
    const PyMemberDef *members = PyType_GetSlot(objects[0], Py_tp_members);
    for (; offsets && members && members->name; members++) {
        PyObject *offset = PyLong_FromLongLong(members->offset);
        if (!offset || PyDict_SetItemString(offsets, members->name, offset) < 0) return NULL;
        Py_DecRef(offset);
    }
    return pair(PyLong_FromLongLong((int64_t)PyType_GetSlot(objects[0], Py_tp_alloc)), offsets);
}

/* Encoding */

enum { SMALL_BYTES = 2048, MAX_EIGHTHS = 2048 };

PyObject *encode(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    int64_t address;
    if (!read_integers(objects, count, 1, &address)) return NULL;
    Job *job = (Job *)address;
    Py_buffer view;
    if (PyObject_GetBuffer(objects[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    const Kernel kernel = encode_kernel();
    char small[SMALL_BYTES], room[MAX_DEPTH * FRAME];
    int64_t capacity = job->encode_eighths * view.len / 8;
    if (capacity < SMALL_BYTES - SLACK) capacity = SMALL_BYTES - SLACK;
    capacity += SLACK;
    PyObject *exact = NULL;
    for (;;) {
        PyObject *made = NULL;
        char *out = small;
        if (capacity > SMALL_BYTES) {
            made = PyBytes_FromStringAndSize(NULL, capacity);
            if (!made) break;
            out = PyBytes_AsString(made);
        }
        const int64_t arguments[] = {
            (int64_t)view.buf, view.len, (int64_t)out, capacity, (int64_t)job->rows, (int64_t)job->constants, (int64_t)room};
        int64_t written;
        kernel(arguments, &written);
        if (written >= 0) exact = PyBytes_FromStringAndSize(out, written); /* _PyBytes_Resize is not in the stable ABI */
        if (made) Py_DecRef(made);
        if (written >= 0) break;
        if (written != FULL) {
            exact = none();
            break;
        }
        capacity *= 4;
        if (job->encode_eighths * 2 < MAX_EIGHTHS) job->encode_eighths *= 2;
    }
    PyBuffer_Release(&view);
    return exact;
}
