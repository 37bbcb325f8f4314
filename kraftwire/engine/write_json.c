/* Writes the JSON form of a message straight from its bytes.

   -1 and NULL mean "fall back". What is accepted here is exactly what Kafka itself would write for the
   message, byte by byte: the shortest lengths, no tag at its default, none that the schema lacks. */

#include "json.h"

typedef struct {
    const uint8_t *start, *p, *end;
    Py_ssize_t string_size_max;
    int64_t budget;
    Output *out;
    PyObject *gaps; /* owned: a list, once there are records */
    /* The topic around the fields that are read: where it stands, NULL if nothing told it. */
    const uint8_t *topic[TOPIC_KINDS];
    Py_ssize_t name_size;
} Walk;

static int write_struct(Walk *walk, const JsonShape *shape);

static inline Py_ssize_t bytes_left(const Walk *walk)
{
    return walk->end - walk->p;
}

/* A varint in as few bytes as it can have. */
static inline int get_short(Walk *walk, uint64_t *value)
{
    if (walk->p < walk->end && *walk->p < 0x80) {
        *value = *walk->p++;
        return 0;
    }
    if (get_uvarint(&walk->p, walk->end, 32, value) < 0)
        return -1;
    return walk->p[-1] == 0 ? -1 : 0;
}

/* The length in front of a value, -1 for null, -2 to fall back. */
static Py_ssize_t get_length(Walk *walk, const JsonField *field, int plain_size, bool is_nullable)
{
    int64_t length;
    if (field->is_compact) {
        uint64_t raw;
        if (get_short(walk, &raw) < 0)
            return -2;
        length = (int64_t)raw - 1;
    } else {
        if (bytes_left(walk) < plain_size)
            return -2;
        uint64_t raw = get_big(walk->p, plain_size);
        length = plain_size == 2 ? (int64_t)(int16_t)raw : (int64_t)(int32_t)raw;
        walk->p += plain_size;
    }
    if (length < 0)
        return length == -1 && is_nullable ? -1 : -2;
    return length;
}

int put_number(Output *out, int64_t value)
{
    char digits[20];
    int at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (output_reserve(out, 21) < 0)
        return -1;
    if (value < 0)
        *out->p++ = '-';
    copy_bytes(out->p, digits + at, (Py_ssize_t)sizeof digits - at);
    out->p += (int)sizeof digits - at;
    return 0;
}

/* Base64; of a uuid in Kafka's own alphabet and without padding. */
static int put_base64(Output *out, const uint8_t *from, Py_ssize_t size, bool is_uuid)
{
    const char *letters = is_uuid
        ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        : "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (output_reserve(out, size / 3 * 4 + 8) < 0)
        return -1;
    uint8_t *p = out->p;
    *p++ = '"';
    const uint8_t *whole = from + size / 3 * 3;
    for (; from < whole; from += 3) {
        *p++ = (uint8_t)letters[from[0] >> 2];
        *p++ = (uint8_t)letters[(from[0] & 3) << 4 | from[1] >> 4];
        *p++ = (uint8_t)letters[(from[1] & 15) << 2 | from[2] >> 6];
        *p++ = (uint8_t)letters[from[2] & 63];
    }
    Py_ssize_t rest = size % 3;
    if (rest > 0) {
        int second = rest == 2 ? from[1] : 0;
        *p++ = (uint8_t)letters[from[0] >> 2];
        *p++ = (uint8_t)letters[(from[0] & 3) << 4 | second >> 4];
        if (rest == 2)
            *p++ = (uint8_t)letters[(second & 15) << 2];
        for (; !is_uuid && rest < 3; rest++)
            *p++ = '=';
    }
    *p++ = '"';
    out->p = p;
    return 0;
}

/* A string of plain ASCII; every other one is left to Python. */
static int put_string(Output *out, const uint8_t *from, Py_ssize_t size)
{
    if (output_reserve(out, 2 * size + 2) < 0)
        return -1;
    uint8_t *p = out->p;
    *p++ = '"';
    for (const uint8_t *end = from + size; from < end; from++) {
        if (*from < 0x20 || *from > 0x7E)
            return -1;
        if (*from == '"' || *from == '\\')
            *p++ = '\\';
        *p++ = *from;
    }
    *p++ = '"';
    out->p = p;
    return 0;
}

