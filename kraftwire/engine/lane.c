/* Takes packets of a capture that only go on with what their connections are in.

   A packet is taken here if it is TCP in plain IPv4 in Ethernet, and holds the next bytes of a
   direction that is known, or none. Bytes inside a frame are kept, all others are given to the
   direction's `feed`. Everything else is left to the loop in
   kraftwire/capture/capture.py, which takes these as well. */

#include "lane.h"

#include "slots.h"

#include <stddef.h>
#include <structmember.h>

#define RECORD_HEADER 16
/* Ethernet, IPv4 without options, and TCP up to its flags. */
#define HEADERS_MIN 48
#define ETHERNET 14
#define TCP_START 34
#define KEY_START 26
#define KEY_SIZE 12
#define FRAGMENT_AND_PROTOCOL 0x3FFF00FF
#define WHOLE_TCP 6
/* FIN, SYN and RST. */
#define UNUSUAL 7
#define SECOND_NS 1000000000
/* Where a packet for Python has its buffer. */
#define DATA_AT 2
/* With this many frames waiting, no further packet is taken. */
#define FRAMES_MAX 64

/* `flows` are the directions by their keys, `remember` is called with every packet that is taken,
   and `frames` is the list where complete frames arrive. `marks`, unless it is NULL, gets the
   position after the packet for each of them. */
typedef struct {
    PyObject_HEAD
    PyTypeObject *flow_class;
    PyObject *flows, *remember, *frames, *marks;
    Py_ssize_t seq_offset, need_offset, parts_offset, stamp_offset, feed_offset;
    long long payload;
} Lane;

/* One packet: numbers of its record, and where its bytes are. */
typedef struct {
    const uint8_t *headers;
    int64_t time_ns;
    Py_ssize_t at, start, captured, wire, stop;
} Packet;

/* A direction, and what comes of a packet for it. */
typedef struct {
    PyObject *flow;
    uint32_t seq;
    Py_ssize_t begin, count, need;
} Step;

static uint32_t little(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Whether a whole record stands at a position. */
static bool read_record(const uint8_t *data, Py_ssize_t size, Py_ssize_t at, long long unit,
                        Packet *packet)
{
    if (size - at < RECORD_HEADER)
        return false;
    const uint8_t *p = data + at;
    packet->at = at;
    packet->time_ns = (int64_t)little(p) * SECOND_NS + (int64_t)little(p + 4) * unit;
    packet->captured = little(p + 8);
    packet->wire = little(p + 12);
    packet->start = at + RECORD_HEADER;
    packet->headers = data + packet->start;
    packet->stop = packet->start + packet->captured;
    return packet->captured <= size - packet->start;
}

/* What becomes of a packet. */
enum { FAILED = -1, LEFT = 0, TAKEN = 1 };

/* Decides about a packet. */
static int find_step(const Lane *lane, const Packet *packet, Step *step)
{
    const uint8_t *p = packet->headers;
    if (packet->captured < HEADERS_MIN
        || (get_big(p + 20, 4) & FRAGMENT_AND_PROTOCOL) != WHOLE_TCP)
        return LEFT;
    Py_ssize_t total = (Py_ssize_t)get_big(p + 16, 2);
    int words = p[46] >> 4;
    if (total > packet->captured - ETHERNET || words < 5 || p[47] & UNUSUAL)
        return LEFT;
    step->begin = TCP_START + 4 * words;
    step->count = total + ETHERNET - step->begin;
    if (step->count < 0)
        return LEFT;
    PyObject *key = PyBytes_FromStringAndSize((const char *)p + KEY_START, KEY_SIZE);
    if (key == NULL)
        return FAILED;
    step->flow = PyDict_GetItemWithError(lane->flows, key);
    Py_DECREF(key);
    if (step->flow == NULL)
        return PyErr_Occurred() ? FAILED : LEFT;
    step->seq = (uint32_t)get_big(p + 38, 4);
    if (!PyObject_TypeCheck(step->flow, lane->flow_class)
        || slot_number(step->flow, lane->seq_offset) != (long long)step->seq)
        return LEFT;
    step->need = (Py_ssize_t)slot_number(step->flow, lane->need_offset);
    PyObject *parts = *slot(step->flow, lane->parts_offset);
    if (step->count == 0)
        return TAKEN;
    if (step->count < step->need)
        return parts != NULL && PyList_CheckExact(parts);
    return step->need >= 0 && *slot(step->flow, lane->feed_offset) != NULL;
}

/* A tuple of numbers, one of them an object of its own (borrowed) if `data` is not NULL. */
static PyObject *tuple_of(const long long *numbers, Py_ssize_t count, PyObject *data)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t at = 0; tuple != NULL && at < count; at++) {
        bool is_data = data != NULL && at == DATA_AT;
        PyObject *item = is_data ? Py_NewRef(data) : PyLong_FromLongLong(numbers[at]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, at, item);
    }
    return tuple;
}

