/* Makes plans from their description; see plan.h, and kraftwire/wire/plans.py for the other side.

   A description is made by our own code, but a wrong one must not crash: everything is looked at
   before it is believed, and whatever is not as expected raises an exception. */

#include "plan.h"

#include <structmember.h>

static const struct {
    const char *name;
    Py_ssize_t size;
} KINDS[] = {
    [KIND_BOOL] = {"bool", 1},     [KIND_INT8] = {"int8", 1},
    [KIND_INT16] = {"int16", 2},   [KIND_UINT16] = {"uint16", 2},
    [KIND_INT32] = {"int32", 4},   [KIND_UINT32] = {"uint32", 4},
    [KIND_INT64] = {"int64", 8},   [KIND_FLOAT64] = {"float64", 8},
    [KIND_UUID] = {"uuid", 16},    [KIND_STRING] = {"string", 0},
    [KIND_BYTES] = {"bytes", 0},   [KIND_RECORDS] = {"records", 0},
    [KIND_STRUCT] = {"struct", 0},
};

static int kind_of(const char *name, Field *field)
{
    for (size_t at = 0; at < sizeof KINDS / sizeof KINDS[0]; at++) {
        if (strcmp(name, KINDS[at].name) == 0) {
            field->kind = (Kind)at;
            field->size = KINDS[at].size;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "the engine knows no type %s", name);
    return -1;
}

/* Where the objects of a class keep an attribute; -1 with an exception if it is no slot. */
static Py_ssize_t offset_of(PyTypeObject *cls, const char *name)
{
    PyObject *found = PyObject_GetAttrString((PyObject *)cls, name);
    if (found == NULL)
        return -1;
    Py_ssize_t offset = -1;
    if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
        PyMemberDescrObject *member = (PyMemberDescrObject *)found;
        if (member->d_member->type == T_OBJECT_EX && PyDescr_TYPE(member) == cls)
            offset = member->d_member->offset;
    }
    Py_DECREF(found);
    if (offset < 0)
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", cls->tp_name, name);
    return offset;
}

static Py_ssize_t element_size_min(const Field *field)
{
    if (field->kind == KIND_STRUCT)
        return Py_MAX(1, field->child->size_min);
    if (field->size > 0)
        return field->size;
    if (field->is_compact)
        return 1;
    return field->kind == KIND_STRING ? 2 : 4;
}

/* (attribute, type, is_array, is_compact, is_nullable, is_tagged, is_optional, is_ignorable, tag,
   default, number of the struct's shape or -1) */
static int read_field(Plan *plan, Shape *shape, Field *field, PyObject *item)
{
    const char *attribute, *type;
    int is_array, is_compact, is_nullable, is_tagged, is_optional, is_ignorable, child;
    long long tag;
    PyObject *fallback;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a field is described by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "ssppppppLOi", &attribute, &type, &is_array, &is_compact,
                          &is_nullable, &is_tagged, &is_optional, &is_ignorable, &tag, &fallback,
                          &child)
        || kind_of(type, field) < 0)
        return -1;
    if ((field->offset = offset_of(shape->cls, attribute)) < 0)
        return -1;
    if (field->kind == KIND_STRUCT) {
        if (child < 0 || plan->shapes + child >= shape) {
            PyErr_SetString(PyExc_ValueError, "a struct stands before those that hold it");
            return -1;
        }
        field->child = plan->shapes + child;
        shape->depth = Py_MAX(shape->depth, field->child->depth + 1);
    }
    field->is_array = is_array;
    field->is_compact = is_compact;
    field->is_nullable = is_nullable;
    field->is_tagged = is_tagged;
    field->is_optional = is_optional;
    field->is_ignorable = is_ignorable;
    field->tag = (uint32_t)tag;
    field->fallback = Py_NewRef(fallback);
    if (is_array)
        field->size = element_size_min(field);
    return 0;
}

