/* kwire.native._kernels: how Python calls the compiled kernels.
 *
 * build.py writes exports.h, the table of kernels, and compiles this file for each platform. Only functions of Python's
 * stable ABI are used, so one binary serves every version from 3.11 on. They are declared here because the headers of
 * Python for another platform are not available when a wheel for it is built.
 */
#include <stdint.h>
#include <string.h>

/* Python's stable ABI, version 3.11 */

typedef intptr_t Py_ssize_t;
typedef struct PyObject PyObject;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *const *, Py_ssize_t);

typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;

typedef struct {
    int slot;
    void *value;
} PyModuleDef_Slot;

typedef struct {
    struct { /* PyModuleDef_Base */
        Py_ssize_t ob_refcnt;
        void *ob_type;
        void *(*m_init)(void);
        Py_ssize_t m_index;
        void *m_copy;
    } m_base;
    const char *m_name, *m_doc;
    Py_ssize_t m_size;
    PyMethodDef *m_methods;
    PyModuleDef_Slot *m_slots;
    void *m_traverse, *m_clear, *m_free;
} PyModuleDef;

enum { METH_FASTCALL = 0x80, PyBUF_SIMPLE = 0, PyBUF_C_CONTIGUOUS = 0x38, Py_mod_exec = 2 };

extern PyObject _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
extern PyObject *PyExc_TypeError, *PyExc_ValueError, *PyExc_ImportError;
PyObject *PyModuleDef_Init(PyModuleDef *);
int PyModule_AddStringConstant(PyObject *, const char *, const char *);
int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
PyObject *PyCapsule_New(void *, const char *, void *);
void *PyCapsule_GetPointer(PyObject *, const char *);
PyObject *PyErr_Format(PyObject *, const char *, ...);
PyObject *PyErr_Occurred(void);
PyObject *PyTuple_New(Py_ssize_t);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
PyObject *PyLong_FromLongLong(long long);
long long PyLong_AsLongLong(PyObject *);
PyObject *PyUnicode_FromString(const char *);
const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
char *PyBytes_AsString(PyObject *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
void PyBuffer_Release(Py_buffer *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);

/* Kernels */

enum { MAX_ARGUMENTS = 16, MAX_ARRAYS = 8, MAX_RESULTS = 8, MAX_LEVELS = 2 };

typedef void (*Kernel)(const int64_t *arguments, int64_t *results);

/* parameters: i an int; b, w, q a buffer with elements of 1, 4 or 8 bytes, passed as address and length; t one with
 * elements of 8 bytes and two dimensions, passed as address, rows and columns. results: i an int, ? a bool. */
typedef struct {
    const char *name, *parameters, *results;
    Kernel levels[MAX_LEVELS];
} Export;

/* static Export exports[]: the kernels. static const char *const level_names[]: ends with 0. SOURCES: a digest.
 * Constants of the kernels: FRAME, MAX_DEPTH, FULL, LARGE, SLACK; DECODE_MESSAGE, ENCODE_MESSAGE: indices in exports. */
#include "exports.h"

static int level; /* the index of the code in use */

static PyObject *none(void) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* Whether the processor can run the code of a level: index 0 is the most demanding one. x86-64-v2 and v3 are the lists
 * of the psABI. */
#if defined(__x86_64__)
#include <cpuid.h>

static int can_run(int index) {
    unsigned a, b, c, d, state;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(c & bit_LAHF_LM)) return 0;
    const unsigned lzcnt = c & bit_LZCNT;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned v2 = bit_SSE3 | bit_SSSE3 | bit_SSE41 | bit_SSE42 | bit_POPCNT | bit_CMPXCHG16B;
    if ((c & v2) != v2) return 0;
    if (index == 1) return 1;
    const unsigned v3 = bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE;
    if ((c & v3) != v3) return 0;
    __asm__("xgetbv" : "=a"(state), "=d"(d) : "c"(0));
    if ((state & 6) != 6) return 0; /* the system saves the registers of AVX */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    const unsigned wide = bit_AVX2 | bit_BMI | bit_BMI2;
    return (b & wide) == wide && lzcnt;
}

static int has_crc32c(void) { return 1; }
#else
#if defined(__aarch64__) && defined(__linux__)
unsigned long getauxval(unsigned long);

