/* Decodes messages by their plan, straight into the slots of new objects.

   NULL and -1 mean "fall back": bytes that are damaged, or sound but unusual. The Python decoder
   then reads the message again and decides. */

#include "plan.h"

/* Messages of this size have enough objects for a collection to start while they are made. */
#define HIDE_SIZE_MIN 4096
#define MADE_SIZE_MIN 256

typedef struct {
    const Plan *plan;
    const uint8_t *start, *p, *end;
    PyObject *data; /* borrowed: the caller of `decode` holds it */
    PyObject *view; /* owned: a memoryview of all of it, once there are records; see `get_view` */
    int64_t budget;
    /* Whether a tagged field came that the schema lacks, and an error code other than 0. */
    bool has_unknown, has_error;
    /* A large message's objects are hidden from the collector until it is complete: a collection,
       which any allocation may start, would walk over all that was made so far, again and again.
       They are listed here (borrowed: each is held by another one or by a function under way). */
    bool hides;
    PyObject **made;
    Py_ssize_t made_count, made_size;
} Input;

static PyObject *decode_struct(Input *in, const Shape *shape);

/* Note an object that the collector does not see yet. Takes the reference; NULL without memory. */
static PyObject *note(Input *in, PyObject *object)
{
    if (in->made_count == in->made_size) {
        Py_ssize_t size = Py_MAX(MADE_SIZE_MIN, in->made_size * 2);
        PyObject **made = PyMem_Realloc(in->made, (size_t)size * sizeof *made);
        if (made == NULL) {
            Py_DECREF(object);
            return NULL;
        }
        in->made = made;
        in->made_size = size;
    }
    in->made[in->made_count++] = object;
    return object;
}

/* An object with NULL in all its slots, so that it can be dropped at any time. One without structs
   has numbers, strings and lists of them: it is in no cycle, and the collector never sees it. A
   program that keeps a hundred thousand would stop for a tenth of a second at each collection. */
static PyObject *new_object(Input *in, const Shape *shape)
{
    PyTypeObject *cls = shape->cls;
    if (!in->hides && shape->depth > 0)
        return cls->tp_alloc(cls, 0);
    PyObject *object = PyObject_GC_New(PyObject, cls);
    if (object == NULL)
        return NULL;
    memset((char *)object + sizeof(PyObject), 0, (size_t)cls->tp_basicsize - sizeof(PyObject));
    return shape->depth > 0 ? note(in, object) : object;
}

/* Show all objects of a complete message to the collector. */
static void show(const Input *in)
{
    for (Py_ssize_t at = 0; at < in->made_count; at++)
        PyObject_GC_Track(in->made[at]);
}

static inline Py_ssize_t bytes_left(const Input *in)
{
    return in->end - in->p;
}

/* The length in front of a value, -1 for null, -2 if there is none or none that fits. */
static inline Py_ssize_t get_length(Input *in, const Field *field, int plain_size)
{
    int64_t length;
    if (field->is_compact) {
        uint64_t raw;
        if (in->p < in->end && *in->p < 0x80)
            raw = *in->p++;
        else if (get_uvarint(&in->p, in->end, 32, &raw) < 0)
            return -2;
        length = (int64_t)raw - 1;
    } else {
        if (bytes_left(in) < plain_size)
            return -2;
        uint64_t raw = get_big(in->p, plain_size);
        length = plain_size == 2 ? (int16_t)raw : (int32_t)raw;
        in->p += plain_size;
    }
    if (length > bytes_left(in))
        return -2;
    return length < 0 ? -1 : (Py_ssize_t)length;
}

