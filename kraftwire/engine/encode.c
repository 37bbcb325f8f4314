/* Encodes messages by their plan, straight from the slots of the objects.

   -1 means "fall back": a value that does not fit, or one of an unusual type. The Python encoder
   then starts again and decides.

   Nothing here runs Python code or allocates an object that the collector tracks. So with the
   interpreter's lock no object changes between two looks at it, and borrowed references hold;
   without it, what is looked at is held (threads.h). */

#include "pieces.h"
#include "plan.h"

/* Decoders may refuse more tagged fields; Python then decides. */
#define TAGS_MAX 64

typedef struct {
    Output bytes;
    Pieces pieces;
    Py_ssize_t string_size_max;
} Writer;

static int encode_struct(Writer *out, const Shape *shape, PyObject *object);

static int put_length(Writer *out, const Field *field, Py_ssize_t length, int plain_size)
{
    if (length > INT32_MAX - 1 || output_reserve(&out->bytes, UVARINT_BYTES_MAX) < 0)
        return -1;
    if (field->is_compact) {
        out->bytes.p = put_uvarint(out->bytes.p, (uint64_t)(length + 1));
    } else {
        put_big(out->bytes.p, (uint64_t)(int64_t)length, plain_size);
        out->bytes.p += plain_size;
    }
    return 0;
}

static int put_copy(Writer *out, const void *data, Py_ssize_t size)
{
    if (output_reserve(&out->bytes, size) < 0)
        return -1;
    copy_bytes(out->bytes.p, data, size);
    out->bytes.p += size;
    return 0;
}

/* Bytes that nobody changes until the message is encoded: long ones are copied at the end. Without the
   interpreter's lock somebody may, and they are copied at once. */
static inline int put_bytes(Writer *out, const void *data, Py_ssize_t size)
{
    if (size >= PIECE_SIZE_MIN && RUNS_ALONE)
        return pieces_add(&out->pieces, &out->bytes, data, size);
    return put_copy(out, data, size);
}

/* A length and the bytes of a string after it, which may be released at once. */
static int put_text(Writer *out, const Field *field, const void *data, Py_ssize_t size)
{
    return put_length(out, field, size, 2) < 0 ? -1 : put_copy(out, data, size);
}

static int put_block(Writer *out, const Field *field, const void *data, Py_ssize_t size)
{
    return put_length(out, field, size, 4) < 0 ? -1 : put_bytes(out, data, size);
}

static int put_string(Writer *out, const Field *field, PyObject *value)
{
    if (!PyUnicode_CheckExact(value))
        return -1;
    if (PyUnicode_IS_COMPACT_ASCII(value)) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(value);
        if (size > out->string_size_max)
            return -1;
        return put_text(out, field, PyUnicode_DATA(value), size);
    }
    /* Not PyUnicode_AsUTF8: that would keep the bytes as long as the string lives. */
    PyObject *encoded = PyUnicode_AsUTF8String(value);
    if (encoded == NULL)
        return -1;
    int result = -1;
    if (PyBytes_GET_SIZE(encoded) <= out->string_size_max)
        result = put_text(out, field, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return result;
}

/* The value is a bytearray or a memoryview, so its bytes stay in place when the buffer is given back:
   it holds them. Some versions of Python count buffers without a lock of their own. */
static int put_buffer(Writer *out, const Field *field, PyObject *value)
{
    Py_buffer view;
    int result = -1;
    Py_BEGIN_CRITICAL_SECTION(value);
    if (PyObject_GetBuffer(value, &view, PyBUF_ND) == 0) {
        if (view.itemsize == 1 && view.ndim == 1)
            result = put_block(out, field, view.buf, view.len);
        PyBuffer_Release(&view);
    }
    Py_END_CRITICAL_SECTION();
    return result;
}

static int put_sized(Writer *out, const Field *field, PyObject *value, bool is_nullable)
{
    if (value == Py_None)
        return is_nullable ? put_length(out, field, -1, field->kind == KIND_STRING ? 2 : 4) : -1;
    if (field->kind == KIND_STRING)
        return put_string(out, field, value);
    if (PyBytes_CheckExact(value))
        return put_block(out, field, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    bool has_buffer = PyMemoryView_Check(value) || PyByteArray_CheckExact(value);
    return has_buffer ? put_buffer(out, field, value) : -1;
}

static inline int put_integer(uint8_t *p, int size, PyObject *value, int64_t low, int64_t high)
{
    int overflow;
    if (!PyLong_Check(value))
        return -1;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow || number < low || number > high)
        return -1;
    put_big(p, (uint64_t)number, size);
    return 0;
}

