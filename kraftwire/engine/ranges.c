/* Ranges of a capture's bytes as one, from memory or from its file. Numbers are native int64, as numpy
   has them. */

#include "packets.h"

#include <errno.h>
#ifndef _WIN32
#include <unistd.h>
#endif

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

/* Reads all of a range; 0 if the file ends before, or cannot be read. */
static int read_range(int descriptor, char *to, int64_t start, int64_t size)
{
#ifdef _WIN32
    return 0;
#else
    while (size > 0) {
        ssize_t count = pread(descriptor, to, (size_t)size, (off_t)start);
        if (count == 0 || (count < 0 && errno != EINTR))
            return 0;
        if (count > 0) {
            to += count;
            start += count;
            size -= count;
        }
    }
    return 1;
#endif
}

/* Ranges that lie close together are read at once: to copy what lies between takes less time than
   another call. */
enum { TOGETHER_MAX = 64 * 1024, GAP_MAX = 4 * 1024 };

/* The number of ranges from an index on that are read at once; `*stop` is where they end. */
static Py_ssize_t together(const Py_buffer *starts, const Py_buffer *sizes, Py_ssize_t index,
                           int64_t *stop)
{
    int64_t begin = number(starts, index);
    Py_ssize_t count = 1;
    *stop = begin + number(sizes, index);
    for (; index + count < starts->len / 8; count++) {
        int64_t start = number(starts, index + count), size = number(sizes, index + count);
        if (start < *stop || start - *stop > GAP_MAX || size > TOGETHER_MAX - (start - begin))
            break;
        *stop = start + size;
    }
    return count;
}

/* Reads all ranges; 0 as above. */
static int read_all(int descriptor, char *to, const Py_buffer *starts, const Py_buffer *sizes)
{
    char between[TOGETHER_MAX];
    int64_t stop;
    for (Py_ssize_t index = 0, count; index < starts->len / 8; index += count) {
        int64_t begin = number(starts, index);
        count = together(starts, sizes, index, &stop);
        if (!read_range(descriptor, count == 1 ? to : between, begin, stop - begin))
            return 0;
        for (Py_ssize_t at = index; at < index + count; at++) {
            int64_t size = number(sizes, at);
            if (count > 1)
                memcpy(to, between + (number(starts, at) - begin), (size_t)size);
            to += size;
        }
    }
    return 1;
}

static PyObject *read_joined(int descriptor, const Py_buffer *starts, const Py_buffer *sizes)
{
    Py_ssize_t length = -1;
    if (starts->len == sizes->len && starts->len % 8 == 0)
        length = total(starts, sizes, PY_SSIZE_T_MAX);
    if (length < 0) {
        PyErr_SetString(PyExc_ValueError, "ranges outside of a file");
        return NULL;
    }
    PyObject *found = PyBytes_FromStringAndSize(NULL, length);
    if (found == NULL)
        return NULL;
    int is_read;
    Py_BEGIN_ALLOW_THREADS
    is_read = read_all(descriptor, PyBytes_AS_STRING(found), starts, sizes);
    Py_END_ALLOW_THREADS
    if (is_read)
        return found;
    Py_DECREF(found);
    Py_RETURN_NONE;
}

PyObject *read_ranges(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    int descriptor;
    Py_buffer starts, sizes;
    if (!PyArg_ParseTuple(arguments, "iy*y*", &descriptor, &starts, &sizes))
        return NULL;
    PyObject *found = read_joined(descriptor, &starts, &sizes);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&sizes);
    return found;
}