static int has_crc32c(void) { return (getauxval(16) >> 7) & 1; /* AT_HWCAP, HWCAP_CRC32 */ }
#elif defined(__aarch64__) && defined(__APPLE__)
static int has_crc32c(void) { return 1; }
#else
static int has_crc32c(void) { return 0; }
#endif
static int can_run(int index) { return index == 0; }
#endif

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
        int dimensions = kinds[i] == 't' ? 2 : 1, size = kinds[i] == 'b' ? 1 : kinds[i] == 'w' ? 4 : 8;
        if (view->ndim != dimensions || view->itemsize != size) {
            PyErr_Format(PyExc_ValueError, "argument %d of %s(): expected %d dimension(s) of %d bytes, got %d of %zd",
                         i + 1, export->name, dimensions, size, view->ndim, view->itemsize);
            return held;
        }
        *arguments++ = (int64_t)view->buf;
        for (int j = 0; j < dimensions; j++) *arguments++ = view->shape[j];
    }
    *failed = 0;
    return held;
}

static PyObject *result(char kind, int64_t value) {
    if (kind == 'i') return PyLong_FromLongLong(value);
    PyObject *truth = value ? &_Py_TrueStruct : &_Py_FalseStruct;
    Py_IncRef(truth);
    return truth;
}

/* Every exported kernel is this function, with its Export as `self`. The kernel runs without the GIL. */
static PyObject *call(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    const Export *export = PyCapsule_GetPointer(self, NULL);
    int64_t arguments[3 * MAX_ARGUMENTS], results[MAX_RESULTS];
    Py_buffer views[MAX_ARRAYS];
    int failed, held = read_arguments(export, objects, count, arguments, views, &failed);
    if (!failed) {
        void *thread = PyEval_SaveThread();
        export->levels[level](arguments, results);
        PyEval_RestoreThread(thread);
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

/* Messages. They keep the GIL: releasing it costs more than most messages take. */

/* What message_codec keeps of a plan: rows, constants, and the bytes of output to reserve for eight of input when
 * decoding and encoding. The last two grow when they were too few. */
typedef struct {
    int64_t rows, constants, decode_eighths, encode_eighths;
} Job;

enum { SMALL_BYTES = 2048, MAX_EIGHTHS = 2048 };

/* Call a kernel with an output that grows until it fits: on the stack while it is small, else a bytes object, and
 * copied. arguments: of the kernel; the caller has set all but output, capacity and frames, whose indices are
 * `output`, `output` + 1 and `frames`. Returns bytes, or None if the kernel rejects its input. */
static PyObject *run(Kernel kernel, int64_t *arguments, int output, int frames, int64_t capacity, int64_t *eighths) {
    char small[SMALL_BYTES], room[MAX_DEPTH * FRAME];
    arguments[frames] = (int64_t)room;
    for (;;) {
        PyObject *made = NULL;
        char *out = small;
        if (capacity > SMALL_BYTES) {
            made = PyBytes_FromStringAndSize(NULL, capacity);
            if (!made) return NULL;
            out = PyBytes_AsString(made);
        }
        arguments[output] = (int64_t)out;
        arguments[output + 1] = capacity;
        int64_t written;
        kernel(arguments, &written);
        if (written >= 0) {
            PyObject *exact = PyBytes_FromStringAndSize(out, written); /* _PyBytes_Resize is not in the stable ABI */
            if (made) Py_DecRef(made);
            return exact;
        }
        if (made) Py_DecRef(made);
        if (written != FULL) return none();
        capacity *= 4;
        *eighths = *eighths * 2 < MAX_EIGHTHS ? *eighths * 2 : MAX_EIGHTHS;
    }
}

static int64_t capacity_for(int64_t eighths, int64_t size) {
    int64_t wanted = eighths * size / 8;
    return (wanted > SMALL_BYTES - SLACK ? wanted : SMALL_BYTES - SLACK) + SLACK;
}

static PyObject *decode_part(PyObject *data, int64_t start, int64_t address, int64_t flags) {
    Job *job = (Job *)address;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) return NULL;
    PyObject *made;
    if (start < 0 || start > view.len) {
        made = none();
    } else {
        int64_t capacity = capacity_for(job->decode_eighths, view.len - start);
        int64_t arguments[] = {(int64_t)view.buf, view.len, start, 0, 0, job->rows, job->constants, 0, flags};
        if (flags & LARGE) capacity /= 4; /* large fields stay outside */
        made = run(exports[DECODE_MESSAGE].levels[level], arguments, 3, 7, capacity, &job->decode_eighths);
    }
    PyBuffer_Release(&view);
    return made;
}

static int read_integers(PyObject *const *objects, Py_ssize_t count, Py_ssize_t wanted, int64_t *numbers) {
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

static PyObject *decode(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    int64_t job;
    return read_integers(objects, count, 1, &job) ? decode_part(objects[0], 0, job, 0) : NULL;
}

static PyObject *decode_at(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    int64_t numbers[3]; /* start, job, flags */
    if (!read_integers(objects, count, 3, numbers)) return NULL;
    return decode_part(objects[0], numbers[0], numbers[1], numbers[2]);
}

static PyObject *encode(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    int64_t address;
    if (!read_integers(objects, count, 1, &address)) return NULL;
    Job *job = (Job *)address;
    Py_buffer view;
    if (PyObject_GetBuffer(objects[0], &view, PyBUF_SIMPLE) < 0) return NULL;
    int64_t arguments[] = {(int64_t)view.buf, view.len, 0, 0, job->rows, job->constants, 0};
    PyObject *made = run(exports[ENCODE_MESSAGE].levels[level], arguments, 2, 6,
                         capacity_for(job->encode_eighths, view.len), &job->encode_eighths);
    PyBuffer_Release(&view);
    return made;
}

/* The module */

static PyObject *use_level(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    const char *name = count == 1 ? PyUnicode_AsUTF8AndSize(objects[0], NULL) : NULL;
    for (int i = 0; name && level_names[i]; i++)
        if (!strcmp(name, level_names[i]) && can_run(i)) {
            level = i;
            return none();
        }
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "no such level, or not one of this processor");
    return NULL;
}

static PyObject *level_in_use(PyObject *self, PyObject *const *objects, Py_ssize_t count) {
    return PyUnicode_FromString(level_names[level]);
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_FASTCALL, "decode(data, job) -> bytes of MessagePack, or None"},
    {"decode_at", decode_at, METH_FASTCALL, "decode_at(data, start, job, flags) -> bytes of MessagePack, or None"},
    {"encode", encode, METH_FASTCALL, "encode(packed, job) -> bytes, or None"},
    {"use_level", use_level, METH_FASTCALL, "use_level(name): run the code compiled for this level of processors"},
    {"level_in_use", level_in_use, METH_FASTCALL, "level_in_use() -> name"},
    {0},
};

