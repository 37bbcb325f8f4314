/* Kafka's frames, cut off the bytes of one direction of a connection, and requests and their responses.

   What is usual is done here, on the objects that Python works with; for all else the methods of the
   same objects are called (kraftwire/capture/framing), which do the usual as well. */

#include "frames.h"

#define LENGTH_SIZE 4
/* Length, API key and version, correlation id, length of the client id. */
#define REQUEST_HEADER 14
/* Length, correlation id. */
#define RESPONSE_HEADER 8
#define PRODUCE 0
/* So many requests of a connection may always wait. */
#define WAITING_FEW 64
#define MILLISECOND_NS 1000000

static bool is_a(const InOrder *in, PyObject *object, int class)
{
    return object != NULL && Py_TYPE(object) == (PyTypeObject *)in->classes[class];
}

static PyObject *new_object(const InOrder *in, int class)
{
    PyTypeObject *type = (PyTypeObject *)in->classes[class];
    return type->tp_alloc(type, 0);
}

PyObject *stamp_tuple(Stamp stamp)
{
    return Py_BuildValue("(LLL)", (long long)stamp.time_ns, stamp.begin, stamp.end);
}

/* A method of Python's that takes a range of bytes, a stamp, and perhaps that of the first frame. */
static int call_with_bytes(PyObject *callable, PyObject *data, Py_ssize_t start, Py_ssize_t end,
                           Stamp stamp, bool is_twice)
{
    if (callable == NULL)
        return -1;
    PyObject *tuple = stamp_tuple(stamp);
    int result = -1;
    if (tuple != NULL && is_twice)
        result = done(PyObject_CallFunction(callable, "OnnOO", data, start, end, tuple, tuple));
    else if (tuple != NULL)
        result = done(PyObject_CallFunction(callable, "OnnO", data, start, end, tuple));
    Py_XDECREF(tuple);
    return result;
}

static int call_method(PyObject *object, const char *name, PyObject *data, Py_ssize_t start,
                       Py_ssize_t end, Stamp stamp)
{
    PyObject *callable = PyObject_GetAttrString(object, name);
    int result = call_with_bytes(callable, data, start, end, stamp, true);
    Py_XDECREF(callable);
    return result;
}

/* The longest frame that is made here: Python finds what accounts for longer ones of a packed capture. */
static Py_ssize_t size_max(const InOrder *in)
{
    bool is_packed = in->packed >= 0 && in->packed < in->frame_size_max;
    return (Py_ssize_t)(is_packed ? in->packed : in->frame_size_max);
}

/* Where the packets of a frame stand in their file. */
static int set_place(const InOrder *in, PyObject *frame, Stamp stamp)
{
    if (stamp.begin < in->offset || in->file == NULL) {
        PyObject *tuple = stamp_tuple(stamp);
        if (tuple == NULL)
            return -1;
        int result = done(PyObject_CallMethod(in->queue, "place", "OO", frame, tuple));
        Py_DECREF(tuple);
        return result;
    }
    set(in, frame, FRAME_file, in->file);
    set(in, frame, FRAME_end_file, in->file);
    if (set_number(in, frame, FRAME_position, stamp.begin - in->offset) < 0)
        return -1;
    return set_number(in, frame, FRAME_end_position, stamp.end - in->offset);
}

/* Moves what was noted for the next frame into it. */
static int take_notes(const InOrder *in, PyObject *reader, PyObject *frame)
{
    PyObject *notes = AT(reader, READER_notes);
    bool has_notes = PyList_GET_SIZE(notes) > 0;
    PyObject *other = has_notes ? PyList_New(0) : PyTuple_New(0);
    if (other == NULL)
        return -1;
    AT(frame, FRAME_packet_findings) = has_notes ? notes : other;
    if (has_notes)
        AT(reader, READER_notes) = other;
    return has_notes ? set_number(in, reader, READER_lost_bytes, 0) : 0;
}