static int read_fields(Plan *plan, Shape *shape, PyObject *const groups[3])
{
    Py_ssize_t counts[3];
    for (int group = 0; group < 3; group++)
        counts[group] = PyTuple_GET_SIZE(groups[group]);
    Py_ssize_t total = counts[0] + counts[1] + counts[2];
    shape->fields = PyMem_Calloc((size_t)total + 1, sizeof(Field));
    if (shape->fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    shape->wire_count = (int)counts[0];
    shape->absent_count = (int)counts[1];
    shape->tagged_count = (int)counts[2];
    Field *field = shape->fields;
    for (int group = 0; group < 3; group++) {
        for (Py_ssize_t at = 0; at < counts[group]; at++) {
            if (read_field(plan, shape, field++, PyTuple_GET_ITEM(groups[group], at)) < 0)
                return -1;
        }
    }
    return 0;
}

/* (class, is_flexible, is_counted, size_min, wire, absent and tagged fields) */
static int read_shape(Plan *plan, Shape *shape, PyObject *item)
{
    PyObject *cls, *groups[3];
    int is_flexible, is_counted;
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a struct is described by a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(item, "O!ppnO!O!O!", &PyType_Type, &cls, &is_flexible, &is_counted,
                          &shape->size_min, &PyTuple_Type, &groups[0], &PyTuple_Type, &groups[1],
                          &PyTuple_Type, &groups[2]))
        return -1;
    shape->cls = (PyTypeObject *)Py_NewRef(cls);
    shape->is_flexible = is_flexible;
    shape->is_counted = is_counted;
    shape->unknown_offset = offset_of(shape->cls, "unknown_tagged_fields");
    if (shape->unknown_offset < 0 || read_fields(plan, shape, groups) < 0)
        return -1;
    if (shape->depth > DEPTH_MAX) {
        PyErr_SetString(PyExc_ValueError, "the structs of a message are nested too deeply");
        return -1;
    }
    return 0;
}

/* Plan(shapes, decoder, encoder, string_size_max) */
static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *shapes, *decoder, *encoder;
    Py_ssize_t string_size_max;
    if (keywords != NULL && PyDict_GET_SIZE(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "a plan takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(arguments, "O!OOn", &PyTuple_Type, &shapes, &decoder, &encoder,
                          &string_size_max))
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(shapes);
    if (count == 0 || count > 1000) {
        PyErr_SetString(PyExc_ValueError, "a plan has 1 to 1000 structs");
        return NULL;
    }
    Plan *plan = (Plan *)type->tp_alloc(type, 0);
    if (plan == NULL)
        return NULL;
    plan->decoder = Py_NewRef(decoder);
    plan->encoder = Py_NewRef(encoder);
    plan->string_size_max = string_size_max;
    plan->shapes = PyMem_Calloc((size_t)count, sizeof(Shape));
    if (plan->shapes == NULL) {
        Py_DECREF(plan);
        return PyErr_NoMemory();
    }
    plan->shape_count = (int)count;
    for (Py_ssize_t at = 0; at < count; at++) {
        if (read_shape(plan, plan->shapes + at, PyTuple_GET_ITEM(shapes, at)) < 0) {
            Py_DECREF(plan);
            return NULL;
        }
    }
    return (PyObject *)plan;
}

static void plan_dealloc(PyObject *self)
{
    Plan *plan = (Plan *)self;
    for (int at = 0; at < plan->shape_count; at++) {
        Shape *shape = plan->shapes + at;
        int count = shape->wire_count + shape->absent_count + shape->tagged_count;
        for (int each = 0; each < count; each++)
            Py_XDECREF(shape->fields[each].fallback);
        PyMem_Free(shape->fields);
        Py_XDECREF(shape->cls);
    }
    PyMem_Free(plan->shapes);
    Py_XDECREF(plan->decoder);
    Py_XDECREF(plan->encoder);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef plan_methods[] = {
    {"decode", (PyCFunction)(void (*)(void))plan_decode, METH_FASTCALL,
     "decode(data, position, budget): the message there and the position after it."},
    {"encode", plan_encode, METH_O, "encode(message): its bytes."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot plan_slots[] = {
    {Py_tp_doc, "What one version of a message has, for decoding and encoding."},
    {Py_tp_new, plan_new},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_methods, plan_methods},
    {0, NULL},
};

PyType_Spec plan_spec = {
    .name = "kraftwire.engine._core.Plan",
    .basicsize = sizeof(Plan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = plan_slots,
};
