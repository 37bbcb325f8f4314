/* Writes the headers of record batches as JSON, their records being null. */

#include "json.h"

#define HEADER_SIZE 61
#define LOG_OVERHEAD 12
#define CRC_START 21
#define CODECS 5

#define STAMPED 0x08
#define TRANSACTIONAL 0x10
#define CONTROL 0x20
#define DELETE_HORIZON 0x40

static const char *const NAMES[CODECS] = {"none", "gzip", "snappy", "lz4", "zstd"};

static int put_key(Output *out, const char *key)
{
    return put_text(out, key, (Py_ssize_t)strlen(key));
}

static int put_member(Output *out, const char *key, int64_t value)
{
    return put_key(out, key) < 0 ? -1 : put_number(out, value);
}

static int put_flag(Output *out, const char *key, bool value)
{
    return put_key(out, key) < 0 ? -1 : put_key(out, value ? "true" : "false");
}

/* Where a number stands in the header, and how many bytes it has. */
static int64_t number_at(const uint8_t *batch, int at, int size)
{
    uint64_t raw = get_big(batch + at, size);
    return size == 8 ? (int64_t)raw : size == 4 ? (int32_t)raw : (int16_t)raw;
}

static int put_producer(Output *out, const uint8_t *batch)
{
    int64_t sequence = number_at(batch, 53, 4), last = -1;
    if (sequence != -1)
        last = (sequence + number_at(batch, 23, 4)) & 0x7FFFFFFF;
    if (put_member(out, ",\"baseSequence\":", sequence) < 0
        || put_member(out, ",\"lastSequence\":", last) < 0
        || put_member(out, ",\"producerId\":", number_at(batch, 43, 8)) < 0
        || put_member(out, ",\"producerEpoch\":", number_at(batch, 51, 2)) < 0)
        return -1;
    return put_member(out, ",\"partitionLeaderEpoch\":", number_at(batch, 12, 4));
}

static int put_attributes(Output *out, const uint8_t *batch)
{
    int attributes = (int)get_big(batch + 21, 2);
    const char *stamp = attributes & STAMPED ? ",\"timestampType\":\"LogAppendTime\""
                                             : ",\"timestampType\":\"CreateTime\"";
    if (put_flag(out, ",\"isTransactional\":", attributes & TRANSACTIONAL) < 0
        || put_flag(out, ",\"isControl\":", attributes & CONTROL) < 0
        || put_key(out, ",\"deleteHorizonMs\":") < 0)
        return -1;
    int result = attributes & DELETE_HORIZON ? put_number(out, number_at(batch, 27, 8))
                                             : put_key(out, "null");
    return result < 0 ? -1 : put_key(out, stamp);
}

static int put_batch(Output *out, const uint8_t *batch, Py_ssize_t position, Py_ssize_t size)
{
    int64_t base = number_at(batch, 0, 8), delta = number_at(batch, 23, 4), last;
    unsigned codec = batch[22] & 7;
    if (codec >= CODECS || __builtin_add_overflow(base, delta, &last))
        return -1;
    if (put_number(out, position) < 0 || put_member(out, ",\"baseOffset\":", base) < 0
        || put_member(out, ",\"lastOffset\":", last) < 0
        || put_member(out, ",\"count\":", number_at(batch, 57, 4)) < 0
        || put_producer(out, batch) < 0 || put_attributes(out, batch) < 0
        || put_member(out, ",\"maxTimestamp\":", number_at(batch, 35, 8)) < 0
        || put_member(out, ",\"size\":", size) < 0
        || put_key(out, ",\"magic\":2,\"compression\":\"") < 0 || put_key(out, NAMES[codec]) < 0)
        return -1;
    int64_t crc = (int64_t)get_big(batch + 17, 4);
    if (put_member(out, "\",\"crc\":", crc) < 0)
        return -1;
    return put_key(out, ",\"isValid\":true,\"records\":null}");
}

/* Size of the batch there, -1 unless it is a whole one of magic 2 with records of its users. */
static Py_ssize_t batch_size(const uint8_t *batch, Py_ssize_t left)
{
    if (left < HEADER_SIZE || batch[16] != 2 || batch[22] & CONTROL)
        return -1;
    int64_t size = number_at(batch, 8, 4) + LOG_OVERHEAD;
    return size < HEADER_SIZE || size > left ? -1 : (Py_ssize_t)size;
}

static int note_crc(PyObject *crcs, const uint8_t *batch, Py_ssize_t start, Py_ssize_t end)
{
    unsigned long crc = (unsigned long)get_big(batch + 17, 4);
    PyObject *item = Py_BuildValue("(knn)", crc, start + CRC_START, end);
    int result = item == NULL ? -1 : PyList_Append(crcs, item);
    Py_XDECREF(item);
    return result;
}

static int put_batches(Output *out, PyObject *data, Py_ssize_t start, Py_ssize_t end,
                       PyObject *head, PyObject *crcs)
{
    const uint8_t *buffer = (const uint8_t *)PyBytes_AS_STRING(data);
    for (Py_ssize_t at = start; at < end;) {
        Py_ssize_t size = batch_size(buffer + at, end - at);
        if (size < 0 || put_text(out, at > start ? "," : "[", 1) < 0
            || put_text(out, PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head)) < 0
            || put_batch(out, buffer + at, at - start, size) < 0
            || note_crc(crcs, buffer + at, at, at + size) < 0)
            return -1;
        at += size;
    }
    return put_text(out, "]", 1);
}

static PyObject *write_all(PyObject *data, Py_ssize_t start, Py_ssize_t end, PyObject *head)
{
    if (start < 0 || start >= end || end > PyBytes_GET_SIZE(data))
        return NULL;
    PyObject *crcs = PyList_New(0);
    if (crcs == NULL)
        return NULL;
    Output out;
    output_start(&out);
    PyObject *text = NULL;
    if (put_batches(&out, data, start, end, head, crcs) == 0)
        text = output_finish(&out);
    output_drop(&out);
    PyObject *result = text == NULL ? NULL : PyTuple_Pack(2, text, crcs);
    Py_XDECREF(text);
    Py_DECREF(crcs);
    return result;
}

/* json_batches(data, start, end, head) */
PyObject *json_batches(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    if (count == 4 && PyBytes_CheckExact(arguments[0]) && PyBytes_CheckExact(arguments[3])) {
        Py_ssize_t start = PyLong_AsSsize_t(arguments[1]);
        Py_ssize_t end = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(arguments[2]);
        if (!PyErr_Occurred()) {
            PyObject *result = write_all(arguments[0], start, end, arguments[3]);
            if (result != NULL)
                return result;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}