static PyObject *get_float(const uint8_t *p)
{
    uint64_t bits = get_big(p, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return PyFloat_FromDouble(value);
}

/* A value of fixed width, whose bytes are known to be there. */
static inline PyObject *get_fixed(const uint8_t *p, Kind kind)
{
    switch (kind) {
    case KIND_BOOL:
        return Py_NewRef(*p ? Py_True : Py_False);
    case KIND_INT8:
        return PyLong_FromLong((int8_t)*p);
    case KIND_INT16:
        return PyLong_FromLong((int16_t)get_big(p, 2));
    case KIND_UINT16:
        return PyLong_FromLong((long)get_big(p, 2));
    case KIND_INT32:
        return PyLong_FromLong((int32_t)get_big(p, 4));
    case KIND_UINT32:
        return PyLong_FromUnsignedLong((unsigned long)get_big(p, 4));
    case KIND_INT64:
        return PyLong_FromLongLong((long long)get_big(p, 8));
    case KIND_FLOAT64:
        return get_float(p);
    default:
        return PyBytes_FromStringAndSize((const char *)p, 16);
    }
}

/* Part of the input, not copied: what slicing a memoryview makes, without the slice. Views of one view
   count themselves in common, and CPython does so without a lock: where threads may drop them at the
   same time, each has a count of its own. */
static PyObject *get_view(Input *in, Py_ssize_t size)
{
    if (RUNS_ALONE && in->view == NULL && (in->view = PyMemoryView_FromObject(in->data)) == NULL)
        return NULL;
    PyObject *part = PyMemoryView_FromObject(RUNS_ALONE ? in->view : in->data);
    if (part == NULL)
        return NULL;
    Py_buffer *buffer = PyMemoryView_GET_BUFFER(part);
    buffer->buf = (char *)buffer->buf + (in->p - in->start);
    buffer->len = size;
    buffer->shape[0] = size;
    return part;
}

/* A string, bytes or records; null too, if `is_nullable`. */
static PyObject *get_sized(Input *in, const Field *field, bool is_nullable)
{
    bool is_string = field->kind == KIND_STRING;
    Py_ssize_t size = get_length(in, field, is_string ? 2 : 4);
    if (size < 0)
        return size == -1 && is_nullable ? Py_NewRef(Py_None) : NULL;
    PyObject *value;
    if (is_string) {
        if (size > in->plan->string_size_max)
            return NULL;
        value = PyUnicode_DecodeUTF8((const char *)in->p, size, NULL);
    } else if (field->kind == KIND_RECORDS) {
        value = get_view(in, size);
    } else {
        value = PyBytes_FromStringAndSize((const char *)in->p, size);
    }
    in->p += size;
    return value;
}

static inline PyObject *get_element(Input *in, const Field *field)
{
    if (field->kind == KIND_STRUCT)
        return decode_struct(in, field->child);
    if (field->kind >= KIND_STRING)
        return get_sized(in, field, false);
    /* The array's bytes were seen to be there. */
    PyObject *value = get_fixed(in->p, field->kind);
    in->p += field->size;
    return value;
}

/* Small structs are counted: their objects are larger than their bytes. */
static int spend(Input *in, const Field *field, Py_ssize_t count)
{
    if (field->kind != KIND_STRUCT || !field->child->is_counted)
        return 0;
    in->budget -= count;
    return in->budget < 0 ? -1 : 0;
}

static PyObject *get_array(Input *in, const Field *field)
{
    Py_ssize_t count = get_length(in, field, 4);
    if (count < 0)
        return count == -1 && field->is_nullable ? Py_NewRef(Py_None) : NULL;
    if (count > bytes_left(in) / field->size || spend(in, field, count) < 0)
        return NULL;
    PyObject *list = PyList_New(count);
    if (list == NULL)
        return NULL;
    /* Until every element is there nobody else may find the list. */
    PyObject_GC_UnTrack(list);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *item = get_element(in, field);
        if (item == NULL) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, at, item);
    }
    if (field->kind != KIND_STRUCT)
        return list; /* see `new_object` */
    if (in->hides)
        return note(in, list);
    PyObject_GC_Track(list);
    return list;
}

