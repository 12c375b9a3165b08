/* Records as objects. Reading: a kernel finds the fields of some records, and this code creates the objects. Writing:
 * this code encodes records of magic 2 at the end of a bytearray, and leaves those with unusual fields to Python.
 *
 * The class and the offsets of its fields in an object are those of a factory. The collector does not track records:
 * see kwire.records.record.
 */
#include "native.h"
#include "locate.h"
#include "record_layout.h"

enum { RECORD_FIELDS = 8, TIMESTAMP_TYPES = 3, KNOWN_KEYS = 8 };
enum { R_OFFSET, R_TIMESTAMP, R_TIMESTAMP_TYPE, R_KEY, R_VALUE, R_HEADERS, R_SEQUENCE, R_LEADER_EPOCH };

typedef struct {
    PyObject *type;
    PyObject *(*allocate)(PyObject *, Py_ssize_t);
    int64_t offsets[RECORD_FIELDS];
    PyObject *timestamp_types[TIMESTAMP_TYPES]; /* by number, from -1 on */
    PyObject *decode_key;
} Factory;

/* A header key that was decoded before; most records of a batch have the same ones. */
typedef struct {
    const char *at;
    int64_t size;
    PyObject *text;
} KnownKey;

static PyObject *held(PyObject *object) {
    Py_IncRef(object);
    return object;
}

static PyObject *numbers_tuple(const int64_t *numbers, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++) {
        PyObject *item = PyLong_FromLongLong(numbers[i]);
        if (!item || PyTuple_SetItem(tuple, i, item) < 0) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

static void free_factory(Factory *factory) {
    PyObject *owned[] = {factory->type, factory->decode_key, factory->timestamp_types[0], factory->timestamp_types[1],
                         factory->timestamp_types[2]};
    PyMem_Free(factory);
    for (int i = 0; i < 2 + TIMESTAMP_TYPES; i++)
        if (owned[i]) Py_DecRef(owned[i]);
}

static void free_capsule(PyObject *capsule) { free_factory(PyCapsule_GetPointer(capsule, NULL)); }

static int fill_factory(Factory *factory, PyObject *const *objects, Py_ssize_t count) {
    if (count < 3) {
        PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", 3 + RECORD_FIELDS, count);
        return 0;
    }
    if (!read_integers(objects + 2, count - 2, RECORD_FIELDS, factory->offsets)) return 0;
    factory->type = held(objects[0]);
    factory->allocate = PyType_GetSlot(objects[0], Py_tp_alloc);
    factory->decode_key = held(objects[2]);
    for (int i = 0; i < TIMESTAMP_TYPES; i++) {
        PyObject *type = PyTuple_GetItem(objects[1], i);
        if (!type) return 0;
        factory->timestamp_types[i] = held(type);
    }
    return 1;
}

PyObject *record_factory(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    Factory *made = PyMem_Malloc(sizeof *made);
    if (!made) return PyErr_NoMemory();
    *made = (Factory){0};
    PyObject *capsule = fill_factory(made, objects, count) ? PyCapsule_New(made, NULL, free_capsule) : NULL;
    if (!capsule) free_factory(made);
    return capsule;
}

/* Read a number that the kernel has checked, and not past the end. */
static int64_t read_number(const char **at, const char *end) {
    uint32_t bits = 0;
    for (int shift = 0; *at < end && shift < 35; shift += 7) {
        uint8_t byte = (uint8_t)*(*at)++;
        bits |= (uint32_t)(byte & 0x7F) << shift;
        if (byte < 0x80) break;
    }
    return (int32_t)(bits >> 1 ^ -(bits & 1));
}

static int equal(const char *a, const char *b, int64_t size) {
    for (; size >= 8; a += 8, b += 8, size -= 8) {
        uint64_t x, y;
        memcpy(&x, a, 8);
        memcpy(&y, b, 8);
        if (x != y) return 0;
    }
    while (size--)
        if (*a++ != *b++) return 0;
    return 1;
}

static PyObject *header_key(const Factory *factory, const char *at, int64_t size, KnownKey *known) {
    if (known->text && known->size == size && equal(known->at, at, size)) return held(known->text);
    PyObject *text = PyUnicode_DecodeUTF8(at, size, NULL);
    if (!text) { /* not UTF-8: as Java decodes it */
        PyErr_Clear();
        PyObject *raw = PyBytes_FromStringAndSize(at, size);
        text = raw ? PyObject_CallFunctionObjArgs(factory->decode_key, raw, NULL) : NULL;
        if (raw) Py_DecRef(raw);
    }
    if (text) {
        if (known->text) Py_DecRef(known->text);
        *known = (KnownKey){at, size, held(text)};
    }
    return text;
}

static PyObject *bytes_or_none(const char *at, int64_t size) {
    return size < 0 ? none() : PyBytes_FromStringAndSize(at, size);
}

/* The error when bytes are not those that the kernel has checked: another thread writes to the buffer. */
static PyObject *changed(void) {
    return PyErr_Format(PyExc_BufferError, "the buffer was changed while its records were read");
}

static PyObject *header(const Factory *factory, const char **at, const char *end, KnownKey *known) {
    PyObject *pair = PyTuple_New(2);
    if (!pair) return NULL;
    PyObject *part = NULL;
    for (int i = 0; i < 2; i++) {
        int64_t size = read_number(at, end);
        if (size > end - *at || (i == 0 && size < 0)) {
            part = changed();
        } else {
            part = i ? bytes_or_none(*at, size) : header_key(factory, *at, size, known);
            *at += size > 0 ? size : 0;
        }
        if (!part || PyTuple_SetItem(pair, i, part) < 0) {
            Py_DecRef(pair);
            return NULL;
        }
    }
    PyObject_GC_UnTrack(pair); /* as the collector does with tuples like this one */
    return pair;
}

static PyObject *header_list(const Factory *factory, const char *at, const char *end, KnownKey *known) {
    int64_t count = at ? read_number(&at, end) : 0;
    if (at && (count < 0 || count > end - at)) return changed();
    PyObject *list = PyList_New(count);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *pair = header(factory, &at, end, &known[i % KNOWN_KEYS]);
        if (!pair || PyList_SetItem(list, i, pair) < 0) {
            Py_DecRef(list);
            return NULL;
        }
    }
    if (list) PyObject_GC_UnTrack(list); /* a third of the time of a program that keeps records goes to tracked lists */
    return list;
}

