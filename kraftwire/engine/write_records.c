/* Writes the records of a magic 2 batch from columns, and makes columns of rows.

   Nothing here runs Python code or allocates an object that the collector tracks while it looks
   into the caller's lists. So with the interpreter's lock they do not change and borrowed references
   hold; without it, tuples of their items are used (threads.h). */

#include "output.h"
#include "records.h"
#include "threads.h"

/* Attributes, timestamp delta, offset delta, and the lengths of key, value and headers. */
#define HEAD_SIZE_MAX (1 + VARLONG_BYTES_MAX + 4 * UVARINT_BYTES_MAX)

#define COLUMNS 5

/* The columns, of one length; `headers` and `offsets` are NULL where there are none. */
typedef struct {
    PyObject *const *timestamps, *const *keys, *const *values, *const *headers, *const *offsets;
    long long base_offset, base_timestamp;
} Columns;

static int put_varint(Output *out, int64_t value)
{
    if (output_reserve(out, VARLONG_BYTES_MAX) < 0)
        return -1;
    out->p = put_uvarint(out->p, zigzag(value));
    return 0;
}

static int put_block(Output *out, const void *data, Py_ssize_t size)
{
    if (size > INT32_MAX || put_varint(out, size) < 0 || output_reserve(out, size) < 0)
        return -1;
    copy_bytes(out->p, data, size);
    out->p += size;
    return 0;
}

static int put_bytes(Output *out, PyObject *value)
{
    if (value == Py_None)
        return put_varint(out, -1);
    if (!PyBytes_CheckExact(value))
        return -1;
    return put_block(out, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
}

static int put_name(Output *out, PyObject *name)
{
    if (!PyUnicode_CheckExact(name))
        return -1;
    if (PyUnicode_IS_COMPACT_ASCII(name))
        return put_block(out, PyUnicode_DATA(name), PyUnicode_GET_LENGTH(name));
    PyObject *encoded = PyUnicode_AsUTF8String(name);
    if (encoded == NULL)
        return -1;
    int result = put_block(out, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return result;
}

static int put_headers(Output *out, PyObject *headers)
{
    if (headers == NULL)
        return put_varint(out, 0);
    if (!PyTuple_CheckExact(headers) || put_varint(out, PyTuple_GET_SIZE(headers)) < 0)
        return -1;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(headers); at++) {
        PyObject *header = PyTuple_GET_ITEM(headers, at);
        if (!PyTuple_CheckExact(header) || PyTuple_GET_SIZE(header) != 2
            || put_name(out, PyTuple_GET_ITEM(header, 0)) < 0
            || put_bytes(out, PyTuple_GET_ITEM(header, 1)) < 0)
            return -1;
    }
    return 0;
}

static int get_number(PyObject *value, long long *number)
{
    int overflow;
    if (!PyLong_CheckExact(value))
        return -1;
    *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? -1 : 0;
}

/* The difference of a number and a base, if it fits into 64 bits. */
static int get_delta(PyObject *value, long long base, int64_t *delta)
{
    long long number;
    if (get_number(value, &number) < 0 || number > INT64_MAX / 2 || number < INT64_MIN / 2
        || base > INT64_MAX / 2 || base < INT64_MIN / 2)
        return -1;
    *delta = number - base;
    return 0;
}

/* All of a record but its length. */
static int put_body(Output *out, const Columns *columns, Py_ssize_t at)
{
    int64_t time_delta, offset_delta = at;
    if (get_delta(columns->timestamps[at], columns->base_timestamp, &time_delta)
            < 0
        || (columns->offsets != NULL
            && get_delta(columns->offsets[at], columns->base_offset, &offset_delta)
                   < 0)
        || offset_delta < 0 || offset_delta > INT32_MAX || output_reserve(out, HEAD_SIZE_MAX) < 0)
        return -1;
    *out->p++ = 0;
    out->p = put_uvarint(out->p, zigzag(time_delta));
    out->p = put_uvarint(out->p, zigzag(offset_delta));
    if (put_bytes(out, columns->keys[at]) < 0
        || put_bytes(out, columns->values[at]) < 0)
        return -1;
    return put_headers(out, columns->headers ? columns->headers[at] : NULL);
}

/* How many bytes the body will have, so that its length can stand in front of it. Headers are not
   counted: with them the body moves. */
static Py_ssize_t guess(const Columns *columns, Py_ssize_t at)
{
    PyObject *key = columns->keys[at];
    PyObject *value = columns->values[at];
    Py_ssize_t size = 8;
    size += PyBytes_CheckExact(key) ? PyBytes_GET_SIZE(key) : 0;
    size += PyBytes_CheckExact(value) ? PyBytes_GET_SIZE(value) : 0;
    return size;
}

/* Room for all keys and values, so that a large batch is not copied while it grows. */
static int reserve_all(Output *out, const Columns *columns, Py_ssize_t count)
{
    Py_ssize_t total = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_ssize_t size = guess(columns, at) + 8;
        if (size > INT32_MAX || total > PY_SSIZE_T_MAX / 8)
            return -1;
        total += size;
    }
    return output_reserve(out, total);
}

