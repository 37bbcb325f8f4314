/* Bytes of captures: where the packets of a classic file begin, and ranges of bytes as one.

   Nothing is interpreted here but lengths. Numbers for Python are native int64, as numpy has them. */

#include "packets.h"

/* The length of what the capture holds of a packet, in the header of its record. */
enum { RECORD_HEADER = 16, LENGTH_AT = 8 };

static uint32_t get_little32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Counts the whole records from a place on, and writes where they begin unless `places` is NULL. */
static Py_ssize_t find_records(
    const unsigned char *data, Py_ssize_t size, Py_ssize_t at, uint32_t most, int64_t *places
)
{
    Py_ssize_t count = 0;
    while (size - at >= RECORD_HEADER) {
        uint32_t captured = get_little32(data + at + LENGTH_AT);
        if (captured > most || (uint64_t)(size - at - RECORD_HEADER) < captured)
            break;
        if (places != NULL)
            places[count] = at;
        count++;
        at += RECORD_HEADER + (Py_ssize_t)captured;
    }
    return count;
}

PyObject *packet_places(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data;
    Py_ssize_t at;
    unsigned int most;
    if (!PyArg_ParseTuple(arguments, "y*nI", &data, &at, &most))
        return NULL;
    PyObject *found = NULL;
    if (at < 0 || at > data.len) {
        PyErr_SetString(PyExc_ValueError, "a place outside of the data");
    } else {
        Py_ssize_t count = find_records(data.buf, data.len, at, most, NULL);
        found = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
        /* A header of whole words stands before what bytes hold, so it is aligned for int64. */
        if (found != NULL)
            find_records(data.buf, data.len, at, most, (int64_t *)PyBytes_AS_STRING(found));
    }
    PyBuffer_Release(&data);
    return found;
}

static int64_t number(const Py_buffer *numbers, Py_ssize_t index)
{
    int64_t value;
    memcpy(&value, (const char *)numbers->buf + index * (Py_ssize_t)sizeof value, sizeof value);
    return value;
}

/* The bytes of all ranges together; -1 if one of them is not within the data. */
static Py_ssize_t total(const Py_buffer *starts, const Py_buffer *sizes, Py_ssize_t length)
{
    Py_ssize_t sum = 0;
    for (Py_ssize_t index = 0; index < starts->len / 8; index++) {
        int64_t start = number(starts, index), size = number(sizes, index);
        if (start < 0 || start > length || size < 0 || size > length - start)
            return -1;
        if (size > PY_SSIZE_T_MAX - sum)
            return -1;
        sum += (Py_ssize_t)size;
    }
    return sum;
}

static PyObject *joined(const Py_buffer *data, const Py_buffer *starts, const Py_buffer *sizes)
{
    Py_ssize_t length = -1;
    if (starts->len == sizes->len && starts->len % 8 == 0)
        length = total(starts, sizes, data->len);
    if (length < 0) {
        PyErr_SetString(PyExc_ValueError, "ranges outside of the data");
        return NULL;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, length);
    if (found == NULL)
        return NULL;
    char *to = PyBytes_AS_STRING(found);
    for (Py_ssize_t index = 0; index < starts->len / 8; index++) {
        int64_t size = number(sizes, index);
        if (size > 0) {
            memcpy(to, (const char *)data->buf + number(starts, index), (size_t)size);
            to += size;
        }
    }
    return found;
}

PyObject *join_ranges(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer data, starts, sizes;
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &data, &starts, &sizes))
        return NULL;
    PyObject *found = joined(&data, &starts, &sizes);
    PyBuffer_Release(&data);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&sizes);
    return found;
}
