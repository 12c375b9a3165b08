/* kwire.native._kernels: how Python calls the compiled kernels.
 *
 * build.py writes exports.h, the table of kernels, and compiles this file for each platform, with messages.c and
 * records.c. Only functions of Python's stable ABI are used (native.h), so one binary serves every version from 3.11 on.
 */
#include "checksums.h"
#include "native.h"

/* Kernels */

enum { MAX_WORDS = 32, MAX_ARRAYS = 8, MAX_RESULTS = 8 };

/* parameters: i an int; b, w, q a buffer with elements of 1, 4 or 8 bytes, passed as address and length; t one with
 * elements of 8 bytes and two dimensions, passed as address, rows and columns; a capital letter if the kernel writes to
 * it. results: i an int, ? a bool. is_brief: it runs with the GIL. */
typedef struct {
    const char *name, *parameters, *results;
    int is_brief;
    Kernel run;
} Export;

/* static Export exports[]: the kernels, EXPORT_COUNT of them. SOURCES: a digest. VERSION: of kwire.
 * PROCESSORS: what the code is for. MOST_WORDS, MOST_ARRAYS and MOST_RESULTS: of one kernel. */
#include "exports.h"

_Static_assert((int)MOST_WORDS <= (int)MAX_WORDS && (int)MOST_ARRAYS <= (int)MAX_ARRAYS, "a kernel has more parameters");
_Static_assert((int)MOST_RESULTS <= (int)MAX_RESULTS, "a kernel has more results");

PyObject *none(void) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* Read the arguments of a kernel: the number of buffers it holds, which the caller releases; *failed on an error. */
static int read_arguments(const Export *export, PyObject *const *objects, Py_ssize_t count, int64_t *arguments,
                          Py_buffer *views, int *failed) {
    const char *kinds = export->parameters;
    int held = 0;
    *failed = 1;
    if (count != (Py_ssize_t)strlen(kinds)) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments, got %zd", export->name, (int)strlen(kinds), count);
        return 0;
    }
    for (int i = 0; kinds[i]; i++) {
        if (kinds[i] == 'i') {
            *arguments = PyLong_AsLongLong(objects[i]);
            if (*arguments++ == -1 && PyErr_Occurred()) return held;
            continue;
        }
        Py_buffer *view = &views[held];
        if (PyObject_GetBuffer(objects[i], view, PyBUF_C_CONTIGUOUS) < 0) return held;
        held++;
        const int is_written = kinds[i] < 'a', kind = is_written ? kinds[i] - 'A' + 'a' : kinds[i];
        int dimensions = kind == 't' ? 2 : 1, size = kind == 'b' ? 1 : kind == 'w' ? 4 : 8;
        if (view->ndim != dimensions || view->itemsize != size) {
            PyErr_Format(PyExc_ValueError, "argument %d of %s(): expected %d dimension(s) of %d bytes, got %d of %zd",
                         i + 1, export->name, dimensions, size, view->ndim, view->itemsize);
            return held;
        }
        if (is_written && view->readonly) {
            PyErr_Format(PyExc_ValueError, "argument %d of %s(): the kernel writes to it, but it is read-only", i + 1,
                         export->name);
            return held;
        }
        *arguments++ = (int64_t)view->buf;
        for (int j = 0; j < dimensions; j++) *arguments++ = view->shape[j];
    }
    *failed = 0;
    return held;
}

PyObject *truth(int value) {
    PyObject *found = value ? &_Py_TrueStruct : &_Py_FalseStruct;
    Py_IncRef(found);
    return found;
}

static PyObject *result(char kind, int64_t value) {
    return kind == 'i' ? PyLong_FromLongLong(value) : truth(value != 0);
}

/* Every exported kernel is this function, with its Export as `self`. */
static PyObject *call(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    const Export *export = PyCapsule_GetPointer(self, NULL);
    int64_t arguments[MAX_WORDS], results[MAX_RESULTS];
    Py_buffer views[MAX_ARRAYS];
    int failed, held = read_arguments(export, objects, count, arguments, views, &failed);
    if (!failed) {
        PyThreadState *thread = export->is_brief ? NULL : PyEval_SaveThread();
        export->run(arguments, results);
        if (thread) PyEval_RestoreThread(thread);
    }
    while (held) PyBuffer_Release(&views[--held]);
    if (failed) return NULL;
    int n = (int)strlen(export->results);
    if (n == 0) return none();
    if (n == 1) return result(export->results[0], results[0]);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = result(export->results[i], results[i]);
        if (!item || PyTuple_SetItem(tuple, i, item) < 0) {
            Py_DecRef(tuple);
            return NULL;
        }
    }
    return tuple;
}

