/* Records as objects. Reading: records of magic 2, and inner messages of magic 0 and 1. Writing: records of magic 2 are
 * encoded at the end of a bytearray; those with unusual fields are left to Python.
 *
 * The class, and where an object of it has its fields, come from a factory. The collector does not track records:
 * see kwire.records.format.record.
 */
#include "native.h"
#include "checksums.h"
#include "record.h"

enum { RECORD_FIELDS = 8, TIMESTAMP_TYPES = 3, KNOWN_KEYS = 8 };
enum { MOST_RECORDS = 256, MOST_BYTES = 1 << 20 }; /* of one call; bytes: beyond the first record */
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
    const uint8_t *at;
    int64_t size;
    PyObject *text;
} KnownKey;

/* What a caller says of the batch. is_checked: verify the checksums of messages. */
typedef struct {
    int64_t type, position, count; /* position: of the next record in the section; count: records from there on */
    int64_t base_offset, base_timestamp, is_append_time, max_timestamp, base_sequence, is_checked;
    int64_t lowest_offset, highest_offset; /* others are skipped */
} BatchFields;

enum { BATCH_FIELDS = sizeof(BatchFields) / sizeof(int64_t) };

/* The next record of a section, or inner message. */
typedef struct {
    int64_t offset, timestamp, sequence;
    Record record;
} Row;

typedef struct {
    const Factory *factory;
    const BatchFields *batch;
    PyObject *leader_epoch;
    Cursor section;
    int64_t timestamp, sequence; /* of the record before */
    PyObject *before;            /* it, or null */
    KnownKey known[KNOWN_KEYS];
} Reader;