/* Puts the value of one object's attribute into another one's. */
static void copy(const InOrder *in, PyObject *to, int attribute, PyObject *from, int other)
{
    PyObject *value = hold(from, in->offsets[other]);
    replace(to, in->offsets[attribute], Py_XNewRef(value));
    release(value);
}

/* A whole frame of a direction, with its request; `data` is its bytes. */
static PyObject *new_frame(const InOrder *in, PyObject *reader, PyObject *request, PyObject *data,
                           Stamp stamp)
{
    PyObject *frame = new_object(in, FRAME);
    if (frame == NULL)
        return NULL;
    bool is_request = is_a(in, reader, REQUESTS);
    const int copied[][2] = {
        {FRAME_api_key, REQUEST_api_key},
        {FRAME_api_version, REQUEST_api_version},
        {FRAME_correlation_id, REQUEST_correlation_id},
    };
    for (size_t at = 0; at < sizeof copied / sizeof copied[0]; at++)
        copy(in, frame, copied[at][0], request, copied[at][1]);
    set(in, frame, FRAME_request, request);
    set(in, frame, FRAME_data, data);
    set(in, frame, FRAME_latency_ms, Py_None);
    set(in, frame, FRAME_connection, AT(AT(reader, READER_pairing), CONNECTION_name));
    set(in, frame, FRAME_direction, in->texts[is_request ? TEXT_REQUEST : TEXT_RESPONSE]);
    set(in, frame, FRAME_kind, in->texts[TEXT_RPC]);
    AT(frame, FRAME_missing) = PyTuple_New(0);
    const Py_ssize_t size = PyBytes_GET_SIZE(data);
    if (AT(frame, FRAME_missing) == NULL || take_notes(in, reader, frame) < 0
        || set_number(in, frame, FRAME_size, size) < 0
        || set_number(in, frame, FRAME_time_ns, stamp.time_ns) < 0
        || set_place(in, frame, stamp) < 0)
        Py_CLEAR(frame);
    else
        set(in, frame, FRAME_input_bytes, AT(frame, FRAME_size));
    return frame;
}

/* Passes a request on. */
static int emit_request(const InOrder *in, PyObject *reader, PyObject *request, PyObject *data,
                        Stamp stamp)
{
    PyObject *frame = new_frame(in, reader, request, data, stamp);
    if (frame == NULL)
        return -1;
    set(in, request, REQUEST_time_ns, AT(frame, FRAME_time_ns));
    set(in, request, REQUEST_position, AT(frame, FRAME_position));
    int result = PyList_Append(in->frames, frame);
    Py_DECREF(frame);
    PyObject *connection = AT(reader, READER_pairing);
    if (result == 0 && PyObject_Length(AT(connection, CONNECTION_parked)) > 0)
        result = done(PyObject_CallMethod(connection, "match_parked", NULL));
    return result;
}

/* Milliseconds between two times. */
static PyObject *latency(int64_t later_ns, int64_t earlier_ns)
{
    PyObject *difference = PyLong_FromLongLong(later_ns - earlier_ns);
    PyObject *unit = PyLong_FromLong(MILLISECOND_NS);
    PyObject *result = NULL;
    if (difference != NULL && unit != NULL)
        result = PyNumber_TrueDivide(difference, unit);
    Py_XDECREF(difference);
    Py_XDECREF(unit);
    return result;
}

/* The request that waits longest, new, if the response in `data` is its; None if it is not, or if the
   request is a token. */
static PyObject *take_request(const InOrder *in, PyObject *connection, const uint8_t *data)
{
    PyObject *pending = AT(connection, CONNECTION_pending);
    if (PyObject_Length(pending) < 1 || PyObject_Length(AT(connection, CONNECTION_parked)) > 0)
        return Py_NewRef(Py_None);
    PyObject *request = PySequence_GetItem(pending, 0);
    if (!is_a(in, request, REQUEST))
        return request;
    bool is_next = number(in, request, REQUEST_api_key) >= 0
                   && number(in, request, REQUEST_correlation_id) == (int32_t)get_big(data, 4)
                   && number(in, request, REQUEST_time_ns) >= 0;
    Py_DECREF(request);
    return is_next ? PyObject_CallMethod(pending, "popleft", NULL) : Py_NewRef(Py_None);
}

