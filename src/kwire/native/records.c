/* Records as objects: a kernel finds the fields of some records, and this code creates the objects.
 *
 * The class and the offsets of its fields in an object are those of a factory. The collector does not track records:
 * see kwire.records.record.
 */
#include "native.h"
#include "locate.h"

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

PyObject *record_factory(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    Factory *made = PyMem_Malloc(sizeof *made); /* for as long as the process runs, as classes are */
    if (!made) return PyErr_NoMemory();
    if (count < 3 || !read_integers(objects + 2, count - 2, RECORD_FIELDS, made->offsets)) {
        if (count < 3) PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", 3 + RECORD_FIELDS, count);
        return NULL;
    }
    made->type = held(objects[0]);
    made->allocate = PyType_GetSlot(objects[0], Py_tp_alloc);
    for (int i = 0; i < TIMESTAMP_TYPES; i++) {
        made->timestamp_types[i] = PyTuple_GetItem(objects[1], i);
        if (!made->timestamp_types[i]) return NULL;
        held(made->timestamp_types[i]);
    }
    made->decode_key = held(objects[2]);
    return PyCapsule_New(made, NULL, NULL);
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
        made = records ? PyTuple_New(4) : NULL;
        if (made) PyTuple_SetItem(made, 0, records);
        for (int i = 1; made && i < 4; i++) {
            PyObject *item = PyLong_FromLongLong(found[i]);
            if (!item || PyTuple_SetItem(made, i, item) < 0) {
                Py_DecRef(made);
                made = NULL;
            }
        }
        if (records && !made) PyErr_NoMemory();
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