static int put_float(uint8_t *p, PyObject *value)
{
    if (!PyFloat_CheckExact(value))
        return -1;
    double number = PyFloat_AS_DOUBLE(value);
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_big(p, bits, 8);
    return 0;
}

/* A value of fixed width; the room is there. */
static int put_fixed(uint8_t *p, Kind kind, PyObject *value)
{
    switch (kind) {
    case KIND_BOOL:
        *p = value == Py_True;
        return PyBool_Check(value) ? 0 : -1;
    case KIND_INT8:
        return put_integer(p, 1, value, INT8_MIN, INT8_MAX);
    case KIND_INT16:
        return put_integer(p, 2, value, INT16_MIN, INT16_MAX);
    case KIND_UINT16:
        return put_integer(p, 2, value, 0, UINT16_MAX);
    case KIND_INT32:
        return put_integer(p, 4, value, INT32_MIN, INT32_MAX);
    case KIND_UINT32:
        return put_integer(p, 4, value, 0, UINT32_MAX);
    case KIND_INT64:
        return put_integer(p, 8, value, INT64_MIN, INT64_MAX);
    case KIND_FLOAT64:
        return put_float(p, value);
    default:
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) != 16)
            return -1;
        memcpy(p, PyBytes_AS_STRING(value), 16);
        return 0;
    }
}

static inline int put_fixed_value(Writer *out, const Field *field, PyObject *value)
{
    if (output_reserve(&out->bytes, 16) < 0 || put_fixed(out->bytes.p, field->kind, value) < 0)
        return -1;
    out->bytes.p += fixed_size(field->kind);
    return 0;
}

static inline int put_element(Writer *out, const Field *field, PyObject *value)
{
    if (field->kind == KIND_STRUCT)
        return encode_struct(out, field->child, value);
    if (field->kind >= KIND_STRING)
        return put_sized(out, field, value, false);
    return put_fixed_value(out, field, value);
}