static PyMethodDef kernel_methods[EXPORT_COUNT];

static int execute(PyObject *module) {
    while (level_names[level] && !can_run(level)) level++;
    if (!level_names[level]) {
        PyErr_Format(PyExc_ImportError, "the compiled kernels need a processor of level %s", level_names[level - 1]);
        return -1;
    }
    for (int i = 0; i < EXPORT_COUNT; i++) {
        kernel_methods[i] = (PyMethodDef){exports[i].name, call, METH_FASTCALL, NULL};
        PyObject *self = PyCapsule_New(&exports[i], NULL, NULL);
        PyObject *function = self ? PyCFunction_NewEx(&kernel_methods[i], self, NULL) : NULL;
        if (!function || PyModule_AddObjectRef(module, exports[i].name, function) < 0) return -1;
        Py_DecRef(self);
        Py_DecRef(function);
    }
    if (PyModule_AddObjectRef(module, "HAS_CRC32C", has_crc32c() ? &_Py_TrueStruct : &_Py_FalseStruct) < 0) return -1;
    return PyModule_AddStringConstant(module, "SOURCES", SOURCES);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0}};
static PyModuleDef definition = {
    .m_base = {.ob_refcnt = 1}, .m_name = "_kernels", .m_methods = methods, .m_slots = slots};

__attribute__((visibility("default"))) PyObject *PyInit__kernels(void) { return PyModuleDef_Init(&definition); }
