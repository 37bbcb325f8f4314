/* See slots.h. */

#include "slots.h"

#include <structmember.h>

#define SHAPES_MAX 1000

Py_ssize_t slot_offset(PyTypeObject *cls, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)cls, name);
    if (found == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDescrObject *member = (PyMemberDescrObject *)found;
        if (member->d_member->type == T_OBJECT_EX && PyType_IsSubtype(cls, PyDescr_TYPE(member)))
            offset = member->d_member->offset;
    }
    Py_DECREF(found);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", cls->tp_name, name);
    return offset;
}

int refuse_keywords(PyObject *keywords, const char *what)
{
    if (keywords == NULL || PyDict_GET_SIZE(keywords) == 0)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s takes no keywords", what);
    return -1;
}

int require_tuple(PyObject *item, const char *what)
{
    if (PyTuple_Check(item))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s is described by a tuple", what);
    return -1;
}

int count_shapes(PyObject *shapes)
{
    Py_ssize_t count = PyTuple_GET_SIZE(shapes);
    if (count > 0 && count <= SHAPES_MAX)
        return (int)count;
    PyErr_Format(PyExc_ValueError, "a plan has 1 to %d structs", SHAPES_MAX);
    return -1;
}