/* Read the arguments after the first one, integers. */
int read_integers(PyObject *const *objects, Py_ssize_t count, Py_ssize_t wanted, int64_t *numbers) {
    if (count != wanted + 1) {
        PyErr_Format(PyExc_TypeError, "takes %zd arguments, got %zd", wanted + 1, count);
        return 0;
    }
    for (Py_ssize_t i = 0; i < wanted; i++) {
        numbers[i] = PyLong_AsLongLong(objects[i + 1]);
        if (numbers[i] == -1 && PyErr_Occurred()) return 0;
    }
    return 1;
}

PyObject *pair(PyObject *first, PyObject *second) {
    PyObject *made = first && second ? PyTuple_New(2) : NULL;
    if (made) {
        PyTuple_SetItem(made, 0, first);
        PyTuple_SetItem(made, 1, second);
        return made;
    }
    if (first) Py_DecRef(first);
    if (second) Py_DecRef(second);
    return NULL;
}

/* The module */

#define READING_DOC \
    "(factory, section, leader epoch, timestamp type, position, count, 8 numbers ...) -> " \
    "(records, records read, position after them, Fault or 0)"

static PyMethodDef methods[] = {
    {"decoders", decoders, METH_FASTCALL, "decoders(job, walk, kept) -> (decode, decode_from) of a codec"},
    {"slots", slots, METH_FASTCALL, "slots(type) -> (address of its allocator, {attribute: offset in an object})"},
    {"encoder", encoder, METH_FASTCALL, "encoder(job, write, kept) -> encode of a codec"},
    {"record_factory", record_factory, METH_FASTCALL,
     "record_factory(Record, timestamp types, decode_header_key, offset of each field in an object ...) -> factory"},
    {"read_records", read_records, METH_FASTCALL, READING_DOC},
    {"read_messages", read_messages, METH_FASTCALL, READING_DOC},
    {"append_record", append_record, METH_FASTCALL,
     "append_record(state, bytearray, key, value, timestamp, headers, offset) -> False if it is left to Python"},
    {"append_records", append_records, METH_FASTCALL,
     "append_records(state, bytearray, factory, records, start, keep offsets) -> index of the first one left"},
    {"decode_avro", decode_avro, METH_FASTCALL, "decode_avro(job) -> status; job: see kwire.wire.value_rows"},
    {"decode_protobuf", decode_protobuf, METH_FASTCALL, "decode_protobuf(job) -> status"},
    {"decode_json", decode_json, METH_FASTCALL, "decode_json(job) -> status"},
    {"encode_avro", encode_avro, METH_FASTCALL, "encode_avro(job) -> status"},
    {"encode_protobuf", encode_protobuf, METH_FASTCALL, "encode_protobuf(job) -> status"},
    {"encode_json", encode_json, METH_FASTCALL, "encode_json(job) -> status"},
    {0},
};

static PyMethodDef kernel_methods[EXPORT_COUNT];

static int execute(PyObject *module) {
    for (int i = 0; i < EXPORT_COUNT; i++) {
        kernel_methods[i] = (PyMethodDef){exports[i].name, call, METH_FASTCALL, NULL};
        PyObject *self = PyCapsule_New(&exports[i], NULL, NULL);
        PyObject *function = self ? PyCFunction_NewEx(&kernel_methods[i], self, NULL) : NULL;
        const int is_added = function && PyModule_AddObjectRef(module, exports[i].name, function) == 0;
        if (function) Py_DecRef(function);
        if (self) Py_DecRef(self);
        if (!is_added) return -1;
    }
    if (PyModule_AddObjectRef(module, "HAS_CRC32C", has_crc32c() ? &_Py_TrueStruct : &_Py_FalseStruct) < 0) return -1;
    if (PyModule_AddStringConstant(module, "LEVEL", PROCESSORS) < 0) return -1;
    if (PyModule_AddStringConstant(module, "VERSION", VERSION) < 0) return -1;
    return PyModule_AddStringConstant(module, "SOURCES", SOURCES);
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, execute}, {0}};
static PyModuleDef definition = {
    .m_base = {.ob_refcnt = 1}, .m_name = "_kernels", .m_methods = methods, .m_slots = module_slots};

__attribute__((visibility("default"))) PyObject *PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
