/* The objects of Python's that frames are made in; see frames.c. */

#ifndef KRAFTWIRE_FRAMES_H
#define KRAFTWIRE_FRAMES_H

#include "slots.h"

/* The classes, in the order in which the constructor takes them. */
enum {
    FLOW, READER, REQUESTS, RESPONSES, REQUEST, FRAME, CONNECTION, CLASSES,
};

/* Their attributes that are read or written here. */
#define ATTRIBUTES(X) \
    X(FLOW, fast_seq) X(FLOW, need) X(FLOW, parts) X(FLOW, stamp) X(FLOW, feed) \
    X(FLOW, ack) X(FLOW, first_ack) \
    X(READER, pairing) X(READER, flow) X(READER, notes) X(READER, is_early) \
    X(READER, _missing) X(READER, _position) X(READER, _prefix) X(READER, _request) \
    X(READER, _search) X(READER, _size) \
    X(READER, lost_bytes) \
    X(REQUESTS, _client) X(REQUESTS, _client_size) X(REQUESTS, _last_id) \
    X(REQUESTS, _raw_client) X(REQUESTS, _table) \
    X(REQUEST, api_key) X(REQUEST, api_version) X(REQUEST, correlation_id) \
    X(REQUEST, client_id) X(REQUEST, has_response) X(REQUEST, lost) X(REQUEST, position) \
    X(REQUEST, skipped) X(REQUEST, time_ns) \
    X(FRAME, api_key) X(FRAME, api_version) X(FRAME, connection) X(FRAME, correlation_id) \
    X(FRAME, data) X(FRAME, direction) X(FRAME, end_file) X(FRAME, end_position) X(FRAME, file) \
    X(FRAME, input_bytes) X(FRAME, kind) X(FRAME, latency_ms) X(FRAME, missing) \
    X(FRAME, packet_findings) X(FRAME, position) X(FRAME, request) X(FRAME, size) X(FRAME, time_ns) \
    X(CONNECTION, name) X(CONNECTION, pending) X(CONNECTION, parked) X(CONNECTION, responses)

/* Values of the attributes of frames. */
enum { TEXT_REQUEST, TEXT_RESPONSE, TEXT_RPC, TEXTS };

#define NUMBER_OF(class, name) class##_##name,
enum { ATTRIBUTES(NUMBER_OF) ATTRIBUTE_COUNT };

/* `flows` are the directions by their keys. Frames arrive in the list `frames`; `queue` says where one
   stands that began in an earlier file than `file`, whose bytes begin at `offset`. A frame longer than
   the `packed` bytes of its compressed capture is left to Python; -1 without compression. `feed`
   is the readers' method of that name. Memory for frames of `counted_size_min` bytes is counted, by
   Python. */
typedef struct {
    PyObject_HEAD
    PyObject *classes[CLASSES];
    PyObject *flows, *queue, *frames, *file, *feed, *nothing, *texts[TEXTS];
    Py_ssize_t offsets[ATTRIBUTE_COUNT];
    long long offset, packed, frame_size_max, counted_size_min, payload, latest_ns;
} InOrder;

/* When bytes came, and the positions around their packets' records. */
typedef struct {
    int64_t time_ns;
    long long begin, end;
} Stamp;

/* A place in the object that is known to be of the attribute's class. */
#define AT(object, attribute) (*slot((object), in->offsets[attribute]))

/* A number in an attribute; -1 where there is none that fits. */
static inline long long number(const InOrder *in, PyObject *object, int attribute)
{
    PyObject *value = hold(object, in->offsets[attribute]);
    long long found = value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
    if (found == -1)
        PyErr_Clear();
    release(value);
    return found;
}

static inline int set_number(const InOrder *in, PyObject *object, int attribute, long long value)
{
    PyObject *fresh = PyLong_FromLongLong(value);
    if (fresh == NULL)
        return -1;
    replace(object, in->offsets[attribute], fresh);
    return 0;
}

/* Puts a new reference to an object into an attribute. */
static inline void set(const InOrder *in, PyObject *object, int attribute, PyObject *value)
{
    replace(object, in->offsets[attribute], Py_NewRef(value));
}

/* 0, or -1 if a call failed. */
static inline int done(PyObject *result)
{
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

PyObject *stamp_tuple(Stamp stamp);

/* Takes bytes of a direction that begin or end a frame, of which `need` bytes are missing. */
int take_frames(const InOrder *in, PyObject *flow, PyObject *data, Py_ssize_t start, Py_ssize_t end,
                Py_ssize_t need, Stamp stamp);

#endif