/* Return the object of a number: that of the row before if it is the same. */
static PyObject *number(int64_t value, int64_t before, PyObject *last) {
    return last && value == before ? held(last) : PyLong_FromLongLong(value);
}

static PyObject **field(const Factory *factory, PyObject *record, int index) {
    return (PyObject **)((char *)record + factory->offsets[index]);
}

/* Make the record of a row; last: the record of the row before, or NULL. */
static PyObject *make_record(const Factory *factory, const int64_t *row, PyObject *last, PyObject *type,
                             PyObject *leader_epoch, KnownKey *known) {
    const int64_t *before = row - (last ? ROW_COLUMNS : 0);
    PyObject *fields[RECORD_FIELDS] = {
        [R_OFFSET] = PyLong_FromLongLong(row[ROW_OFFSET]),
        [R_TIMESTAMP] =
            number(row[ROW_TIMESTAMP], before[ROW_TIMESTAMP], last ? *field(factory, last, R_TIMESTAMP) : NULL),
        [R_TIMESTAMP_TYPE] = held(type),
        [R_KEY] = bytes_or_none((const char *)row[ROW_KEY], row[ROW_KEY_BYTES]),
        [R_VALUE] = bytes_or_none((const char *)row[ROW_VALUE], row[ROW_VALUE_BYTES]),
        [R_HEADERS] = header_list(factory, (const char *)row[ROW_HEADERS], (const char *)row[ROW_END], known),
        [R_SEQUENCE] =
            number(row[ROW_SEQUENCE], before[ROW_SEQUENCE], last ? *field(factory, last, R_SEQUENCE) : NULL),
        [R_LEADER_EPOCH] = held(leader_epoch),
    };
    PyObject *record = PyErr_Occurred() ? NULL : factory->allocate(factory->type, 0);
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (record)
            *field(factory, record, i) = fields[i];
        else if (fields[i])
            Py_DecRef(fields[i]);
    }
    return record;
}

static PyObject *make_records(const Factory *factory, const int64_t *rows, int64_t count, PyObject *type,
                              PyObject *leader_epoch) {
    KnownKey known[KNOWN_KEYS] = {0};
    PyObject *list = PyList_New(count), *record = NULL;
    for (int64_t i = 0; list && i < count; i++) {
        record = make_record(factory, &rows[i * ROW_COLUMNS], record, type, leader_epoch, known);
        if (!record || PyList_SetItem(list, i, record) < 0) {
            Py_DecRef(list);
            list = NULL;
        }
    }
    for (int i = 0; i < KNOWN_KEYS; i++)
        if (known[i].text) Py_DecRef(known[i].text);
    return list;
}