static int put_record(Output *out, const Columns *columns, Py_ssize_t at)
{
    int width = uvarint_size(zigzag(guess(columns, at)));
    Py_ssize_t start = out->p - out->start;
    if (output_reserve(out, 2 * UVARINT_BYTES_MAX) < 0)
        return -1;
    out->p += width;
    if (put_body(out, columns, at) < 0 || output_reserve(out, UVARINT_BYTES_MAX) < 0)
        return -1;
    uint8_t *record = out->start + start;
    Py_ssize_t size = out->p - record - width;
    int real = uvarint_size(zigzag(size));
    if (size > INT32_MAX)
        return -1;
    if (real != width)
        memmove(record + real, record + width, (size_t)size);
    put_uvarint(record, zigzag(size));
    out->p += real - width;
    return 0;
}

/* The items of a column that is held, a list or a tuple of `count`; 0, or -1 if it is something else. */
static int get_column(PyObject *column, Py_ssize_t count, PyObject *const **items)
{
    if (column == NULL || (!PyList_CheckExact(column) && !PyTuple_CheckExact(column)))
        return -1;
    *items = PySequence_Fast_ITEMS(column);
    return PySequence_Fast_GET_SIZE(column) == count ? 0 : -1;
}

static int get_columns(PyObject *const held[COLUMNS], Py_ssize_t count, Columns *columns)
{
    columns->headers = columns->offsets = NULL;
    if (get_column(held[0], count, &columns->timestamps) < 0
        || get_column(held[1], count, &columns->keys) < 0
        || get_column(held[2], count, &columns->values) < 0
        || (held[3] != Py_None && get_column(held[3], count, &columns->headers) < 0)
        || (held[4] != Py_None && get_column(held[4], count, &columns->offsets) < 0))
        return -1;
    return 0;
}

PyObject *write_records(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *given[COLUMNS];
    Columns columns;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(arguments, "nOOOOOLL", &count, &given[0], &given[1], &given[2],
                          &given[3], &given[4], &columns.base_offset, &columns.base_timestamp))
        return NULL;
    PyObject *held[COLUMNS];
    for (int each = 0; each < COLUMNS; each++)
        held[each] = hold_items(given[each]);
    bool is_sound = get_columns(held, count, &columns) == 0;
    Output out;
    output_start(&out);
    is_sound = is_sound && reserve_all(&out, &columns, count) == 0;
    for (Py_ssize_t at = 0; is_sound && at < count; at++)
        is_sound = put_record(&out, &columns, at) == 0;
    PyObject *payload = is_sound ? output_finish(&out) : NULL;
    output_drop(&out);
    for (int each = 0; each < COLUMNS; each++)
        release(held[each]);
    if (payload == NULL) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ValueError, "Python has to write these records");
    }
    return payload;
}

static int split_row(PyObject *row, PyObject *const *columns, Py_ssize_t at)
{
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) < COLUMNS)
        return -1;
    for (int each = 0; each < COLUMNS; each++)
        PyList_SET_ITEM(columns[each], at, Py_NewRef(PyTuple_GET_ITEM(row, each)));
    return 0;
}

/* Five lists: offsets, timestamps, keys, values and headers of a list of rows. */
PyObject *split_records(PyObject *module, PyObject *rows)
{
    (void)module;
    PyObject *held = PyList_CheckExact(rows) ? hold_items(rows) : NULL;
    Py_ssize_t count = held == NULL ? -1 : PySequence_Fast_GET_SIZE(held);
    PyObject *columns[COLUMNS] = {NULL};
    bool is_sound = count >= 0;
    for (int each = 0; is_sound && each < COLUMNS; each++) {
        columns[each] = PyList_New(count);
        is_sound = columns[each] != NULL;
    }
    /* Making the lists may have run a collection, and that may have run anything. */
    is_sound = is_sound && PySequence_Fast_GET_SIZE(held) == count;
    PyObject *const *items = is_sound ? PySequence_Fast_ITEMS(held) : NULL;
    for (Py_ssize_t at = 0; is_sound && at < count; at++)
        is_sound = split_row(items[at], columns, at) == 0;
    release(held);
    PyObject *result = NULL;
    if (is_sound)
        result = PyTuple_Pack(COLUMNS, columns[0], columns[1], columns[2], columns[3], columns[4]);
    for (int each = 0; each < COLUMNS; each++)
        Py_XDECREF(columns[each]);
    if (result == NULL) {
        PyErr_Clear();
        PyErr_SetString(PyExc_ValueError, "Python has to split these rows");
    }
    return result;
}
