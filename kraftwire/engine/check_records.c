/* Checks whether the records of a batch can be read, or counts those that begin within a range;
   creates no objects.

   Sums of bases and deltas may wrap around and names of headers may be any bytes: the reader takes
   both. NULL and -1 mean "fall back", as in read_records.c. */

#include "records.h"

static int skip_cell(const uint8_t **p, const uint8_t *end)
{
    int64_t size;
    if (get_cell_size(p, end, &size) < 0)
        return -1;
    *p += size > 0 ? size : 0;
    return 0;
}

static int skip_headers(const uint8_t **p, const uint8_t *end)
{
    int64_t count, size;
    if (get_header_count(p, end, &count) < 0)
        return -1;
    while (count-- > 0) {
        if (get_size(p, end, &size) < 0 || size < 0)
            return -1;
        *p += size;
        if (skip_cell(p, end) < 0)
            return -1;
    }
    return 0;
}

static int skip_record(const uint8_t **p, const uint8_t *limit)
{
    int64_t size, time, offset;
    if (get_size(p, limit, &size) < 0 || size < 0)
        return -1;
    const uint8_t *end = *p + size;
    if (get_deltas(p, end, &time, &offset) < 0 || skip_cell(p, end) < 0 || skip_cell(p, end) < 0
        || skip_headers(p, end) < 0)
        return -1;
    return *p == end ? 0 : -1;
}

PyObject *check_records(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *data;
    Py_ssize_t start, end, count;
    if (!PyArg_ParseTuple(arguments, "O!nnn", &PyBytes_Type, &data, &start, &end, &count))
        return NULL;
    if (start < 0 || start > end || end > PyBytes_GET_SIZE(data) || count < 0)
        Py_RETURN_FALSE;
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data) + start;
    const uint8_t *limit = p + (end - start);
    while (count-- > 0)
        if (skip_record(&p, limit) < 0)
            Py_RETURN_FALSE;
    return PyBool_FromLong(p == limit);
}

PyObject *count_within(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *data;
    Py_ssize_t start, end, count, size;
    if (!PyArg_ParseTuple(arguments, "O!nnnn", &PyBytes_Type, &data, &start, &end, &count, &size))
        return NULL;
    if (start < 0 || start > end || end > PyBytes_GET_SIZE(data) || size < 0) {
        PyErr_SetString(PyExc_ValueError, "the records are not within the data");
        return NULL;
    }
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data) + start;
    const uint8_t *limit = p + (end - start), *stop = p + Py_MIN(end - start, size);
    for (Py_ssize_t index = 0; index < count; index++) {
        int64_t length;
        if (p >= stop)
            return PyLong_FromSsize_t(Py_MAX(index, 1));
        if (get_size(&p, limit, &length) < 0 || length < 0)
            return PyLong_FromSsize_t(index + 1);
        p += length;
    }
    return PyLong_FromSsize_t(count);
}
