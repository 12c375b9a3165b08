/* What messages.c, messages_writing.c and codec.c share. */
#pragma once
#include "native.h"
#include "plan_reading.h"

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

/* What message_codec keeps of a plan: rows, in which `layout` of STRUCT is the address of a Layout, 0 for the pair of
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

static inline PyObject **field_of(PyObject *object, const Slot *slot) {
    return (PyObject **)((char *)object + slot->offset);
}

/* Where a struct's next value is. */
typedef struct {
    const Layout *layout;
    const Slot *slot, *kept; /* kept: the next one before SEEK */
} Position;

/* Follow a row of a struct with fields that are tagged in other versions: its values are out of the order of the class.
 * walker: a Reader or Writer. */
#define MOVE(walker)                                             \
    do {                                                         \
        Position *at_ = &(walker)->top->at;                      \
        switch ((walker)->row->op) {                             \
        case MARK: (walker)->marked = 1; break;                  \
        case SEEK:                                               \
            at_->kept = at_->slot;                               \
            at_->slot = at_->layout->slots + (walker)->row->index;   \
            break;                                               \
        case BACK: at_->slot = at_->kept; break;                 \
        case SKIP: at_->slot++; break;                           \
        default: (walker)->top--; /* PERMUTE */                  \
        }                                                        \
        (walker)->row++;                                         \
    } while (0)

static inline PyObject *new_reference(PyObject *object) {
    Py_IncRef(object);
    return object;
}
