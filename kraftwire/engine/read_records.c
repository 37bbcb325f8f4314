/* Reads the records of a magic 2 batch into rows, which are tuples of a Python class; or only
   checks that they can be read.

   NULL and -1 mean "fall back": Python reads the records again and says what is wrong, or copes.

   Rows and headers hold numbers, text and bytes and never change, so they cannot be part of a
   cycle. They stay untracked: no collection has to look at a million of them. */

#include "records.h"

#define ROW_FIELDS 6

/* What all records of a batch share. `append_time` (borrowed) is an int that takes the place of
   every timestamp, or None. */
typedef struct {
    PyTypeObject *row;
    const uint8_t *p, *end;
    long long base_offset, base_timestamp, base_sequence;
    PyObject *append_time;
} Batch;

/* Bytes, or None for the length -1. */
static PyObject *get_bytes(const uint8_t **p, const uint8_t *end)
{
    int64_t size;
    if (get_cell_size(p, end, &size) < 0)
        return NULL;
    if (size < 0)
        return Py_NewRef(Py_None);
    PyObject *value = PyBytes_FromStringAndSize((const char *)*p, (Py_ssize_t)size);
    *p += size;
    return value;
}

/* One header, (name, value). A name that is not UTF-8 is left to Python. */
static PyObject *get_header(const uint8_t **p, const uint8_t *end)
{
    int64_t size;
    if (get_size(p, end, &size) < 0 || size < 0)
        return NULL;
    PyObject *name = PyUnicode_DecodeUTF8((const char *)*p, (Py_ssize_t)size, NULL);
    if (name == NULL)
        return NULL;
    *p += size;
    PyObject *value = get_bytes(p, end);
    PyObject *header = value == NULL ? NULL : PyTuple_Pack(2, name, value);
    if (header != NULL)
        PyObject_GC_UnTrack(header);
    Py_DECREF(name);
    Py_XDECREF(value);
    return header;
}

static PyObject *get_headers(const uint8_t **p, const uint8_t *end)
{
    int64_t count;
    if (get_header_count(p, end, &count) < 0)
        return NULL;
    PyObject *headers = PyTuple_New((Py_ssize_t)count);
    if (headers == NULL || count == 0)
        return headers;
    PyObject_GC_UnTrack(headers);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *header = get_header(p, end);
        if (header == NULL) {
            Py_DECREF(headers);
            return NULL;
        }
        PyTuple_SET_ITEM(headers, at, header);
    }
    return headers;
}

static PyObject *get_timestamp(const Batch *batch, int64_t delta)
{
    if (batch->append_time != Py_None)
        return Py_NewRef(batch->append_time);
    return PyLong_FromLongLong(batch->base_timestamp + delta);
}

static PyObject *get_sequence(const Batch *batch, int64_t delta)
{
    if (batch->base_sequence < 0)
        return PyLong_FromLong(-1);
    return PyLong_FromLongLong((batch->base_sequence + delta) & SEQUENCE_MASK);
}

/* The fields of one record between `*p` and `end`, into `row`. */
static int fill_row(const Batch *batch, PyObject *row, const uint8_t **p, const uint8_t *end)
{
    int64_t time_delta, offset_delta;
    if (get_deltas(p, end, &time_delta, &offset_delta) < 0)
        return -1;
    PyObject *value;
    for (Py_ssize_t at = 0; at < ROW_FIELDS; at++) {
        switch (at) {
        case 0:
            value = PyLong_FromLongLong(batch->base_offset + offset_delta);
            break;
        case 1:
            value = get_timestamp(batch, time_delta);
            break;
        case 4:
            value = get_headers(p, end);
            break;
        case 5:
            value = get_sequence(batch, offset_delta);
            break;
        default:
            value = get_bytes(p, end);
        }
        if (value == NULL)
            return -1;
        PyTuple_SET_ITEM(row, at, value);
    }
    return *p == end ? 0 : -1;
}

static PyObject *get_row(Batch *batch)
{
    int64_t size;
    if (get_size(&batch->p, batch->end, &size) < 0 || size < 0)
        return NULL;
    PyObject *row = batch->row->tp_alloc(batch->row, ROW_FIELDS);
    if (row == NULL)
        return NULL;
    PyObject_GC_UnTrack(row);
    if (fill_row(batch, row, &batch->p, batch->p + size) < 0)
        Py_CLEAR(row);
    return row;
}

static PyObject *get_rows(Batch *batch, Py_ssize_t count)
{
    if (count < 0 || count > (batch->end - batch->p) / RECORD_SIZE_MIN)
        return NULL;
    PyObject *rows = PyList_New(count);
    if (rows == NULL || count == 0)
        return rows;
    /* Until every row exists, nobody else may find the list. */
    PyObject_GC_UnTrack(rows);
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *row = get_row(batch);
        if (row == NULL) {
            Py_DECREF(rows);
            return NULL;
        }
        PyList_SET_ITEM(rows, at, row);
    }
    PyObject_GC_Track(rows);
    return rows;
}

PyObject *read_records(PyObject *module, PyObject *arguments)
{
    (void)module;
    Batch batch;
    PyObject *row, *data, *append_time;
    Py_ssize_t start, end, count;
    if (!PyArg_ParseTuple(arguments, "O!O!nnnLLOL", &PyType_Type, &row, &PyBytes_Type, &data,
                          &start, &end, &count, &batch.base_offset, &batch.base_timestamp,
                          &append_time, &batch.base_sequence))
        return NULL;
    batch.row = (PyTypeObject *)row;
    batch.append_time = append_time;
    if (!PyType_IsSubtype(batch.row, &PyTuple_Type)
        || batch.row->tp_basicsize != PyTuple_Type.tp_basicsize || batch.row->tp_dictoffset != 0) {
        PyErr_SetString(PyExc_TypeError, "rows are of a class derived from tuple, with no slots");
        return NULL;
    }
    PyObject *rows = NULL;
    if (start >= 0 && start <= end && end <= PyBytes_GET_SIZE(data) && batch.base_sequence <= INT32_MAX
        && has_usual_bases(batch.base_offset, batch.base_timestamp)) {
        const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(data);
        batch.p = bytes + start;
        batch.end = bytes + end;
        rows = get_rows(&batch, count);
        if (rows != NULL)
            return Py_BuildValue("Nn", rows, (Py_ssize_t)(batch.p - bytes));
    }
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "Python has to read these records");
    return NULL;
}
