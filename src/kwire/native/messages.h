/* What messages.c, messages_writing.c and codec.c share. */
#pragma once
#include "native.h"
#include "plan.h"

typedef struct {
    int64_t op, a, b, c, d, e, f, g;
} Row;

typedef struct Layout Layout;

/* A field of a class: its offset in an object, and its default: a value that cannot be changed, or the layout of a
 * struct, or both null for a list. */
typedef struct {
    int64_t offset;
    PyObject *value;
    const Layout *layout;
} Slot;

/* The layout of a class, which kwire.plan.layouts writes. */
struct Layout {
    PyObject *type;
    PyObject *(*allocate)(PyObject *, Py_ssize_t);
    int64_t count;
    Slot slots[];
};

/* What message_codec keeps of a plan: rows, in which operand g of STRUCT is the address of a Layout, 0 for the pair of
 * a frame; the layout of uuid.UUID. */
typedef struct {
    const Row *rows;
    const Layout *uuid;
} Job;

/* Read a message at `start`: a new reference, or null: rejected, or an exception. partial: bytes may follow; *position
 * is where they start. */
PyObject *read_message(PyObject *data, const Job *job, int64_t start, int views, int partial, int64_t *position);

/* Write a message: new bytes, or null: rejected, or an exception. */
PyObject *write_message(PyObject *message, const Job *job);

static inline PyObject **place(PyObject *object, const Slot *slot) {
    return (PyObject **)((char *)object + slot->offset);
}

static inline PyObject *shared(PyObject *object) {
    Py_IncRef(object);
    return object;
}