/* 1 if a struct follows, 0 for null, -1 to fall back. */
static int get_marker(Input *in, const Field *field)
{
    uint64_t raw;
    if (!field->is_nullable)
        return 1;
    if (field->is_tagged)
        return get_uvarint(&in->p, in->end, 32, &raw) < 0 ? -1 : raw != 0;
    return in->p < in->end ? (int8_t)*in->p++ >= 0 : -1;
}

static PyObject *get_struct(Input *in, const Field *field)
{
    int marker = get_marker(in, field);
    if (marker <= 0)
        return marker == 0 ? Py_NewRef(Py_None) : NULL;
    return spend(in, field, 1) < 0 ? NULL : decode_struct(in, field->child);
}

static inline PyObject *get_value(Input *in, const Field *field)
{
    if (field->is_array)
        return get_array(in, field);
    if (field->kind == KIND_STRUCT)
        return get_struct(in, field);
    if (field->kind >= KIND_STRING)
        return get_sized(in, field, field->is_nullable);
    if (bytes_left(in) < field->size)
        return NULL;
    if (field->is_error && (in->p[0] | in->p[1]))
        in->has_error = true;
    PyObject *value = get_fixed(in->p, field->kind);
    in->p += field->size;
    return value;
}

static int keep_unknown(Input *in, PyObject *object, const Shape *shape, uint32_t tag,
                        const uint8_t *p, Py_ssize_t size)
{
    PyObject **held = slot(object, shape->unknown_offset);
    in->has_unknown = true;
    if (*held == Py_None) {
        PyObject *tags = PyDict_New();
        if (tags == NULL)
            return -1;
        Py_SETREF(*held, tags);
    }
    PyObject *key = PyLong_FromUnsignedLong(tag);
    PyObject *value = PyBytes_FromStringAndSize((const char *)p, size);
    int result = key && value ? PyDict_SetItem(*held, key, value) : -1;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return result;
}

/* The tag that was read, -1 to fall back. */
static int64_t get_tag(Input *in, const Shape *shape, PyObject *object, int64_t last)
{
    uint64_t tag, size;
    if (get_uvarint(&in->p, in->end, 32, &tag) < 0 || get_uvarint(&in->p, in->end, 32, &size) < 0
        || size > (uint64_t)bytes_left(in) || (int64_t)tag <= last)
        return -1;
    const uint8_t *after = in->p + size;
    const Field *field = shape->fields + shape->wire_count + shape->absent_count;
    for (int at = 0; at < shape->tagged_count; at++, field++) {
        if (field->tag != tag)
            continue;
        PyObject *value = get_value(in, field);
        if (value == NULL)
            return -1;
        Py_SETREF(*slot(object, field->offset), value);
        return in->p == after ? (int64_t)tag : -1;
    }
    int result = keep_unknown(in, object, shape, (uint32_t)tag, in->p, (Py_ssize_t)size);
    in->p = after;
    return result < 0 ? -1 : (int64_t)tag;
}

/* More tagged fields than one byte counts are left to Python, and tags that do not ascend: the
   second of two would drop the first one's value, which `made` names. */
static int get_tags(Input *in, const Shape *shape, PyObject *object)
{
    if (in->p >= in->end || *in->p > 0x7F)
        return -1;
    int64_t last = -1;
    for (int left = *in->p++; left > 0; left--) {
        if ((last = get_tag(in, shape, object, last)) < 0)
            return -1;
    }
    return 0;
}

static int fill(Input *in, const Shape *shape, PyObject *object)
{
    const Field *field = shape->fields;
    const Field *end = field + shape->wire_count;
    for (; field < end; field++) {
        PyObject *value = get_value(in, field);
        if (value == NULL)
            return -1;
        *slot(object, field->offset) = value;
    }
    end += shape->absent_count + shape->tagged_count;
    for (; field < end; field++) {
        PyObject *value = fresh_default(field);
        if (value == NULL)
            return -1;
        *slot(object, field->offset) = value;
    }
    *slot(object, shape->unknown_offset) = Py_NewRef(Py_None);
    return shape->is_flexible ? get_tags(in, shape, object) : 0;
}

