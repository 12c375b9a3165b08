/* SharedDefault: the attribute of a field whose default is one object, which all structs share until they are asked for it.
 *
 * Reading the attribute replaces the shared object by a new one: an empty list, or a struct with its defaults. So fields
 * at their default that nobody reads cost nothing. The codec uses the slots of objects directly.
 */
#include "native.h"

typedef PyObject *(*Getter)(PyObject *, PyObject *, PyObject *);
typedef int (*Setter)(PyObject *, PyObject *, PyObject *);
typedef int (*Visitor)(PyObject *, void *);

typedef struct {
    Py_ssize_t ob_refcnt;
    PyObject *ob_type;
} Head;

typedef struct {
    Head head;
    PyObject *member; /* the attribute that the class had: it reads and writes the slot */
    PyObject *type;   /* makes a new value */
    PyObject *shared; /* an instance of `type` that belongs to this attribute, or the shared empty list */
    PyObject *owner;  /* the class, which `member` refers to */
    int64_t offset;   /* of the slot in its objects */
    Getter get_slot;
    Setter set_slot;
} SharedDefault;

static PyObject *shared_default_type;

static PyObject *get(SharedDefault *self, PyObject *object, PyObject *owner) {
    if (!object) {
        Py_IncRef((PyObject *)self);
        return (PyObject *)self;
    }
    PyObject *value = NULL;
    if (((Head *)object)->ob_type == self->owner) value = *(PyObject **)((char *)object + self->offset);
    if (value) Py_IncRef(value);
    else value = self->get_slot(self->member, object, owner); /* of a subclass; or it raises the error */
    if (!value || value != self->shared) return value;
    Py_DecRef(value);
    PyObject *made = self->type == &PyList_Type ? PyList_New(0) : PyObject_CallNoArgs(self->type);
    if (made && self->set_slot(self->member, object, made) == 0) return made;
    if (made) Py_DecRef(made);
    return NULL;
}

static int set(SharedDefault *self, PyObject *object, PyObject *value) {
    return self->set_slot(self->member, object, value);
}

/* Structs are not visited by the collector, so the reference of `shared` to its class is visited here. */
static int traverse(SharedDefault *self, Visitor visit, void *arg) {
    PyObject *of_shared = self->shared ? ((Head *)self->shared)->ob_type : NULL;
    PyObject *held[] = {self->head.ob_type, self->member, self->type, self->shared,
                        of_shared == self->type ? of_shared : NULL};
    int stop = 0;
    for (int i = 0; i < 5 && !stop; i++)
        if (held[i]) stop = visit(held[i], arg);
    return stop;
}

static void deallocate(SharedDefault *self) {
    PyObject *held[] = {self->member, self->type, self->shared, self->head.ob_type};
    PyObject_GC_UnTrack(self);
    PyObject_GC_Del(self);
    for (int i = 0; i < 4; i++)
        if (held[i]) Py_DecRef(held[i]);
}

/* shared_default(member, offset, type, shared): of a class's attribute `member`. shared: None for a struct, which is made
 * here. */
PyObject *shared_default(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    if (count != 4) return PyErr_Format(PyExc_TypeError, "takes 4 arguments, got %zd", count);
    PyObject *kind = ((Head *)objects[0])->ob_type;
    Getter getter = (Getter)PyType_GetSlot(kind, Py_tp_descr_get);
    Setter setter = (Setter)PyType_GetSlot(kind, Py_tp_descr_set);
    if (!getter || !setter) return PyErr_Format(PyExc_TypeError, "not the attribute of a class");
    PyObject *owner = PyObject_GetAttrString(objects[0], "__objclass__");
    const int64_t offset = PyLong_AsLongLong(objects[1]);
    if (!owner || (offset == -1 && PyErr_Occurred())) return NULL;
    Py_DecRef(owner);
    PyObject *shared = objects[3];
    if (shared == &_Py_NoneStruct)
        shared = PyObject_CallNoArgs(objects[2]);
    else
        Py_IncRef(shared);
    SharedDefault *made = shared ? (SharedDefault *)PyType_GenericAlloc(shared_default_type, 0) : NULL;
    if (!made) {
        if (shared) Py_DecRef(shared);
        return NULL;
    }
    Py_IncRef(made->member = objects[0]);
    Py_IncRef(made->type = objects[2]);
    made->shared = shared;
    made->owner = owner;
    made->offset = offset;
    made->get_slot = getter;
    made->set_slot = setter;
    return (PyObject *)made;
}

static PyMemberDef members[] = {
    {"shared", T_OBJECT, sizeof(Head) + 2 * sizeof(PyObject *), READONLY, "the default that structs share"},
    {0},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "The attribute of a field whose default is shared."},
    {Py_tp_descr_get, get},
    {Py_tp_descr_set, set},
    {Py_tp_traverse, traverse},
    {Py_tp_dealloc, deallocate},
    {Py_tp_members, members},
    {0},
};

static PyType_Spec spec = {
    "kwire.native._kernels.SharedDefault", sizeof(SharedDefault), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, type_slots};

/* Add the type to the module; 0 on success. */
int add_shared_default(PyObject *module) {
    shared_default_type = PyType_FromSpec(&spec);
    return shared_default_type ? PyModule_AddObjectRef(module, "SharedDefault", shared_default_type) : -1;
}