/* For the numbers of the batch see the kernel locate_records. */
static PyObject *read_with(Kernel kernel, PyObject *const *objects, Py_ssize_t count) {
    enum { TYPE, POSITION, COUNT, HEADER, NUMBERS = HEADER + HEADER_FIELDS };
    int64_t numbers[NUMBERS], rows[MOST_RECORDS * ROW_COLUMNS], found[4];
    if (count < 3) return PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", 3 + NUMBERS, count);
    const Factory *factory = PyCapsule_GetPointer(objects[0], NULL);
    Py_buffer view;
    if (!factory || !read_integers(objects + 2, count - 2, NUMBERS, numbers)) return NULL;
    if (numbers[TYPE] < -1 || numbers[TYPE] >= TIMESTAMP_TYPES - 1)
        return PyErr_Format(PyExc_ValueError, "no such timestamp type");
    if (PyObject_GetBuffer(objects[1], &view, PyBUF_SIMPLE) < 0) return NULL;
    PyObject *made = NULL;
    if (numbers[POSITION] < 0 || numbers[POSITION] > view.len) {
        PyErr_Format(PyExc_ValueError, "the position is outside the buffer");
    } else {
        int64_t arguments[] = {(int64_t)view.buf, (int64_t)view.buf + view.len, numbers[POSITION], numbers[COUNT],
                               (int64_t)&numbers[HEADER], (int64_t)rows};
        kernel(arguments, found);
        PyObject *type = factory->timestamp_types[numbers[TYPE] + 1];
        PyObject *records = make_records(factory, rows, found[0], type, objects[2]);
        made = records ? numbers_tuple(found, 4) : NULL;
        if (made)
            PyTuple_SetItem(made, 0, records);
        else if (records)
            Py_DecRef(records);
    }
    PyBuffer_Release(&view);
    return made;
}

PyObject *read_records(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return read_with(locate_records_kernel(), objects, count);
}

PyObject *read_messages(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return read_with(locate_messages_kernel(), objects, count);
}

/* Writing */

enum { MOST_HEADERS = 32, VARINT_MAX = 10, FIRST_BYTES = 4096 };

#define LARGEST_ESTIMATE 0x1p62 /* of the bytes of a batch; larger ones, and NaN, are left to Python */

typedef struct {
    const char *at;
    Py_ssize_t size; /* -1 for null */
} Bytes;

typedef struct {
    int64_t offset_delta, timestamp_delta, header_count;
    Bytes key, value, headers[2 * MOST_HEADERS];
} Fields;

/* A bytearray that grows: its first `used` bytes are written. */
typedef struct {
    PyObject *array;
    Py_ssize_t used, room;
} Output;

static int is(PyObject *object, PyObject *type) {
    PyObject *found = PyObject_Type(object);
    Py_DecRef(found); /* the object keeps its type */
    return found == type;
}

/* The fields of a record are read without running code of the caller, which could append to the same batch: other types
 * than these are left to Python. */

static int get_number(PyObject *object, int64_t *found) {
    int is_outside;
    if (!is(object, &PyLong_Type)) return 0;
    *found = PyLong_AsLongLongAndOverflow(object, &is_outside);
    return !is_outside;
}

static int get_bytes(PyObject *object, Bytes *found) {
    found->size = -1;
    return object == &_Py_NoneStruct ||
           (is(object, &PyBytes_Type) && PyBytes_AsStringAndSize(object, (char **)&found->at, &found->size) == 0);
}

static int get_text(PyObject *object, Bytes *found) {
    found->at = is(object, &PyUnicode_Type) ? PyUnicode_AsUTF8AndSize(object, &found->size) : NULL;
    return found->at != NULL;
}

