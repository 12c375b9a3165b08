/* Python's stable ABI, version 3.11, and what the files of the module share.
 *
 * The ABI is declared here because the headers of Python for another platform are not available when a wheel for it is
 * built.
 */
#pragma once
#include <stdint.h>
#include <string.h>

typedef intptr_t Py_ssize_t;
typedef struct PyThreadState PyThreadState;
typedef struct PyObject PyObject;
struct PyObject {
    Py_ssize_t ob_refcnt;
    PyObject *ob_type;
};
static inline PyObject *Py_TYPE(PyObject *object) { return object->ob_type; }
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
    const char *name;
    int type;
    Py_ssize_t offset;
    int flags;
    const char *doc;
} PyMemberDef;

typedef struct {
    int slot;
    void *pfunc;
} PyType_Slot;

typedef struct {
    const char *name;
    int basicsize, itemsize;
    unsigned flags;
    PyType_Slot *slots;
} PyType_Spec;

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

enum { METH_KEYWORDS = 2, METH_O = 8, METH_FASTCALL = 0x80, PyBUF_SIMPLE = 0, PyBUF_C_CONTIGUOUS = 0x38 };
enum { Py_mod_exec = 2, Py_tp_alloc = 47, Py_tp_dealloc = 52, Py_tp_descr_get = 54, Py_tp_descr_set = 55 };
enum { Py_tp_doc = 56, Py_tp_traverse = 71, Py_tp_members = 72, T_OBJECT = 6, READONLY = 1 };
enum { Py_TPFLAGS_DISALLOW_INSTANTIATION = 1 << 7, Py_TPFLAGS_HAVE_GC = 1 << 14, Py_TPFLAGS_DEFAULT = 0 };

#if defined(_WIN32)
#define PYTHON_DATA extern __declspec(dllimport)
#else
#define PYTHON_DATA extern
#endif
PYTHON_DATA PyObject PyList_Type, _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
PYTHON_DATA PyObject *PyExc_TypeError, *PyExc_ValueError, *PyExc_ImportError;
PYTHON_DATA PyObject PyBytes_Type, PyByteArray_Type, PyTuple_Type, PyType_Type, PyLong_Type, PyUnicode_Type;
PYTHON_DATA PyObject PyBool_Type, PyFloat_Type, PyMemoryView_Type;
PYTHON_DATA PyObject *PyExc_BufferError, *PyExc_UnicodeDecodeError;
PyObject *PyModuleDef_Init(PyModuleDef *);
int PyModule_AddStringConstant(PyObject *, const char *, const char *);
int PyModule_AddObjectRef(PyObject *, const char *, PyObject *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
PyObject *PyCapsule_New(void *, const char *, void (*)(PyObject *));
void *PyCapsule_GetPointer(PyObject *, const char *);
PyObject *PyErr_Format(PyObject *, const char *, ...);
PyObject *PyErr_Occurred(void);
int PyErr_ExceptionMatches(PyObject *);
void PyErr_Clear(void);
PyObject *PyErr_NoMemory(void);
void *PyType_GetSlot(PyObject *, int);
int PyType_IsSubtype(PyObject *, PyObject *);
PyObject *PyType_FromSpec(PyType_Spec *);
PyObject *PyType_GenericAlloc(PyObject *, Py_ssize_t);
void PyObject_GC_Del(void *);
PyObject *PyObject_CallNoArgs(PyObject *);
PyObject *PyImport_ImportModule(const char *);
int PyObject_IsTrue(PyObject *);
int PyObject_IsInstance(PyObject *, PyObject *);
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyObject_CallFunction(PyObject *, const char *, ...);
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
PyObject *PySequence_GetSlice(PyObject *, Py_ssize_t, Py_ssize_t);
PyObject *PyTuple_New(Py_ssize_t);
Py_ssize_t PyTuple_Size(PyObject *);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
PyObject *PyList_New(Py_ssize_t);
PyObject *PyList_GetSlice(PyObject *, Py_ssize_t, Py_ssize_t);
int PyList_SetSlice(PyObject *, Py_ssize_t, Py_ssize_t, PyObject *);
Py_ssize_t PyList_Size(PyObject *);
PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
PyObject *PyDict_New(void);
int PyDict_SetItemString(PyObject *, const char *, PyObject *);
PyObject *PyLong_FromLong(long);
PyObject *PyLong_FromLongLong(long long);
PyObject *PyLong_FromString(const char *, char **, int);
long long PyLong_AsLongLong(PyObject *);
long long PyLong_AsLongLongAndOverflow(PyObject *, int *);
unsigned long long PyLong_AsUnsignedLongLong(PyObject *);
unsigned long long PyLong_AsUnsignedLongLongMask(PyObject *);
PyObject *PyNumber_Rshift(PyObject *, PyObject *);
PyObject *PyFloat_FromDouble(double);
double PyFloat_AsDouble(PyObject *);
PyObject *PyUnicode_FromString(const char *);
PyObject *PyUnicode_DecodeUTF8(const char *, Py_ssize_t, const char *);
const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
int PyUnicode_CompareWithASCIIString(PyObject *, const char *);
PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
char *PyBytes_AsString(PyObject *);
int PyBytes_AsStringAndSize(PyObject *, char **, Py_ssize_t *);
Py_ssize_t PyByteArray_Size(PyObject *);
char *PyByteArray_AsString(PyObject *);
int PyByteArray_Resize(PyObject *, Py_ssize_t);
PyObject *PyMemoryView_FromObject(PyObject *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
void PyBuffer_Release(Py_buffer *);
void PyObject_GC_UnTrack(void *);
void *PyMem_Malloc(size_t);
void *PyMem_Realloc(void *, size_t);
void PyMem_Free(void *);
int PyGC_Disable(void);
int PyGC_Enable(void);
PyThreadState *PyEval_SaveThread(void);
void PyEval_RestoreThread(PyThreadState *);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);

/* Of module.c */

typedef void (*Kernel)(const int64_t *arguments, int64_t *results);

int read_integers(PyObject *const *objects, Py_ssize_t count, Py_ssize_t wanted, int64_t *numbers);
PyObject *pair(PyObject *first, PyObject *second); /* takes both references; null if one is null */
PyObject *none(void);
PyObject *truth(int value);

/* Of codec.c */

PyObject *decoders(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *slots(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *encoder(PyObject *, PyObject *const *, Py_ssize_t);

/* Of records.c */

PyObject *record_factory(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *append_record(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *append_records(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *read_records(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *read_messages(PyObject *, PyObject *const *, Py_ssize_t);

/* Of avro_reading.c, protobuf_reading.c, json_reading.c, avro_writing.c, protobuf_writing.c and json_writing.c */

PyObject *decode_avro(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *decode_protobuf(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *decode_json(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *encode_avro(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *encode_protobuf(PyObject *, PyObject *const *, Py_ssize_t);
PyObject *encode_json(PyObject *, PyObject *const *, Py_ssize_t);