/* Keeps bytes that do not complete the frame that they are in. */
static int add_part(Lane *lane, const Packet *packet, const Step *step, PyObject *stamp)
{
    const char *from = (const char *)packet->headers + step->begin;
    PyObject *part = PyBytes_FromStringAndSize(from, step->count);
    /* Looked up again: making objects can start a collection, which can run anything. */
    PyObject *parts = *slot(step->flow, lane->parts_offset);
    int result = -1;
    if (part != NULL && parts != NULL && PyList_CheckExact(parts)
        && PyList_Append(parts, part) == 0
        && set_slot_number(step->flow, lane->need_offset, step->need - step->count) == 0) {
        Py_XSETREF(*slot(step->flow, lane->stamp_offset), Py_NewRef(stamp));
        result = 0;
    }
    Py_XDECREF(part);
    return result;
}

/* Gives bytes to whatever the direction feeds. */
static int feed(const Lane *lane, const Packet *packet, const Step *step, PyObject *data,
                PyObject *stamp)
{
    PyObject *callable = *slot(step->flow, lane->feed_offset);
    if (callable == NULL)
        return -1;
    Py_INCREF(callable);
    PyObject *begin = PyLong_FromSsize_t(packet->start + step->begin);
    PyObject *end = PyLong_FromSsize_t(packet->start + step->begin + step->count);
    PyObject *result = NULL;
    if (begin != NULL && end != NULL) {
        PyObject *arguments[] = {data, begin, end, stamp};
        result = PyObject_Vectorcall(callable, arguments, 4, NULL);
    }
    Py_XDECREF(begin);
    Py_XDECREF(end);
    Py_DECREF(callable);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* Goes on with a direction, by bytes that are its next ones. */
static int go_on(Lane *lane, const Packet *packet, const Step *step, PyObject *data,
                 long long base)
{
    const long long numbers[] = {packet->time_ns, base + packet->at, base + packet->stop};
    PyObject *stamp = tuple_of(numbers, 3, NULL);
    int result = -1;
    if (stamp != NULL
        && set_slot_number(step->flow, lane->seq_offset, step->seq + (uint32_t)step->count) == 0) {
        lane->payload += step->count;
        bool is_inside = step->count < step->need;
        result = is_inside ? add_part(lane, packet, step, stamp)
                           : feed(lane, packet, step, data, stamp);
    }
    Py_XDECREF(stamp);
    return result;
}

static int remember(const Lane *lane, const Packet *packet, PyObject *data, long long base,
                    long long link)
{
    const long long numbers[] = {packet->time_ns, link, 0, packet->start, packet->captured,
                                 packet->wire, base, packet->at, packet->stop};
    PyObject *item = tuple_of(numbers, sizeof numbers / sizeof numbers[0], data);
    if (item == NULL)
        return -1;
    PyObject *result = PyObject_CallOneArg(lane->remember, item);
    Py_DECREF(item);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* Marks the frames that are new in the list. */
static int mark(const Lane *lane, long long position)
{
    while (PyList_GET_SIZE(lane->marks) < PyList_GET_SIZE(lane->frames)) {
        PyObject *value = PyLong_FromLongLong(position);
        if (value == NULL)
            return -1;
        int result = PyList_Append(lane->marks, value);
        Py_DECREF(value);
        if (result < 0)
            return -1;
    }
    return 0;
}

static int take(Lane *lane, const Packet *packet, const Step *step, PyObject *data,
                long long base, long long link)
{
    PyObject *flow = Py_NewRef(step->flow);
    int result = remember(lane, packet, data, base, link);
    if (result == 0 && step->count > 0)
        result = go_on(lane, packet, step, data, base);
    if (result == 0 && lane->marks != NULL)
        result = mark(lane, base + packet->stop);
    Py_DECREF(flow);
    if (result < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "a direction changed while a packet was taken");
    return result;
}

static PyObject *follow(Lane *lane, PyObject *data, long long at, const long long numbers[3])
{
    const uint8_t *bytes = (const uint8_t *)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    const long long base = numbers[0], unit = numbers[1], link = numbers[2];
    if (at < 0 || at > size || unit < 1 || unit > 1000) {
        PyErr_SetString(PyExc_ValueError, "there is no packet at this position");
        return NULL;
    }
    long long count = 0;
    Packet packet;
    Step step;
    while (read_record(bytes, size, (Py_ssize_t)at, unit, &packet)) {
        int found = find_step(lane, &packet, &step);
        if (found == LEFT)
            break;
        if (found == FAILED
            || take(lane, &packet, &step, data, base, link) < 0)
            return NULL;
        at = packet.stop;
        count++;
        if (PyList_GET_SIZE(lane->frames) >= FRAMES_MAX)
            break;
    }
    const long long result[] = {at, count};
    return tuple_of(result, 2, NULL);
}

/* follow(data, at, base, unit, link) */
static PyObject *lane_follow(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 5 || !PyBytes_CheckExact(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "a lane follows bytes, by four numbers");
        return NULL;
    }
    long long numbers[4];
    for (int at = 0; at < 4; at++) {
        numbers[at] = PyLong_AsLongLong(arguments[at + 1]);
        if (numbers[at] == -1 && PyErr_Occurred())
            return NULL;
    }
    return follow((Lane *)self, arguments[0], numbers[0], numbers + 1);
}

static int find_slots(Lane *lane)
{
    const struct {
        const char *name;
        Py_ssize_t *offset;
    } slots[] = {
        {"fast_seq", &lane->seq_offset},
        {"need", &lane->need_offset},
        {"parts", &lane->parts_offset},
        {"stamp", &lane->stamp_offset},
        {"feed", &lane->feed_offset},
    };
    for (size_t at = 0; at < sizeof slots / sizeof slots[0]; at++) {
        if ((*slots[at].offset = slot_offset(lane->flow_class, slots[at].name)) < 0)
            return -1;
    }
    return 0;
}

/* Lane(flow_class, flows, remember, frames, marks) */
static PyObject *lane_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *flow_class, *flows, *callable, *frames, *marks = Py_None;
    if (refuse_keywords(keywords, "a lane") < 0)
        return NULL;
    if (!PyArg_ParseTuple(arguments, "O!O!OO!|O", &PyType_Type, &flow_class, &PyDict_Type, &flows,
                          &callable, &PyList_Type, &frames, &marks))
        return NULL;
    if (marks != Py_None && !PyList_CheckExact(marks)) {
        PyErr_SetString(PyExc_TypeError, "a lane marks frames in a list");
        return NULL;
    }
    Lane *lane = (Lane *)type->tp_alloc(type, 0);
    if (lane == NULL)
        return NULL;
    lane->flow_class = (PyTypeObject *)Py_NewRef(flow_class);
    lane->flows = Py_NewRef(flows);
    lane->remember = Py_NewRef(callable);
    lane->frames = Py_NewRef(frames);
    lane->marks = marks == Py_None ? NULL : Py_NewRef(marks);
    if (find_slots(lane) < 0) {
        Py_DECREF(lane);
        return NULL;
    }
    return (PyObject *)lane;
}