/* Read the headers: a list or tuple of few (str, bytes or None). */
static int get_headers(PyObject *headers, Fields *fields) {
    const int is_list = is(headers, &PyList_Type);
    if (!is_list && !is(headers, &PyTuple_Type)) return 0;
    fields->header_count = is_list ? PyList_Size(headers) : PyTuple_Size(headers);
    if (fields->header_count > MOST_HEADERS) return 0;
    for (int64_t i = 0; i < fields->header_count; i++) {
        PyObject *header = is_list ? PyList_GetItem(headers, i) : PyTuple_GetItem(headers, i);
        if (!is(header, &PyTuple_Type) || PyTuple_Size(header) != 2) return 0;
        Bytes *found = &fields->headers[2 * i];
        if (!get_text(PyTuple_GetItem(header, 0), found) || !get_bytes(PyTuple_GetItem(header, 1), found + 1)) return 0;
    }
    return 1;
}

static uint64_t zigzag(int64_t value) { return (uint64_t)value << 1 ^ (uint64_t)(value >> 63); }

static int64_t varint_bytes(int64_t value) {
    int64_t n = 1;
    for (uint64_t bits = zigzag(value); bits >= 0x80; bits >>= 7) n++;
    return n;
}

static char *put_varint(char *out, int64_t value) {
    uint64_t bits = zigzag(value);
    for (; bits >= 0x80; bits >>= 7) *out++ = (char)(bits | 0x80);
    *out++ = (char)bits;
    return out;
}

static int64_t field_bytes(const Bytes *field) {
    return varint_bytes(field->size) + (field->size > 0 ? field->size : 0);
}

static char *put_field(char *out, const Bytes *field) {
    out = put_varint(out, field->size);
    if (field->size > 0) {
        memcpy(out, field->at, (size_t)field->size);
        out += field->size;
    }
    return out;
}

/* Make room for more bytes; 0 with an exception. */
static int reserve(Output *output, int64_t bytes) {
    const Py_ssize_t needed = output->used + bytes;
    if (needed <= output->room) return 1;
    const Py_ssize_t room = needed > 2 * output->room ? needed : 2 * output->room;
    if (PyByteArray_Resize(output->array, room) < 0) return 0;
    output->room = room;
    return 1;
}

/* Append a record. Returns its size, 0 if it is too large, -1 with an exception. */
static int64_t put_record(Output *output, const Fields *fields) {
    int64_t body = 1 + varint_bytes(fields->timestamp_delta) + varint_bytes(fields->offset_delta) +
                   field_bytes(&fields->key) + field_bytes(&fields->value) + varint_bytes(fields->header_count);
    for (int64_t i = 0; i < 2 * fields->header_count; i++) body += field_bytes(&fields->headers[i]);
    if (body > LARGEST_RECORD) return 0;
    if (!reserve(output, body + VARINT_MAX)) return -1;
    char *start = PyByteArray_AsString(output->array) + output->used;
    char *out = put_varint(start, body);
    *out++ = 0; /* attributes */
    out = put_varint(out, fields->timestamp_delta);
    out = put_varint(out, fields->offset_delta);
    out = put_field(out, &fields->key);
    out = put_field(out, &fields->value);
    out = put_varint(out, fields->header_count);
    for (int64_t i = 0; i < 2 * fields->header_count; i++) out = put_field(out, &fields->headers[i]);
    output->used += out - start;
    return out - start;
}

/* Append a record to a batch, whose state is that of a BatchBuilder. Returns 1, 0 if it is left to Python, or -1. */
static int add(int64_t *state, Output *output, Fields *fields, int64_t timestamp, int64_t offset) {
    const int64_t count = state[STATE_COUNT], base_offset = state[STATE_BASE_OFFSET];
    if (timestamp < -1 || (count ? offset <= state[STATE_LAST_OFFSET] : offset < base_offset)) return 0;
    if (offset - base_offset > INT32_MAX) return 0;
    const int64_t base = state[STATE_HAS_BASE_TIMESTAMP] ? state[STATE_BASE_TIMESTAMP] : timestamp;
    fields->offset_delta = offset - base_offset;
    fields->timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)base); /* wraps, as in Java */
    const Py_ssize_t before = output->used;
    const int64_t written = put_record(output, fields);
    if (written <= 0) return (int)written;
    double ratio;
    memcpy(&ratio, &state[STATE_RATIO], sizeof ratio);
    const double estimate = (double)before * ratio;
    if (count && (!(estimate >= 0 && estimate < LARGEST_ESTIMATE) ||
                  state[STATE_FIXED_BYTES] + (int64_t)estimate + written > state[STATE_MAX_BYTES])) {
        output->used = before;
        return 0;
    }
    state[STATE_HAS_BASE_TIMESTAMP] = 1;
    state[STATE_BASE_TIMESTAMP] = base;
    state[STATE_LAST_OFFSET] = offset;
    state[STATE_COUNT] = count + 1;
    if (timestamp > state[STATE_MAX_TIMESTAMP]) {
        state[STATE_MAX_TIMESTAMP] = timestamp;
        state[STATE_OFFSET_OF_MAX] = offset;
    }
    return 1;
}