/* Passes a response on, if it answers the first request; else Python looks for its request. */
static int emit_response(const InOrder *in, PyObject *reader, PyObject *data, Stamp stamp)
{
    PyObject *connection = AT(reader, READER_pairing);
    PyObject *request = take_request(in, connection, (const uint8_t *)PyBytes_AS_STRING(data));
    if (request == NULL)
        return -1;
    int result = -1;
    if (request == Py_None) {
        PyObject *tuple = stamp_tuple(stamp);
        if (tuple != NULL)
            result = done(PyObject_CallMethod(connection, "respond", "OnO()", data,
                                              PyBytes_GET_SIZE(data), tuple));
        Py_XDECREF(tuple);
        Py_DECREF(request);
        return result;
    }
    PyObject *frame = new_frame(in, reader, request, data, stamp);
    set(in, reader, READER_is_early, Py_False);
    if (frame != NULL) {
        PyObject *value = latency(stamp.time_ns, number(in, request, REQUEST_time_ns));
        if (value != NULL) {
            replace(frame, in->offsets[FRAME_latency_ms], value);
            result = PyList_Append(in->frames, frame);
        }
        Py_DECREF(frame);
    }
    Py_DECREF(request);
    return result;
}

/* Begins a frame that continues in later packets: its bytes so far end with the packet. */
static int begin(const InOrder *in, PyObject *reader, Py_ssize_t size, PyObject *data,
                 Py_ssize_t start, Py_ssize_t end, PyObject *request, Stamp stamp)
{
    PyObject *tuple = stamp_tuple(stamp);
    PyObject *first = PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start);
    PyObject *flow = AT(reader, READER_flow);
    int result = -1;
    if (tuple != NULL && first != NULL && size >= in->counted_size_min) {
        result = done(PyObject_CallMethod(reader, "_begin", "nOOO", size, first, request, tuple));
    } else if (tuple != NULL && first != NULL) {
        PyObject *parts = PyList_New(1);
        if (parts != NULL) {
            PyList_SET_ITEM(parts, 0, Py_NewRef(first));
            replace(flow, in->offsets[FLOW_parts], parts);
            set(in, flow, FLOW_stamp, tuple);
            set(in, reader, READER__request, request);
            result = set_number(in, flow, FLOW_need, size - (end - start));
            result |= set_number(in, reader, READER__position, stamp.begin);
            result |= set_number(in, reader, READER__size, size);
        }
    }
    Py_XDECREF(first);
    Py_XDECREF(tuple);
    return result;
}

/* Whether a Produce request certainly wants a response: its acks, if they stand where they usually do,
   are not 0. Its client id ends at `at`, its captured bytes at `end`. */
static bool wants_acks(const uint8_t *bytes, Py_ssize_t at, Py_ssize_t end, int version)
{
    /* No tagged fields in the header, or none and no transactional id. */
    if (end - at < 4 || version < 3 || bytes[at + 1] != (version < 9 ? 0xFF : 0)
        || bytes[at] != bytes[at + 1])
        return false;
    return get_big(bytes + at + 2, 2) != 0;
}

/* A new request of the same client as the one before, NULL without an exception if Python has to look
   at it. Its header is at `start`, its frame ends at `stop`, the packet at `end`. */
