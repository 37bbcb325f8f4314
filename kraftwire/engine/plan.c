/* Makes plans from their description; see plan.h, and kraftwire/wire/plans.py for the other side.

   A description is made by our own code, but a wrong one must not crash: everything is checked
   before it is used, and anything unexpected raises an exception. */

#include "plan.h"

static const char *const NAMES[] = {
    [KIND_BOOL] = "bool",     [KIND_INT8] = "int8",       [KIND_INT16] = "int16",
    [KIND_UINT16] = "uint16", [KIND_INT32] = "int32",     [KIND_UINT32] = "uint32",
    [KIND_INT64] = "int64",   [KIND_FLOAT64] = "float64", [KIND_UUID] = "uuid",
    [KIND_STRING] = "string", [KIND_BYTES] = "bytes",     [KIND_RECORDS] = "records",
    [KIND_STRUCT] = "struct",
};

int kind_named(const char *name, Kind *kind)
{
    for (size_t at = 0; at < sizeof NAMES / sizeof NAMES[0]; at++) {
        if (strcmp(name, NAMES[at]) == 0) {
            *kind = (Kind)at;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError, "the engine knows no type %s", name);
    return -1;
}

Py_ssize_t element_size_min(Kind kind, bool is_compact, Py_ssize_t struct_size_min)
{
    if (kind == KIND_STRUCT)
        return Py_MAX(1, struct_size_min);
    if (kind < KIND_STRING)
        return fixed_size(kind);
    if (is_compact)
        return 1;
    return kind == KIND_STRING ? 2 : 4;
}

int require_inner(int number, Py_ssize_t outer)
{
    if (number >= 0 && number < outer)
        return 0;
    PyErr_SetString(PyExc_ValueError, "a struct stands before those that hold it");
    return -1;
}

int require_depth(int depth)
{
    if (depth <= DEPTH_MAX)
        return 0;
    PyErr_SetString(PyExc_ValueError, "the structs of a message are nested too deeply");
    return -1;
}

/* (attribute, type, is_array, is_compact, is_nullable, is_tagged, is_optional, is_ignorable, is_error,
   tag, default, number of the struct's shape or -1) */
static int read_field(Plan *plan, Shape *shape, Field *field, PyObject *item)
{
    const char *attribute, *type;
    int is_array, is_compact, is_nullable, is_tagged, is_optional, is_ignorable, is_error, child;
    long long tag;
    PyObject *fallback;
    if (require_tuple(item, "a field") < 0)
        return -1;
    if (!PyArg_ParseTuple(item, "sspppppppLOi", &attribute, &type, &is_array, &is_compact,
                          &is_nullable, &is_tagged, &is_optional, &is_ignorable, &is_error, &tag,
                          &fallback, &child)
        || kind_named(type, &field->kind) < 0)
        return -1;
    field->size = field->kind < KIND_STRING ? fixed_size(field->kind) : 0;
    if ((field->offset = slot_offset(shape->cls, attribute)) < 0)
        return -1;
    if (field->kind == KIND_STRUCT) {
        if (require_inner(child, shape - plan->shapes) < 0)
            return -1;
        field->child = plan->shapes + child;
        shape->depth = Py_MAX(shape->depth, field->child->depth + 1);
    }
    field->is_array = is_array;
    field->is_compact = is_compact;
    field->is_nullable = is_nullable;
    field->is_tagged = is_tagged;
    field->is_optional = is_optional;
    field->is_ignorable = is_ignorable;
    field->is_error = is_error && !is_array && field->kind == KIND_INT16;
    field->tag = (uint32_t)tag;
    field->fallback = Py_NewRef(fallback);
    if (is_array) {
        Py_ssize_t struct_size_min = field->child == NULL ? 0 : field->child->size_min;
        field->size = element_size_min(field->kind, field->is_compact, struct_size_min);
    }
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
    if (require_tuple(item, "a struct") < 0)
        return -1;
    if (!PyArg_ParseTuple(item, "O!ppnO!O!O!", &PyType_Type, &cls, &is_flexible, &is_counted,
                          &shape->size_min, &PyTuple_Type, &groups[0], &PyTuple_Type, &groups[1],
                          &PyTuple_Type, &groups[2]))
        return -1;
    shape->cls = (PyTypeObject *)Py_NewRef(cls);
    shape->is_flexible = is_flexible;
    shape->is_counted = is_counted;
    shape->unknown_offset = slot_offset(shape->cls, "unknown_tagged_fields");
    if (shape->unknown_offset < 0 || read_fields(plan, shape, groups) < 0)
        return -1;
    return require_depth(shape->depth);
}

/* Plan(shapes, decoder, encoder, string_size_max, elements_free, element_bytes_min) */
static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *shapes, *decoder, *encoder;
    Py_ssize_t string_size_max, elements_free, element_bytes_min;
    if (refuse_keywords(keywords, "a plan") < 0)
        return NULL;
    if (!PyArg_ParseTuple(arguments, "O!OOnnn", &PyTuple_Type, &shapes, &decoder, &encoder,
                          &string_size_max, &elements_free, &element_bytes_min))
        return NULL;
    int count = count_shapes(shapes);
    if (count < 0)
        return NULL;
    if (element_bytes_min < 1) {
        PyErr_SetString(PyExc_ValueError, "an element has at least one byte");
        return NULL;
    }
    Plan *plan = (Plan *)type->tp_alloc(type, 0);
    if (plan == NULL)
        return NULL;
    plan->decoder = Py_NewRef(decoder);
    plan->encoder = Py_NewRef(encoder);
    plan->string_size_max = string_size_max;
    plan->elements_free = elements_free;
    plan->element_bytes_min = element_bytes_min;
    plan->shapes = PyMem_Calloc((size_t)count, sizeof(Shape));
    if (plan->shapes == NULL) {
        Py_DECREF(plan);
        return PyErr_NoMemory();
    }
    plan->shape_count = count;
    for (int at = 0; at < count; at++) {
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
    {"read", (PyCFunction)(void (*)(void))plan_read, METH_FASTCALL,
     "read(data, is_request, has_tags): the message in a frame, and whether any error code is set."},
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
