/* Makes the plans that write JSON from their description; see json.h, and
   kraftwire/wire/json_form.py for the other side. As in plan.c, everything is checked. */

#include "json.h"

/* (key, type, is_array, is_compact, is_nullable, is_tagged, tag, kind of topic, bytes of the default
   or None, number of the struct's shape or -1) */
static int read_field(JsonPlan *plan, JsonShape *shape, JsonField *field, PyObject *item)
{
    const char *type;
    int is_array, is_compact, is_nullable, is_tagged, topic, child;
    long long tag;
    PyObject *key, *fallback;
    if (require_tuple(item, "a field") < 0)
        return -1;
    if (!PyArg_ParseTuple(item, "SsppppLiOi", &key, &type, &is_array, &is_compact, &is_nullable,
                          &is_tagged, &tag, &topic, &fallback, &child)
        || kind_named(type, &field->kind) < 0)
        return -1;
    if (topic < 0 || topic >= TOPIC_KINDS || is_tagged != PyBytes_Check(fallback)
        || field->kind == KIND_FLOAT64 || (topic == TOPIC_ID && field->kind != KIND_UUID)
        || (topic == TOPIC_NAME && field->kind != KIND_STRING) || (topic && is_array)
        || (field->kind == KIND_RECORDS && is_array)) {
        PyErr_SetString(PyExc_ValueError, "no plan for JSON has such a field");
        return -1;
    }
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
    field->tag = (uint32_t)tag;
    field->topic = (TopicKind)topic;
    field->key = Py_NewRef(key);
    field->fallback = is_tagged ? Py_NewRef(fallback) : NULL;
    Py_ssize_t struct_size_min = field->child == NULL ? 0 : field->child->size_min;
    field->element_min = element_size_min(field->kind, field->is_compact, struct_size_min);
    return 0;
}

/* (is_flexible, size_min, weight, wire and tagged fields) */
static int read_shape(JsonPlan *plan, JsonShape *shape, PyObject *item)
{
    PyObject *groups[2];
    int is_flexible;
    if (require_tuple(item, "a struct") < 0)
        return -1;
    if (!PyArg_ParseTuple(item, "pnnO!O!", &is_flexible, &shape->size_min, &shape->weight,
                          &PyTuple_Type, &groups[0], &PyTuple_Type, &groups[1]))
        return -1;
    Py_ssize_t wire = PyTuple_GET_SIZE(groups[0]), tagged = PyTuple_GET_SIZE(groups[1]);
    if (shape->weight < 1) {
        PyErr_SetString(PyExc_ValueError, "a struct has a weight");
        return -1;
    }
    shape->fields = PyMem_Calloc((size_t)(wire + tagged) + 1, sizeof(JsonField));
    if (shape->fields == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    shape->is_flexible = is_flexible;
    shape->wire_count = (int)wire;
    shape->tagged_count = (int)tagged;
    for (Py_ssize_t at = 0; at < wire + tagged; at++) {
        PyObject *field = at < wire ? PyTuple_GET_ITEM(groups[0], at)
                                    : PyTuple_GET_ITEM(groups[1], at - wire);
        if (read_field(plan, shape, shape->fields + at, field) < 0)
            return -1;
    }
    return require_depth(shape->depth);
}

/* JsonPlan(shapes, string_size_max) */
static PyObject *json_plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *shapes;
    Py_ssize_t string_size_max;
    if (refuse_keywords(keywords, "a plan") < 0)
        return NULL;
    if (!PyArg_ParseTuple(arguments, "O!n", &PyTuple_Type, &shapes, &string_size_max))
        return NULL;
    int count = count_shapes(shapes);
    if (count < 0)
        return NULL;
    JsonPlan *plan = (JsonPlan *)type->tp_alloc(type, 0);
    if (plan == NULL)
        return NULL;
    plan->string_size_max = string_size_max;
    plan->shapes = PyMem_Calloc((size_t)count, sizeof(JsonShape));
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

static void json_plan_dealloc(PyObject *self)
{
    JsonPlan *plan = (JsonPlan *)self;
    for (int at = 0; at < plan->shape_count; at++) {
        JsonShape *shape = plan->shapes + at;
        int count = shape->wire_count + shape->tagged_count;
        for (int each = 0; each < count; each++) {
            Py_XDECREF(shape->fields[each].key);
            Py_XDECREF(shape->fields[each].fallback);
        }
        PyMem_Free(shape->fields);
    }
    PyMem_Free(plan->shapes);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef json_plan_methods[] = {
    {"write", (PyCFunction)(void (*)(void))json_plan_write, METH_FASTCALL,
     "write(data, position, budget): the message there as JSON, or None to ask Python."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot json_plan_slots[] = {
    {Py_tp_doc, "What one version of a message has, for JSON."},
    {Py_tp_new, json_plan_new},
    {Py_tp_dealloc, json_plan_dealloc},
    {Py_tp_methods, json_plan_methods},
    {0, NULL},
};

PyType_Spec json_plan_spec = {
    .name = "kraftwire.engine._core.JsonPlan",
    .basicsize = sizeof(JsonPlan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = json_plan_slots,
};