static PyObject *usual_request(const InOrder *in, PyObject *reader, PyObject *data,
                               Py_ssize_t start, Py_ssize_t stop, Py_ssize_t end)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data) + start;
    long id_size = (int16_t)get_big(p + 12, 2);
    Py_ssize_t id_bytes = id_size > 0 ? id_size : 0, body = start + REQUEST_HEADER + id_bytes;
    PyObject *client = AT(reader, REQUESTS__raw_client);
    if (body > end || body > stop || !PyBytes_CheckExact(client)
        || PyBytes_GET_SIZE(client) != id_bytes
        || number(in, reader, REQUESTS__client_size) != id_size
        || memcmp(PyBytes_AS_STRING(client), p + REQUEST_HEADER, (size_t)id_bytes) != 0)
        return NULL;
    PyObject *kind = PyLong_FromUnsignedLong((unsigned long)get_big(p + 4, 4));
    if (kind == NULL)
        return NULL;
    PyObject *api = PyDict_GetItemWithError(AT(reader, REQUESTS__table), kind);
    Py_DECREF(kind);
    PyObject *request = api == NULL ? NULL : new_object(in, REQUEST);
    if (request == NULL)
        return NULL;
    set(in, request, REQUEST_api_key, PyTuple_GET_ITEM(api, 0));
    set(in, request, REQUEST_api_version, PyTuple_GET_ITEM(api, 1));
    set(in, request, REQUEST_client_id, AT(reader, REQUESTS__client));
    set(in, request, REQUEST_has_response, Py_True);
    set(in, request, REQUEST_lost, Py_None);
    set(in, request, REQUEST_skipped, in->nothing);
    int result = set_number(in, request, REQUEST_correlation_id, (int32_t)get_big(p + 8, 4));
    result |= set_number(in, request, REQUEST_position, -1);
    result |= set_number(in, request, REQUEST_time_ns, -1);
    if (result == 0)
        set(in, reader, REQUESTS__last_id, AT(request, REQUEST_correlation_id));
    PyObject *rule = PyTuple_GET_ITEM(api, 2);
    Py_ssize_t limit = stop < end ? stop : end;
    bool has_rule = PyObject_IsTrue(rule) && !(get_big(p + 4, 2) == PRODUCE
        && wants_acks(p - start, body, limit, (int)get_big(p + 6, 2)));
    if (result == 0 && has_rule)
        result = done(PyObject_CallMethod(reader, "_apply_rules", "OOOnn", request, rule, data,
                                          body, limit));
    if (result < 0)
        Py_CLEAR(request);
    return request;
}

/* Remembers a request; with few waiting, and responses that are cut, nothing else has to be done. */
static int wait_for_response(const InOrder *in, PyObject *connection, PyObject *request)
{
    PyObject *pending = AT(connection, CONNECTION_pending);
    PyObject *responses = AT(connection, CONNECTION_responses);
    bool is_usual = is_a(in, responses, RESPONSES) && AT(responses, READER__search) == Py_None
                    && PyObject_Length(pending) < WAITING_FEW;
    return done(is_usual ? PyObject_CallMethod(pending, "append", "O", request)
                         : PyObject_CallMethod(connection, "register", "O", request));
}

/* Cuts requests off a packet, from a position at which one begins. */
static int cut_requests(const InOrder *in, PyObject *reader, PyObject *data, Py_ssize_t start,
                        Py_ssize_t end, Stamp stamp)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data);
    while (end - start >= REQUEST_HEADER) {
        Py_ssize_t size = (int32_t)get_big(p + start, 4), stop = start + LENGTH_SIZE + size;
        PyObject *request = NULL;
        if (size >= 0 && size <= size_max(in))
            request = usual_request(in, reader, data, start, stop, end);
        if (request == NULL)
            return PyErr_Occurred() ? -1 : call_method(reader, "_cut", data, start, end, stamp);
        int result = 0;
        if (AT(request, REQUEST_has_response) == Py_True)
            result = wait_for_response(in, AT(reader, READER_pairing), request);
        if (result == 0 && stop > end) {
            result = begin(in, reader, size, data, start + LENGTH_SIZE, end, request, stamp);
        } else if (result == 0) {
            PyObject *bytes = PyBytes_FromStringAndSize((const char *)p + start + LENGTH_SIZE, size);
            result = bytes == NULL ? -1 : emit_request(in, reader, request, bytes, stamp);
            Py_XDECREF(bytes);
        }
        Py_DECREF(request);
        if (result < 0 || stop > end)
            return result;
        start = stop;
    }
    return start == end ? 0 : call_method(reader, "_keep_short", data, start, end, stamp);
}