static int write_fixed(Walk *walk, Kind kind)
{
    const uint8_t *p = walk->p;
    walk->p += fixed_size(kind);
    switch (kind) {
    case KIND_BOOL:
        if (*p > 1)
            return -1;
        return *p ? put_text(walk->out, "true", 4) : put_text(walk->out, "false", 5);
    case KIND_INT8:
        return put_number(walk->out, (int8_t)*p);
    case KIND_INT16:
        return put_number(walk->out, (int16_t)get_big(p, 2));
    case KIND_UINT16:
        return put_number(walk->out, (int64_t)get_big(p, 2));
    case KIND_INT32:
        return put_number(walk->out, (int32_t)get_big(p, 4));
    case KIND_UINT32:
        return put_number(walk->out, (int64_t)get_big(p, 4));
    case KIND_INT64:
        return put_number(walk->out, (int64_t)get_big(p, 8));
    case KIND_UUID:
        return put_base64(walk->out, p, 16, true);
    default:
        return -1;
    }
}

static PyObject *topic_name(const Walk *walk)
{
    const char *name = (const char *)walk->topic[TOPIC_NAME];
    return name ? PyUnicode_DecodeASCII(name, walk->name_size, NULL) : Py_NewRef(Py_None);
}

static PyObject *topic_id(const Walk *walk)
{
    const char *id = (const char *)walk->topic[TOPIC_ID];
    return id ? PyBytes_FromStringAndSize(id, 16) : Py_NewRef(Py_None);
}

/* Records are left to Python: a gap has their place in the text and their range of bytes. */
static int write_records(Walk *walk, Py_ssize_t size)
{
    if (size == 0)
        return put_text(walk->out, "[]", 2);
    if (walk->gaps == NULL && (walk->gaps = PyList_New(0)) == NULL)
        return -1;
    Py_ssize_t begin = walk->p - walk->start;
    PyObject *gap = Py_BuildValue("(nnnNN)", walk->out->p - walk->out->start, begin, begin + size,
                                  topic_name(walk), topic_id(walk));
    int result = gap == NULL ? -1 : PyList_Append(walk->gaps, gap);
    Py_XDECREF(gap);
    return result;
}

/* A string, bytes or records. */
static int write_sized(Walk *walk, const JsonField *field, bool is_nullable)
{
    bool is_string = field->kind == KIND_STRING;
    Py_ssize_t size = get_length(walk, field, is_string ? 2 : 4, is_nullable);
    if (field->topic == TOPIC_NAME)
        walk->topic[TOPIC_NAME] = size == -1 ? NULL : walk->p;
    if (size == -1)
        return put_text(walk->out, "null", 4);
    if (size < 0 || size > bytes_left(walk) || (is_string && size > walk->string_size_max))
        return -1;
    if (field->topic == TOPIC_NAME)
        walk->name_size = size;
    int result;
    if (is_string)
        result = put_string(walk->out, walk->p, size);
    else if (field->kind == KIND_RECORDS)
        result = write_records(walk, size);
    else
        result = put_base64(walk->out, walk->p, size, false);
    walk->p += size;
    return result;
}

static int write_array(Walk *walk, const JsonField *field)
{
    Py_ssize_t count = get_length(walk, field, 4, field->is_nullable);
    if (count == -1)
        return put_text(walk->out, "null", 4);
    if (count < 0 || count > bytes_left(walk) / field->element_min || count > walk->budget)
        return -1;
    walk->budget -= count;
    if (put_text(walk->out, "[", 1) < 0)
        return -1;
    for (Py_ssize_t at = 0; at < count; at++) {
        int result;
        if (at > 0 && put_text(walk->out, ",", 1) < 0)
            return -1;
        if (field->kind == KIND_STRUCT)
            result = write_struct(walk, field->child);
        else if (field->kind >= KIND_STRING)
            result = write_sized(walk, field, false);
        else
            /* The array's bytes were seen to be there. */
            result = write_fixed(walk, field->kind);
        if (result < 0)
            return -1;
    }
    return put_text(walk->out, "]", 1);
}

/* A struct that may be null has a marker in front. */
static int write_inner(Walk *walk, const JsonField *field)
{
    if (field->is_nullable) {
        if (walk->p >= walk->end)
            return -1;
        uint8_t marker = *walk->p++;
        if (marker == (field->is_tagged ? 0 : 0xFF))
            return put_text(walk->out, "null", 4);
        if (marker != 1)
            return -1;
    }
    return write_struct(walk, field->child);
}