static PyObject *decode_struct(Input *in, const Shape *shape)
{
    PyObject *object = new_object(in, shape);
    if (object != NULL && fill(in, shape, object) < 0)
        Py_CLEAR(object);
    return object;
}

/* The message at a position in the input; afterwards `p` is where it ends. */
static PyObject *decode_at(Input *in, const Plan *plan, PyObject *data, Py_ssize_t position,
                           int64_t budget)
{
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    *in = (Input){.plan = plan, .start = start, .p = start + position, .end = start + size,
                  .data = data, .budget = budget, .hides = size >= HIDE_SIZE_MIN};
    PyObject *message = decode_struct(in, plan->shapes + plan->shape_count - 1);
    Py_XDECREF(in->view);
    if (message != NULL)
        show(in);
    PyMem_Free(in->made);
    return message;
}

static PyObject *decode(Plan *plan, PyObject *data, Py_ssize_t position, int64_t budget)
{
    Input in;
    if (position < 0 || position > PyBytes_GET_SIZE(data))
        return NULL;
    PyObject *message = decode_at(&in, plan, data, position, budget);
    if (message == NULL)
        return NULL;
    PyObject *after = PyLong_FromSsize_t(in.p - in.start);
    PyObject *result = after == NULL ? NULL : PyTuple_Pack(2, message, after);
    Py_XDECREF(after);
    Py_DECREF(message);
    return result;
}

PyObject *plan_decode(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Plan *plan = (Plan *)self;
    if (count == 3 && PyBytes_CheckExact(arguments[0])) {
        Py_ssize_t position = PyLong_AsSsize_t(arguments[1]);
        long long budget = PyLong_AsLongLong(arguments[2]);
        if (!PyErr_Occurred()) {
            PyObject *result = decode(plan, arguments[0], position, budget);
            if (result != NULL)
                return result;
        }
        PyErr_Clear();
    }
    return PyObject_Vectorcall(plan->decoder, arguments, (size_t)count, NULL);
}

static bool is_utf8(const uint8_t *p, Py_ssize_t size)
{
    Py_ssize_t at = 0;
    while (at < size && p[at] < 0x80)
        at++;
    if (at == size)
        return true;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)p, size, NULL);
    PyErr_Clear();
    Py_XDECREF(text);
    return text != NULL;
}

/* Where the body begins in a frame whose header is as usual, without tagged fields; -1 if not. */
static Py_ssize_t body_start(PyObject *data, bool is_request, bool has_tags)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data), at = is_request ? 10 : 4;
    if (at > size)
        return -1;
    if (is_request) {
        Py_ssize_t id_size = (int16_t)get_big(p + 8, 2);
        if (id_size < -1 || id_size > size - at || (id_size > 0 && !is_utf8(p + at, id_size)))
            return -1;
        at += id_size > 0 ? id_size : 0;
    }
    if (!has_tags)
        return at;
    return at < size && p[at] == 0 ? at + 1 : -1;
}

PyObject *plan_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    Plan *plan = (Plan *)self;
    if (count != 3 || !PyBytes_CheckExact(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "expected bytes, and two facts of the header");
        return NULL;
    }
    PyObject *data = arguments[0];
    Py_ssize_t position = body_start(data, arguments[1] == Py_True, arguments[2] == Py_True);
    if (position < 0)
        Py_RETURN_NONE;
    int64_t budget = plan->elements_free
                     + (PyBytes_GET_SIZE(data) - position) / plan->element_bytes_min;
    Input in;
    PyObject *message = decode_at(&in, plan, data, position, budget);
    if (message != NULL && (in.p != in.end || in.has_unknown))
        Py_CLEAR(message);
    if (message == NULL) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyObject *result = PyTuple_Pack(2, message, in.has_error ? Py_True : Py_False);
    Py_DECREF(message);
    return result;
}