static int lane_traverse(PyObject *self, visitproc visit, void *arg)
{
    Lane *lane = (Lane *)self;
    PyObject *held[] = {lane->flows, lane->remember, lane->frames, lane->marks};
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(lane->flow_class);
    for (size_t at = 0; at < sizeof held / sizeof held[0]; at++)
        Py_VISIT(held[at]);
    return 0;
}

static int lane_clear(PyObject *self)
{
    Lane *lane = (Lane *)self;
    Py_CLEAR(lane->flow_class);
    Py_CLEAR(lane->flows);
    Py_CLEAR(lane->remember);
    Py_CLEAR(lane->frames);
    Py_CLEAR(lane->marks);
    return 0;
}

static void lane_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    lane_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef lane_methods[] = {
    {"follow", (PyCFunction)(void (*)(void))lane_follow, METH_FASTCALL,
     "follow(data, at, base, unit, link): after the packets that were taken, and how many."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef lane_members[] = {
    {"payload", T_LONGLONG, offsetof(Lane, payload), READONLY, "Bytes that were taken in all."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot lane_slots[] = {
    {Py_tp_doc, "Packets of a capture that only go on with what their connections are in."},
    {Py_tp_new, lane_new},
    {Py_tp_dealloc, lane_dealloc},
    {Py_tp_traverse, lane_traverse},
    {Py_tp_clear, lane_clear},
    {Py_tp_methods, lane_methods},
    {Py_tp_members, lane_members},
    {0, NULL},
};

PyType_Spec lane_spec = {
    .name = "kraftwire.engine._core.Lane",
    .basicsize = sizeof(Lane),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = lane_slots,
};
