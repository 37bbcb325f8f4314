/* A growing buffer that ends as a bytes object. */

#include "output.h"

void output_start(Output *out)
{
    out->bytes = NULL;
    out->start = out->p = out->small;
    out->limit = out->small + sizeof out->small;
}

/* Doubling keeps the copies linear in the size of the message. */
int output_grow(Output *out, Py_ssize_t size)
{
    Py_ssize_t used = out->p - out->start;
    Py_ssize_t capacity = out->limit - out->start;
    if (size > PY_SSIZE_T_MAX / 4 - used)
        return -1;
    capacity = Py_MAX(2 * capacity, used + size + 256);
    if (out->bytes == NULL) {
        out->bytes = PyBytes_FromStringAndSize(NULL, capacity);
        if (out->bytes == NULL)
            return -1;
        copy_bytes((uint8_t *)PyBytes_AS_STRING(out->bytes), out->small, used);
    } else if (_PyBytes_Resize(&out->bytes, capacity) < 0) {
        return -1;
    }
    out->start = (uint8_t *)PyBytes_AS_STRING(out->bytes);
    out->p = out->start + used;
    out->limit = out->start + capacity;
    return 0;
}

/* A new bytes object of what was written, or NULL without memory; the buffer is used up. */
PyObject *output_finish(Output *out)
{
    Py_ssize_t used = out->p - out->start;
    if (out->bytes == NULL)
        return PyBytes_FromStringAndSize((const char *)out->small, used);
    PyObject *result = out->bytes;
    out->bytes = NULL;
    return _PyBytes_Resize(&result, used) < 0 ? NULL : result;
}

void output_drop(Output *out)
{
    Py_CLEAR(out->bytes);
}