/* The same for responses. */
static int cut_responses(const InOrder *in, PyObject *reader, PyObject *data, Py_ssize_t start,
                         Py_ssize_t end, Stamp stamp)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data);
    while (end - start >= RESPONSE_HEADER) {
        Py_ssize_t size = (int32_t)get_big(p + start, 4), stop = start + LENGTH_SIZE + size;
        if (size < RESPONSE_HEADER - LENGTH_SIZE || size > size_max(in))
            return call_method(reader, "_cut", data, start, end, stamp);
        if (stop > end)
            return begin(in, reader, size, data, start + LENGTH_SIZE, end, Py_None, stamp);
        PyObject *bytes = PyBytes_FromStringAndSize((const char *)p + start + LENGTH_SIZE, size);
        int result = bytes == NULL ? -1 : emit_response(in, reader, bytes, stamp);
        Py_XDECREF(bytes);
        if (result < 0)
            return -1;
        start = stop;
    }
    return start == end ? 0 : call_method(reader, "_keep_short", data, start, end, stamp);
}

static int cut(const InOrder *in, PyObject *reader, PyObject *data, Py_ssize_t start,
               Py_ssize_t end, Stamp stamp)
{
    return is_a(in, reader, REQUESTS) ? cut_requests(in, reader, data, start, end, stamp)
                                      : cut_responses(in, reader, data, start, end, stamp);
}

/* All bytes of a frame that ends here: the parts so far, and the last one; NULL without an exception
   if they do not fit together. */
static PyObject *joined(PyObject *parts, Py_ssize_t size, const char *last, Py_ssize_t last_size)
{
    Py_ssize_t sum = last_size;
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(parts); at++)
        sum += PyBytes_CheckExact(PyList_GET_ITEM(parts, at))
                   ? PyBytes_GET_SIZE(PyList_GET_ITEM(parts, at)) : size;
    if (sum != size)
        return NULL;
    PyObject *all = PyBytes_FromStringAndSize(NULL, size);
    if (all == NULL)
        return NULL;
    char *to = PyBytes_AS_STRING(all);
    for (Py_ssize_t at = 0; at < PyList_GET_SIZE(parts); at++) {
        PyObject *part = PyList_GET_ITEM(parts, at);
        memcpy(to, PyBytes_AS_STRING(part), (size_t)PyBytes_GET_SIZE(part));
        to += PyBytes_GET_SIZE(part);
    }
    memcpy(to, last, (size_t)last_size);
    return all;
}

/* Passes on the request that began in earlier packets. */
static int finish_request(const InOrder *in, PyObject *reader, PyObject *data, Stamp stamp)
{
    PyObject *request = AT(reader, READER__request);
    AT(reader, READER__request) = Py_NewRef(Py_None);
    int result = 0;
    /* What the first packet may not have shown is read now. */
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(data);
    long id_size = (int16_t)get_big(p + 8, 2);
    Py_ssize_t body = REQUEST_HEADER - LENGTH_SIZE + (id_size > 0 ? id_size : 0);
    bool is_open = AT(request, REQUEST_client_id) == Py_None
                   || (number(in, request, REQUEST_api_key) == PRODUCE
                       && AT(request, REQUEST_has_response) == Py_True
                       && !wants_acks(p, body, PyBytes_GET_SIZE(data),
                                      (int)number(in, request, REQUEST_api_version)));
    if (is_open)
        result = done(PyObject_CallMethod(reader, "_complete", "OOn", request, data,
                                          PyBytes_GET_SIZE(data)));
    if (result == 0)
        result = emit_request(in, reader, request, data, stamp);
    Py_DECREF(request);
    return result;
}