static PyObject *held(PyObject *object) {
    Py_IncRef(object);
    return object;
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

static int equal(const uint8_t *a, const uint8_t *b, int64_t size) {
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

static PyObject *header_key(const Factory *factory, const uint8_t *at, int64_t size, KnownKey *known) {
    if (known->text && known->size == size && equal(known->at, at, size)) return held(known->text);
    PyObject *text = PyUnicode_DecodeUTF8((const char *)at, size, NULL);
    if (!text) { /* not UTF-8: as Java decodes it */
        PyErr_Clear();
        PyObject *raw = PyBytes_FromStringAndSize((const char *)at, size);
        text = raw ? PyObject_CallFunctionObjArgs(factory->decode_key, raw, NULL) : NULL;
        if (raw) Py_DecRef(raw);
    }
    if (text) {
        if (known->text) Py_DecRef(known->text);
        *known = (KnownKey){at, size, held(text)};
    }
    return text;
}

static PyObject *bytes_or_none(const uint8_t *at, int64_t size) {
    return size < 0 ? none() : PyBytes_FromStringAndSize((const char *)at, size);
}

static PyObject *header_pair(const Factory *factory, const Header *header, KnownKey *known) {
    PyObject *key = header_key(factory, header->key, header->key_bytes, known);
    PyObject *made = pair(key, key ? bytes_or_none(header->value, header->value_bytes) : NULL);
    if (made) PyObject_GC_UnTrack(made); /* as the collector does with tuples like this one */
    return made;
}

/* Make the headers of a record, which check_headers has checked. */
static PyObject *header_list(Reader *reader, const Record *record) {
    Cursor headers = record->headers;
    Header header;
    int64_t count = 0;
    int fault = record->has_headers ? take_header_count(&headers, &count, &(int){0}) : 0;
    PyObject *list = fault ? NULL : PyList_New(count);
    for (int64_t i = 0; list && i < count; i++) {
        fault = take_header(&headers, &header, &(int){0});
        PyObject *made = fault ? NULL : header_pair(reader->factory, &header, &reader->known[i % KNOWN_KEYS]);
        if (!made || PyList_SetItem(list, i, made) < 0) {
            Py_DecRef(list);
            list = NULL;
        }
    }
    if (fault) PyErr_Format(PyExc_BufferError, "the buffer was changed while its records were read");
    if (list) PyObject_GC_UnTrack(list); /* a third of the time of a program that keeps records goes to tracked lists */
    return list;
}

static PyObject **field(const Factory *factory, PyObject *record, int index) {
    return (PyObject **)((char *)record + factory->offsets[index]);
}

/* Return the object of a number: that of the record before if it is the same. */
static PyObject *number(const Reader *reader, int index, int64_t value, int64_t before) {
    return reader->before && value == before ? held(*field(reader->factory, reader->before, index))
                                             : PyLong_FromLongLong(value);
}

static PyObject *make_record(Reader *reader, const Row *row) {
    const Factory *factory = reader->factory;
    const Record *from = &row->record;
    PyObject *fields[RECORD_FIELDS] = {
        [R_OFFSET] = PyLong_FromLongLong(row->offset),
        [R_TIMESTAMP] = number(reader, R_TIMESTAMP, row->timestamp, reader->timestamp),
        [R_TIMESTAMP_TYPE] = held(factory->timestamp_types[reader->batch->type + 1]),
        [R_KEY] = bytes_or_none(from->key, from->key_bytes),
        [R_VALUE] = bytes_or_none(from->value, from->value_bytes),
        [R_HEADERS] = header_list(reader, from),
        [R_SEQUENCE] = number(reader, R_SEQUENCE, row->sequence, reader->sequence),
        [R_LEADER_EPOCH] = held(reader->leader_epoch),
    };
    PyObject *made = PyErr_Occurred() ? NULL : factory->allocate(factory->type, 0);
    for (int i = 0; i < RECORD_FIELDS; i++) {
        if (made)
            *field(factory, made, i) = fields[i];
        else if (fields[i])
            Py_DecRef(fields[i]);
    }
    reader->before = made;
    reader->timestamp = row->timestamp;
    reader->sequence = row->sequence;
    return made;
}

/* wrapping.add_to_sequence; none without a base sequence. */
static int64_t sequence_at(int64_t base, int64_t delta) {
    if (base < 0) return NO_SEQUENCE;
    return base > (int32_t)(INT32_MAX - delta) ? (int32_t)(delta - (INT32_MAX - base) - 1) : (int32_t)(base + delta);
}

/* Read the next record: a fault or 0. */
static int next_record(Reader *reader, Row *row) {
    const BatchFields *batch = reader->batch;
    Record *record = &row->record;
    int fault = take_record(&reader->section, record);
    if (!fault && record->has_headers) fault = check_headers(record);
    if (fault) return fault;
    row->offset = wrapping_sum(batch->base_offset, record->offset_delta);
    row->timestamp = batch->is_append_time ? batch->max_timestamp
                                           : wrapping_sum(batch->base_timestamp, record->timestamp_delta);
    row->sequence = sequence_at(batch->base_sequence, record->offset_delta);
    return 0;
}

/* Read the next inner message: a fault or 0. The base offset is what its offset is relative to. */
static int next_message(Reader *reader, Row *row) {
    const BatchFields *batch = reader->batch;
    Message message;
    int fault = take_message(&reader->section, &message);
    if (fault) return fault == NO_MESSAGE ? FAULT_INNER_SIZE : fault;
    if (message.attributes & CODEC_MASK) return FAULT_INNER_COMPRESSED;
    if (batch->is_checked && !has_right_crc(&message)) return FAULT_INNER_CRC;
    if ((fault = take_key_and_value(&message))) return fault;
    row->offset = wrapping_sum(batch->base_offset, message.offset);
    row->timestamp = batch->is_append_time && message.magic == 1 ? batch->max_timestamp : message.timestamp;
    row->sequence = NO_SEQUENCE;
    row->record.key = message.key;
    row->record.key_bytes = message.key_bytes;
    row->record.value = message.value;
    row->record.value_bytes = message.value_bytes;
    row->record.has_headers = 0;
    return 0;
}

/* Move records to a list; null if there is an exception. */
static PyObject *list_of(PyObject **records, int64_t count) {
    PyObject *list = PyErr_Occurred() ? NULL : PyList_New(count);
    for (int64_t i = 0; i < count; i++) {
        if (list)
            PyList_SetItem(list, i, records[i]);
        else
            Py_DecRef(records[i]);
    }
    return list;
}

/* Read some records: (list, records read, position after them, fault). With a fault, the records before it are read. That
 * bytes are left is a fault of the last record. */
static PyObject *read_some(Reader *reader, int (*next)(Reader *, Row *)) {
    const uint8_t *start = reader->section.at;
    const int64_t most = reader->batch->count < MOST_RECORDS ? reader->batch->count : MOST_RECORDS;
    PyObject *records[MOST_RECORDS];
    int64_t made = 0, count = 0;
    int fault = 0;
    while (count < most && reader->section.at - start <= MOST_BYTES) {
        const uint8_t *at = reader->section.at;
        Row row;
        fault = next(reader, &row);
        if (!fault && next == next_record && count + 1 == reader->batch->count && bytes_left(&reader->section))
            fault = FAULT_BYTES_LEFT;
        if (fault) {
            reader->section.at = at;
            break;
        }
        count++;
        if (row.offset < reader->batch->lowest_offset || row.offset > reader->batch->highest_offset) continue;
        records[made] = make_record(reader, &row);
        if (!records[made]) break;
        made++;
    }
    for (int i = 0; i < KNOWN_KEYS; i++)
        if (reader->known[i].text) Py_DecRef(reader->known[i].text);
    PyObject *list = list_of(records, made);
    const int64_t numbers[] = {count, reader->batch->position + (reader->section.at - start), fault};
    PyObject *result = list ? PyTuple_New(4) : NULL;
    if (!result) {
        if (list) Py_DecRef(list);
        return NULL;
    }
    PyTuple_SetItem(result, 0, list);
    for (int i = 0; i < 3; i++) {
        PyObject *item = PyLong_FromLongLong(numbers[i]);
        if (!item || PyTuple_SetItem(result, i + 1, item) < 0) {
            Py_DecRef(result);
            return NULL;
        }
    }
    return result;
}

static PyObject *read_with(int (*next)(Reader *, Row *), PyObject *const *objects, Py_ssize_t count) {
    BatchFields batch;
    if (count < 3) return PyErr_Format(PyExc_TypeError, "takes %d arguments, got %zd", 3 + BATCH_FIELDS, count);
    const Factory *factory = PyCapsule_GetPointer(objects[0], NULL);
    Py_buffer view;
    if (!factory || !read_integers(objects + 2, count - 2, BATCH_FIELDS, (int64_t *)&batch)) return NULL;
    if (batch.type < -1 || batch.type >= TIMESTAMP_TYPES - 1)
        return PyErr_Format(PyExc_ValueError, "no such timestamp type");
    if (PyObject_GetBuffer(objects[1], &view, PyBUF_SIMPLE) < 0) return NULL;
    PyObject *result = NULL;
    if (batch.position < 0 || batch.position > view.len) {
        PyErr_Format(PyExc_ValueError, "the position is outside the buffer");
    } else {
        const uint8_t *start = view.buf;
        Reader reader = {.factory = factory, .batch = &batch, .leader_epoch = objects[2],
                         .section = {start + batch.position, start + view.len}};
        result = read_some(&reader, next);
    }
    PyBuffer_Release(&view);
    return result;
}

PyObject *read_records(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return read_with(next_record, objects, count);
}

PyObject *read_messages(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    return read_with(next_message, objects, count);
}

/* Writing */

enum { MOST_HEADERS = 32, MORE_BYTES = 4096 };

#define LARGEST_ESTIMATE 0x1p62 /* of the bytes of a batch; larger ones, and NaN, are left to Python */

typedef struct {
    const char *at;
    Py_ssize_t size; /* -1 for null */
} Bytes;

typedef struct {
    int64_t offset_delta, timestamp_delta, header_count;
    Bytes key, value, headers[2 * MOST_HEADERS];
} Fields;

/* A bytearray that grows: its first `used` bytes are written. spare: bytes to grow by beyond what is needed. */
typedef struct {
    PyObject *array;
    Py_ssize_t used, room, spare;
} Output;

static int is(PyObject *object, PyObject *type) { return Py_TYPE(object) == type; }

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

static int64_t varint_bytes(int64_t value) { return uvarint_bytes(zigzag(value)); }

static int64_t field_bytes(const Bytes *field) {
    return varint_bytes(field->size) + (field->size > 0 ? field->size : 0);
}

static uint8_t *put_field(uint8_t *out, const Bytes *field) {
    out = put_varint(out, field->size);
    if (field->size > 0) {
        memcpy(out, field->at, (size_t)field->size);
        out += field->size;
    }
    return out;
}

/* Make room for more bytes; 0 with an exception. A bytearray reserves an eighth of its size by itself. */
static int reserve(Output *output, int64_t bytes) {
    const Py_ssize_t needed = output->used + bytes;
    if (needed <= output->room) return 1;
    const Py_ssize_t room = needed + output->spare;
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
    if (!reserve(output, body + VARLONG_BYTES)) return -1;
    uint8_t *start = (uint8_t *)PyByteArray_AsString(output->array) + output->used;
    uint8_t *out = put_varint(start, body);
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
static int add(BuilderState *state, Output *output, Fields *fields, int64_t timestamp, int64_t offset) {
    const int64_t count = state->count, base_offset = state->base_offset;
    if (timestamp < -1 || (count ? offset <= state->last_offset : offset < base_offset)) return 0;
    if (offset - base_offset > INT32_MAX) return 0;
    const int64_t base = state->has_base_timestamp ? state->base_timestamp : timestamp;
    fields->offset_delta = offset - base_offset;
    fields->timestamp_delta = (int64_t)((uint64_t)timestamp - (uint64_t)base); /* wraps, as in Java */
    const Py_ssize_t before = output->used;
    const int64_t written = put_record(output, fields);
    if (written <= 0) return (int)written;
    double ratio;
    memcpy(&ratio, &state->ratio, sizeof ratio);
    const double estimate = (double)before * ratio;
    if (count && (!(estimate >= 0 && estimate < LARGEST_ESTIMATE) ||
                  state->fixed_bytes + (int64_t)estimate + written > state->max_bytes)) {
        output->used = before;
        return 0;
    }
    state->has_base_timestamp = 1;
    state->base_timestamp = base;
    state->last_offset = offset;
    state->count = count + 1;
    if (timestamp > state->max_timestamp) {
        state->max_timestamp = timestamp;
        state->offset_of_max = offset;
    }
    return 1;
}

/* The next offset of a batch; -1 after the last one there is. */
static int64_t next_offset(const BuilderState *state) {
    if (!state->count) return state->base_offset;
    return state->last_offset == INT64_MAX ? -1 : state->last_offset + 1;
}

/* Read the state and the output of a batch from the first two arguments; null with an exception. Both are valid until
 * other code runs. */
static BuilderState *get_batch(PyObject *const *objects, Output *output, Py_ssize_t spare) {
    if (!is(objects[0], &PyByteArray_Type) || !is(objects[1], &PyByteArray_Type) ||
        PyByteArray_Size(objects[0]) != sizeof(BuilderState)) {
        PyErr_Format(PyExc_TypeError, "takes the state of a batch and its records, as bytearrays");
        return NULL;
    }
    const Py_ssize_t size = PyByteArray_Size(objects[1]);
    *output = (Output){objects[1], size, size, spare};
    return (BuilderState *)PyByteArray_AsString(objects[0]);
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
    BuilderState *state = get_batch(objects, &output, 0);
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
    BuilderState *state = records < 0 ? NULL : get_batch(objects, &output, MORE_BYTES);
    if (!state) return NULL;
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