static int put_array(Writer *out, const Field *field, PyObject *value)
{
    if (value == Py_None)
        return field->is_nullable ? put_length(out, field, -1, 4) : -1;
    if (!PyList_CheckExact(value))
        return -1;
    Py_ssize_t count = PyList_GET_SIZE(value);
    if (put_length(out, field, count, 4) < 0)
        return -1;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *item = hold_item(value, at);
        int result = item == NULL ? -1 : put_element(out, field, item);
        release(item);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int put_struct(Writer *out, const Field *field, PyObject *value)
{
    if (field->is_nullable) {
        if (output_reserve(&out->bytes, 1) < 0)
            return -1;
        if (value == Py_None) {
            *out->bytes.p++ = field->is_tagged ? 0x00 : 0xFF;
            return 0;
        }
        *out->bytes.p++ = 0x01;
    }
    return encode_struct(out, field->child, value);
}

static inline int put_value(Writer *out, const Field *field, PyObject *value)
{
    if (value == NULL) /* a deleted attribute */
        return -1;
    if (field->is_array)
        return put_array(out, field, value);
    if (field->kind == KIND_STRUCT)
        return put_struct(out, field, value);
    if (field->kind >= KIND_STRING)
        return put_sized(out, field, value, field->is_nullable);
    return put_fixed_value(out, field, value);
}

/* Tag, size and value. The size is known only when the value is written, which then moves. */
static int put_tagged(Writer *out, const Field *field, PyObject *value)
{
    if (output_reserve(&out->bytes, 2 * UVARINT_BYTES_MAX) < 0)
        return -1;
    out->bytes.p = put_uvarint(out->bytes.p, field->tag);
    Py_ssize_t before = out->bytes.p - out->bytes.start;
    Py_ssize_t first = out->pieces.count, total = out->pieces.total;
    if (put_value(out, field, value) < 0 || output_reserve(&out->bytes, UVARINT_BYTES_MAX) < 0)
        return -1;
    uint8_t *start = out->bytes.start + before;
    Py_ssize_t moved = out->bytes.p - start;
    Py_ssize_t size = moved + out->pieces.total - total;
    if (size > INT32_MAX)
        return -1;
    int width = uvarint_size((uint64_t)size);
    memmove(start + width, start, (size_t)moved);
    pieces_move(&out->pieces, first, width);
    put_uvarint(start, (uint64_t)size);
    out->bytes.p += width;
    return 0;
}

typedef struct {
    uint32_t tag;
    PyObject *data; /* borrowed */
} Unknown;

/* The unknown tagged fields in ascending order; their number, or -1 to fall back. */
static int sort_unknown(PyObject *tags, Unknown *sorted)
{
    PyObject *key, *data;
    Py_ssize_t position = 0;
    int count = 0;
    if (tags == NULL || (tags != Py_None && !PyDict_CheckExact(tags)))
        return -1;
    if (tags == Py_None)
        return 0;
    if (PyDict_GET_SIZE(tags) > TAGS_MAX)
        return -1;
    while (PyDict_Next(tags, &position, &key, &data)) {
        int overflow;
        if (!PyLong_CheckExact(key) || !PyBytes_CheckExact(data))
            return -1;
        long long tag = PyLong_AsLongLongAndOverflow(key, &overflow);
        if (overflow || tag < 0 || tag > UINT32_MAX)
            return -1;
        int at = count++;
        for (; at > 0 && sorted[at - 1].tag > tag; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = (Unknown){(uint32_t)tag, data};
    }
    return count;
}

static int put_unknown(Writer *out, const Unknown *unknown)
{
    Py_ssize_t size = PyBytes_GET_SIZE(unknown->data);
    if (size > INT32_MAX || output_reserve(&out->bytes, 2 * UVARINT_BYTES_MAX) < 0)
        return -1;
    out->bytes.p = put_uvarint(out->bytes.p, unknown->tag);
    out->bytes.p = put_uvarint(out->bytes.p, (uint64_t)size);
    return put_bytes(out, PyBytes_AS_STRING(unknown->data), size);
}

/* A known field, unless it is at its default: then 0. 1 if it was written, -1 to fall back. */
static int put_known(Writer *out, const Field *field, PyObject *object)
{
    PyObject *value = hold(object, field->offset);
    int is_default = is_at_default(field, value);
    int result = is_default;
    if (is_default >= 0)
        result = is_default ? 0 : put_tagged(out, field, value) < 0 ? -1 : 1;
    release(value);
    return result;
}

/* Known and unknown fields merged by tag. An unknown field with a known tag is left to Python. */
static int put_merged(Writer *out, const Shape *shape, PyObject *object, PyObject *tags)
{
    Unknown unknown[TAGS_MAX];
    int count = sort_unknown(tags, unknown);
    if (count < 0 || output_reserve(&out->bytes, UVARINT_BYTES_MAX) < 0)
        return -1;
    /* One byte counts TAGS_MAX and less. */
    Py_ssize_t counter = out->bytes.p++ - out->bytes.start;
    int total = count, next = 0;
    const Field *field = shape->fields + shape->wire_count + shape->absent_count;
    for (int at = 0; at < shape->tagged_count; at++, field++) {
        while (next < count && unknown[next].tag < field->tag) {
            if (put_unknown(out, unknown + next++) < 0)
                return -1;
        }
        if (next < count && unknown[next].tag == field->tag)
            return -1;
        int result = put_known(out, field, object);
        if (result < 0)
            return -1;
        total += result;
    }
    while (next < count) {
        if (put_unknown(out, unknown + next++) < 0)
            return -1;
    }
    if (total > TAGS_MAX)
        return -1;
    out->bytes.start[counter] = (uint8_t)total;
    return 0;
}

static int put_tags(Writer *out, const Shape *shape, PyObject *object)
{
    PyObject *tags = hold_entries(object, shape->unknown_offset);
    int result = put_merged(out, shape, object, tags);
    release(tags);
    return result;
}

static int encode_struct(Writer *out, const Shape *shape, PyObject *object)
{
    if (!is_of(shape, object))
        return -1;
    const Field *field = shape->fields;
    const Field *end = field + shape->wire_count;
    for (; field < end; field++) {
        PyObject *value = hold(object, field->offset);
        int result = put_value(out, field, value);
        release(value);
        if (result < 0)
            return -1;
    }
    end += shape->absent_count;
    for (; field < end; field++) {
        /* What cannot be carried must be at its default, unless the schema says otherwise. */
        if (field->is_ignorable)
            continue;
        PyObject *value = hold(object, field->offset);
        int result = is_at_default(field, value);
        release(value);
        if (result != 1)
            return -1;
    }
    if (shape->is_flexible)
        return put_tags(out, shape, object);
    PyObject *unknown = hold(object, shape->unknown_offset);
    release(unknown);
    return unknown == Py_None ? 0 : -1;
}

PyObject *plan_encode(PyObject *self, PyObject *message)
{
    Plan *plan = (Plan *)self;
    Writer out;
    out.string_size_max = plan->string_size_max;
    output_start(&out.bytes);
    pieces_start(&out.pieces);
    PyObject *result = NULL;
    if (encode_struct(&out, plan->shapes + plan->shape_count - 1, message) == 0)
        result = pieces_finish(&out.pieces, &out.bytes);
    output_drop(&out.bytes);
    pieces_drop(&out.pieces);
    if (result != NULL)
        return result;
    PyErr_Clear();
    return PyObject_CallOneArg(plan->encoder, message);
}
