/* Codecs as Python calls them: decode, decode_from and encode, and what they are made of. */
#include "messages.h"

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
    PyObject *message = read_message(data, job, start, views, partial, position);
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

/* Make the `self` of functions: (address of a Job, function of the walker, what the Job refers to). */
static PyObject *keep(PyObject *const *objects, Py_ssize_t count) {
    if (count != 3) return PyErr_Format(PyExc_TypeError, "takes 3 arguments, got %zd", count);
    PyObject *self = PyTuple_New(3);
    for (Py_ssize_t i = 0; self && i < 3; i++) PyTuple_SetItem(self, i, new_reference(objects[i]));
    return self;
}

PyObject *decoders(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    PyObject *self = keep(objects, count), *found = NULL;
    if (self) {
        found = pair(PyCFunction_NewEx(&decode_methods[0], self, NULL), PyCFunction_NewEx(&decode_methods[1], self, NULL));
        Py_DecRef(self);
    }
    return found;
}

PyObject *slots(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    if (count != 1) return PyErr_Format(PyExc_TypeError, "takes 1 argument, got %zd", count);
    const int is_class = PyObject_IsInstance(objects[0], &PyType_Type);
    if (is_class <= 0) return is_class ? NULL : PyErr_Format(PyExc_TypeError, "not a class");
    PyObject *offsets = PyDict_New();
    const PyMemberDef *members = PyType_GetSlot(objects[0], Py_tp_members);
    for (; offsets && members && members->name; members++) {
        PyObject *offset = PyLong_FromLongLong(members->offset);
        if (!offset || PyDict_SetItemString(offsets, members->name, offset) < 0) {
            Py_DecRef(offsets);
            offsets = NULL;
        }
        if (offset) Py_DecRef(offset);
    }
    return pair(PyLong_FromLongLong((int64_t)PyType_GetSlot(objects[0], Py_tp_alloc)), offsets);
}

/* Encoding. `self`: the tuple (address of a Job, the walker's write, what the Job refers to). */

static PyObject *encode(PyObject *self, PyObject *message) {
    PyObject *made = write_message(message, (const Job *)PyLong_AsLongLong(PyTuple_GetItem(self, 0)));
    if (made || PyErr_Occurred()) return made;
    return PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 1), message, NULL);
}

static PyMethodDef encode_method = {"encode", (PyCFunction)(void *)encode, METH_O, NULL};

PyObject *encoder(PyObject *module, PyObject *const *objects, Py_ssize_t count) {
    PyObject *self = keep(objects, count);
    PyObject *found = self ? PyCFunction_NewEx(&encode_method, self, NULL) : NULL;
    if (self) Py_DecRef(self);
    return found;
}
