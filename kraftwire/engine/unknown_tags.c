/* Whether a decoded message has tagged fields that its schema lacks. */

#include "plan.h"

static bool has_unknown(const Shape *shape, PyObject *object);

static bool is_unknown_inside(const Field *field, PyObject *value)
{
    if (value == Py_None)
        return false;
    if (!field->is_array)
        return has_unknown(field->child, value);
    if (value == NULL || !PyList_CheckExact(value))
        return true;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(value); at++) {
        if (has_unknown(field->child, PyList_GET_ITEM(value, at)))
            return true;
    }
    return false;
}

/* True as well for an object that no decoder makes: Python then looks closer. */
static bool has_unknown(const Shape *shape, PyObject *object)
{
    if (object == NULL || !is_of(shape, object) || *slot(object, shape->unknown_offset) != Py_None)
        return true;
    const Field *field = shape->fields;
    const Field *end = field + shape->wire_count + shape->absent_count + shape->tagged_count;
    for (; field < end; field++) {
        if (field->child != NULL && is_unknown_inside(field, *slot(object, field->offset)))
            return true;
    }
    return false;
}

PyObject *plan_has_unknown_tags(PyObject *self, PyObject *message)
{
    Plan *plan = (Plan *)self;
    return PyBool_FromLong(has_unknown(plan->shapes + plan->shape_count - 1, message));
}
