/* Default values of fields, and whether a value equals its field's default. */

#include "plan.h"

static PyObject *fresh_struct(const Shape *shape)
{
    PyObject *object = shape->cls->tp_alloc(shape->cls, 0);
    if (object == NULL)
        return NULL;
    int count = shape->wire_count + shape->absent_count + shape->tagged_count;
    for (int at = 0; at < count; at++) {
        const Field *field = shape->fields + at;
        PyObject *value = fresh_default(field);
        if (value == NULL) {
            Py_DECREF(object);
            return NULL;
        }
        Py_XSETREF(*slot(object, field->offset), value);
    }
    Py_XSETREF(*slot(object, shape->unknown_offset), Py_NewRef(Py_None));
    return object;
}

PyObject *fresh_default(const Field *field)
{
    if (!PyTuple_CheckExact(field->fallback))
        return own_constant(field->fallback);
    return field->is_array ? PyList_New(0) : fresh_struct(field->child);
}

static int is_equal(const Field *field, PyObject *value);

/* Whether an object equals a new one of its class. */
static int is_fresh(const Shape *shape, PyObject *object)
{
    if (!is_of(shape, object))
        return object == Py_None ? 0 : -1;
    int count = shape->wire_count + shape->absent_count + shape->tagged_count;
    for (int at = 0; at < count; at++) {
        PyObject *value = hold(object, shape->fields[at].offset);
        int result = is_equal(shape->fields + at, value);
        release(value);
        if (result != 1)
            return result;
    }
    PyObject *unknown = hold(object, shape->unknown_offset);
    release(unknown);
    return unknown == NULL ? -1 : unknown == Py_None;
}

/* Only values whose comparison runs no Python code are compared. */
static int is_equal(const Field *field, PyObject *value)
{
    PyObject *fallback = field->fallback;
    if (value == NULL)
        return -1;
    if (value == fallback)
        return PyTuple_CheckExact(value) ? -1 : 1;
    if (field->is_array) {
        if (value == Py_None)
            return 0;
        if (!PyList_CheckExact(value))
            return -1;
        return PyTuple_CheckExact(fallback) && PyList_GET_SIZE(value) == 0;
    }
    if (field->kind == KIND_STRUCT)
        return PyTuple_CheckExact(fallback) ? is_fresh(field->child, value)
                                            : (is_of(field->child, value) ? 0 : -1);
    if (value == Py_None || fallback == Py_None) {
        bool is_usual = value == Py_None || PyUnicode_CheckExact(value)
                        || PyBytes_CheckExact(value) || PyMemoryView_Check(value);
        return is_usual ? 0 : -1;
    }
    if (Py_TYPE(value) != Py_TYPE(fallback))
        return -1;
    if (!PyLong_CheckExact(value) && !PyUnicode_CheckExact(value) && !PyBytes_CheckExact(value)
        && !PyBool_Check(value) && !PyFloat_CheckExact(value))
        return -1;
    return PyObject_RichCompareBool(value, fallback, Py_EQ);
}

int is_at_default(const Field *field, PyObject *value)
{
    if (field->is_optional && value != NULL && value != Py_None)
        return is_fresh(field->child, value);
    return is_equal(field, value);
}