/* Whether the frame that a reader is in is whole so far, and is kept as a whole. */
static bool is_whole(const InOrder *in, PyObject *reader)
{
    return PyList_GET_SIZE(AT(reader, READER__missing)) == 0
           && number(in, reader, READER__size) <= size_max(in)
           && number(in, reader, READER__size) < in->counted_size_min
           && (is_a(in, reader, RESPONSES) || (is_a(in, AT(reader, READER__request), REQUEST)
               && number(in, AT(reader, READER__request), REQUEST_api_key) >= 0));
}

/* Ends the frame that a reader is in by `need` bytes; 1 if Python has to. */
static int finish(const InOrder *in, PyObject *reader, PyObject *flow, PyObject *data,
                  Py_ssize_t start, Py_ssize_t need, Stamp stamp)
{
    PyObject *parts = AT(flow, FLOW_parts);
    if (!is_whole(in, reader) || parts == NULL || !PyList_CheckExact(parts))
        return 1;
    PyObject *whole = joined(parts, (Py_ssize_t)number(in, reader, READER__size),
                             PyBytes_AS_STRING(data) + start, need);
    if (whole == NULL)
        return PyErr_Occurred() ? -1 : 1;
    PyObject *none = PyList_New(0);
    stamp.begin = number(in, reader, READER__position);
    int result = none == NULL ? -1 : set_number(in, flow, FLOW_need, 0);
    if (result == 0) {
        set(in, flow, FLOW_parts, none);
        result = is_a(in, reader, REQUESTS) ? finish_request(in, reader, whole, stamp)
                                            : emit_response(in, reader, whole, stamp);
    }
    Py_XDECREF(none);
    Py_DECREF(whole);
    return result;
}

/* Whether a connection's and a reader's attributes are of the types that are expected here. */
static bool is_expected(const InOrder *in, PyObject *reader, PyObject *flow)
{
    PyObject *connection = AT(reader, READER_pairing);
    return is_a(in, connection, CONNECTION)
           && AT(reader, READER_flow) == flow
           && PyList_CheckExact(AT(reader, READER_notes))
           && PyList_CheckExact(AT(reader, READER__missing))
           && PyBytes_CheckExact(AT(reader, READER__prefix));
}

/* The reader to which a direction's bytes go, as long as that knows where frames begin; NULL if not. */
static PyObject *reader_of(const InOrder *in, PyObject *flow)
{
    PyObject *feed = AT(flow, FLOW_feed);
    if (feed == NULL || !PyMethod_Check(feed) || PyMethod_GET_FUNCTION(feed) != in->feed)
        return NULL;
    PyObject *reader = PyMethod_GET_SELF(feed);
    bool is_reader = is_a(in, reader, REQUESTS) || is_a(in, reader, RESPONSES);
    if (!is_reader || !is_expected(in, reader, flow))
        return NULL;
    return PyBytes_GET_SIZE(AT(reader, READER__prefix)) == 0 ? reader : NULL;
}

int take_frames(const InOrder *in, PyObject *flow, PyObject *data, Py_ssize_t start, Py_ssize_t end,
                Py_ssize_t need, Stamp stamp)
{
    PyObject *reader = reader_of(in, flow);
    int result = reader == NULL;
    if (reader != NULL)
        Py_INCREF(reader);
    if (result == 0 && need > 0)
        result = finish(in, reader, flow, data, start, need, stamp);
    if (result == 1)
        result = call_with_bytes(AT(flow, FLOW_feed), data, start, end, stamp, false);
    else if (result == 0 && start + need < end)
        result = cut(in, reader, data, start + need, end, stamp);
    Py_XDECREF(reader);
    return result;
}