static int write_value(Walk *walk, const JsonField *field)
{
    if (field->is_array)
        return write_array(walk, field);
    if (field->kind == KIND_STRUCT)
        return write_inner(walk, field);
    if (field->kind >= KIND_STRING)
        return write_sized(walk, field, field->is_nullable);
    if (bytes_left(walk) < fixed_size(field->kind))
        return -1;
    if (field->topic == TOPIC_ID)
        walk->topic[TOPIC_ID] = walk->p;
    return write_fixed(walk, field->kind);
}

static int write_key(Walk *walk, const JsonField *field, bool is_first)
{
    if (!is_first && put_text(walk->out, ",", 1) < 0)
        return -1;
    return put_text(walk->out, PyBytes_AS_STRING(field->key), PyBytes_GET_SIZE(field->key));
}

/* Tagged fields that are there, in the order of their tags. */
static int write_tags(Walk *walk, const JsonShape *shape)
{
    const JsonField *field = shape->fields + shape->wire_count;
    const JsonField *last = field + shape->tagged_count;
    bool is_first = shape->wire_count == 0;
    if (walk->p >= walk->end || *walk->p > shape->tagged_count)
        return -1;
    for (int left = *walk->p++; left > 0; left--, field++) {
        uint64_t tag, size;
        if (get_short(walk, &tag) < 0 || get_short(walk, &size) < 0
            || size > (uint64_t)bytes_left(walk))
            return -1;
        while (field < last && field->tag != tag)
            field++;
        if (field == last)
            return -1;
        const uint8_t *after = walk->p + size;
        if ((Py_ssize_t)size == PyBytes_GET_SIZE(field->fallback)
            && memcmp(walk->p, PyBytes_AS_STRING(field->fallback), (size_t)size) == 0)
            return -1;
        if (write_key(walk, field, is_first) < 0 || write_value(walk, field) < 0
            || walk->p != after)
            return -1;
        is_first = false;
    }
    return 0;
}

static int write_fields(Walk *walk, const JsonShape *shape)
{
    const JsonField *field = shape->fields;
    const JsonField *last = field + shape->wire_count;
    for (; field < last; field++) {
        if (write_key(walk, field, field == shape->fields) < 0 || write_value(walk, field) < 0)
            return -1;
    }
    return shape->is_flexible ? write_tags(walk, shape) : 0;
}

static int write_struct(Walk *walk, const JsonShape *shape)
{
    walk->budget -= shape->weight;
    if (walk->budget < 0 || put_text(walk->out, "{", 1) < 0)
        return -1;
    /* Facts about a topic hold only inside this struct. */
    const uint8_t *name = walk->topic[TOPIC_NAME], *id = walk->topic[TOPIC_ID];
    Py_ssize_t name_size = walk->name_size;
    if (write_fields(walk, shape) < 0)
        return -1;
    walk->topic[TOPIC_NAME] = name;
    walk->topic[TOPIC_ID] = id;
    walk->name_size = name_size;
    return put_text(walk->out, "}", 1);
}

static PyObject *finish(Walk *walk)
{
    PyObject *text = output_finish(walk->out);
    if (text == NULL)
        return NULL;
    PyObject *gaps = walk->gaps ? walk->gaps : Py_None;
    return Py_BuildValue("(NnO)", text, walk->p - walk->start, gaps);
}

static PyObject *write_message(const JsonPlan *plan, PyObject *data, Py_ssize_t position, int64_t budget)
{
    const uint8_t *start = (const uint8_t *)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    if (position < 0 || position > size)
        return NULL;
    Output out;
    output_start(&out);
    Walk walk = {.start = start, .p = start + position, .end = start + size, .budget = budget,
                 .string_size_max = plan->string_size_max, .out = &out};
    PyObject *result = NULL;
    if (write_struct(&walk, plan->shapes + plan->shape_count - 1) == 0)
        result = finish(&walk);
    Py_XDECREF(walk.gaps);
    output_drop(&out);
    return result;
}

PyObject *json_plan_write(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count == 3 && PyBytes_CheckExact(arguments[0])) {
        Py_ssize_t position = PyLong_AsSsize_t(arguments[1]);
        long long budget = PyLong_AsLongLong(arguments[2]);
        if (!PyErr_Occurred()) {
            PyObject *result = write_message((JsonPlan *)self, arguments[0], position, budget);
            if (result != NULL)
                return result;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}