/* The next offset of a batch; -1 after the last one there is. */
static int64_t next_offset(const int64_t *state) {
    if (!state[STATE_COUNT]) return state[STATE_BASE_OFFSET];
    return state[STATE_LAST_OFFSET] == INT64_MAX ? -1 : state[STATE_LAST_OFFSET] + 1;
}

/* Read the state and the output of a batch from the first two arguments; null with an exception. Both are valid until
 * other code runs. */
static int64_t *get_batch(PyObject *const *objects, Output *output) {
    int64_t *state = (int64_t *)PyLong_AsLongLong(objects[0]);
    if (!PyErr_Occurred() && !is(objects[1], &PyByteArray_Type)) PyErr_Format(PyExc_TypeError, "not a bytearray");
    if (PyErr_Occurred()) return NULL;
    const Py_ssize_t size = PyByteArray_Size(objects[1]);
    *output = (Output){objects[1], size, size};
    return state;
}

PyObject *append_record(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    enum { STATE, OUTPUT, KEY, VALUE, TIMESTAMP, HEADERS, OFFSET, ARGUMENTS };
    if (count != ARGUMENTS) return PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", ARGUMENTS, count);
    Fields fields;
    Output output;
    int64_t timestamp, offset = 0;
    const int is_next = objects[OFFSET] == &_Py_NoneStruct;
    if (!get_number(objects[TIMESTAMP], &timestamp) || !(is_next || get_number(objects[OFFSET], &offset)) ||
        !get_bytes(objects[KEY], &fields.key) || !get_bytes(objects[VALUE], &fields.value) ||
        !get_headers(objects[HEADERS], &fields)) {
        PyErr_Clear();
        return truth(0);
    }
    int64_t *state = get_batch(objects, &output);
    if (!state) return NULL;
    const int added = add(state, &output, &fields, timestamp, is_next ? next_offset(state) : offset);
    if (added < 0 || PyByteArray_Resize(objects[OUTPUT], output.used) < 0) return NULL;
    return truth(added);
}

/* Read what is written of a record. */
static int get_fields(const Factory *factory, PyObject *record, int64_t *timestamp, int64_t *offset, Fields *fields) {
    return is(record, factory->type) && get_number(*field(factory, record, R_TIMESTAMP), timestamp) &&
           get_number(*field(factory, record, R_OFFSET), offset) &&
           get_bytes(*field(factory, record, R_KEY), &fields->key) &&
           get_bytes(*field(factory, record, R_VALUE), &fields->value) &&
           get_headers(*field(factory, record, R_HEADERS), fields);
}

PyObject *append_records(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    enum { STATE, OUTPUT, FACTORY, RECORDS, START, KEEP_OFFSETS, ARGUMENTS };
    if (count != ARGUMENTS) return PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", ARGUMENTS, count);
    const Factory *factory = PyCapsule_GetPointer(objects[FACTORY], NULL);
    int64_t index = factory ? PyLong_AsLongLong(objects[START]) : 0;
    const int keep_offsets = factory && !PyErr_Occurred() ? PyObject_IsTrue(objects[KEEP_OFFSETS]) : 0;
    const Py_ssize_t records = PyErr_Occurred() ? -1 : PyList_Size(objects[RECORDS]);
    Output output;
    int64_t *state = records < 0 ? NULL : get_batch(objects, &output);
    if (!state || !reserve(&output, FIRST_BYTES)) return NULL;
    Fields fields;
    int added = 1;
    for (; index >= 0 && index < records; index++) {
        int64_t timestamp, offset;
        if (!get_fields(factory, PyList_GetItem(objects[RECORDS], index), &timestamp, &offset, &fields)) break;
        added = add(state, &output, &fields, timestamp, keep_offsets ? offset : next_offset(state));
        if (added <= 0) break;
    }
    if (added >= 0) PyErr_Clear();
    if (PyByteArray_Resize(objects[OUTPUT], output.used) < 0 || added < 0) return NULL;
    return PyLong_FromLongLong(index);
}
