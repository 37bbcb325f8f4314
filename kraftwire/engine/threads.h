/* Reading and writing what other threads may change meanwhile.

   With the interpreter's lock nobody can: then a borrowed reference is enough, and all of this costs
   nothing. Without it, what is looked at is held by a reference of its own until `release`, and lists
   and dicts are copied. RUNS_ALONE says which of both it is. */

#ifndef KRAFTWIRE_THREADS_H
#define KRAFTWIRE_THREADS_H

#include "wire.h"

#ifndef Py_BEGIN_CRITICAL_SECTION /* before Python 3.13 */
#define Py_BEGIN_CRITICAL_SECTION(object) {
#define Py_END_CRITICAL_SECTION() }
#endif

static inline PyObject **slot(PyObject *object, Py_ssize_t offset)
{
    return (PyObject **)((char *)object + offset);
}

#ifdef Py_GIL_DISABLED

#define RUNS_ALONE false

/* The value of a slot, NULL if it has none. */
static inline PyObject *hold(PyObject *object, Py_ssize_t offset)
{
    PyObject *value;
    Py_BEGIN_CRITICAL_SECTION(object);
    value = Py_XNewRef(*slot(object, offset));
    Py_END_CRITICAL_SECTION();
    return value;
}

/* An item of a list; NULL with an exception if the list has become shorter. */
static inline PyObject *hold_item(PyObject *list, Py_ssize_t at)
{
    return PyList_GetItemRef(list, at);
}

/* What has the items of a list or a tuple and does not change; NULL without memory. */
static inline PyObject *hold_items(PyObject *items)
{
    return PyList_CheckExact(items) ? PyList_AsTuple(items) : Py_NewRef(items);
}

/* The same for the entries of a dict, which is the value of a slot; any other value as it is. */
static inline PyObject *hold_entries(PyObject *object, Py_ssize_t offset)
{
    PyObject *value = hold(object, offset);
    if (value == NULL || !PyDict_CheckExact(value))
        return value;
    PyObject *copy = PyDict_Copy(value);
    Py_DECREF(value);
    return copy;
}

static inline void release(PyObject *held)
{
    Py_XDECREF(held);
}

/* Puts a value, whose reference it takes, into a slot: other threads see the old one or this one. */
static inline void replace(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    PyObject *before;
    Py_BEGIN_CRITICAL_SECTION(object);
    before = *slot(object, offset);
    _Py_atomic_store_ptr_release(slot(object, offset), value);
    Py_END_CRITICAL_SECTION();
    Py_XDECREF(before);
}

/* A new reference to a constant, or a copy: threads that count the same object's references in common
   slow each other down. */
static inline PyObject *own_constant(PyObject *constant)
{
    if (PyLong_CheckExact(constant))
        return PyLong_FromLongLong(PyLong_AsLongLong(constant));
    if (PyBytes_CheckExact(constant))
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(constant), PyBytes_GET_SIZE(constant));
    return Py_NewRef(constant);
}

#else

#define RUNS_ALONE true

static inline PyObject *hold(PyObject *object, Py_ssize_t offset)
{
    return *slot(object, offset);
}

static inline PyObject *hold_item(PyObject *list, Py_ssize_t at)
{
    return PyList_GET_ITEM(list, at);
}

static inline PyObject *hold_items(PyObject *items)
{
    return items;
}

static inline PyObject *hold_entries(PyObject *object, Py_ssize_t offset)
{
    return *slot(object, offset);
}

static inline void release(PyObject *Py_UNUSED(held))
{
}

static inline void replace(PyObject *object, Py_ssize_t offset, PyObject *value)
{
    Py_XSETREF(*slot(object, offset), value);
}

static inline PyObject *own_constant(PyObject *constant)
{
    return Py_NewRef(constant);
}

#endif

#endif
