/* The packets that hold the next bytes of a known direction: most of a capture.

   Bytes inside a frame are kept, those that begin or end one go to frames.c. There is no state here but
   that in the attributes of Python's objects, so any packet can be left to the loop in
   kraftwire/capture/capture.py. */

#include "in_order.h"

#include "frames.h"
#include "packets.h"

#include <stddef.h>
#include <structmember.h>

/* The walk pauses when this many frames wait, or a long one. */
#define FRAMES_MAX 64
#define LONG_FRAME (64 * 1024)

/* Keeps bytes that do not complete the frame that they are in. */
static int add_part(const InOrder *in, PyObject *flow, const char *from, Py_ssize_t count,
                    Py_ssize_t need, Stamp stamp)
{
    PyObject *part = PyBytes_FromStringAndSize(from, count);
    PyObject *tuple = stamp_tuple(stamp);
    PyObject *parts = AT(flow, FLOW_parts);
    int result = -1;
    /* A list of another class drops what it is given. */
    if (part != NULL && tuple != NULL && PyList_CheckExact(parts))
        result = PyList_Append(parts, part);
    else if (part != NULL && tuple != NULL)
        result = done(PyObject_CallMethod(parts, "append", "O", part));
    if (result == 0)
        result = set_number(in, flow, FLOW_need, need - count);
    if (result == 0)
        set(in, flow, FLOW_stamp, tuple);
    Py_XDECREF(part);
    Py_XDECREF(tuple);
    return result;
}

/* The direction of a packet (borrowed) if it is the next one there; NULL if not, or on failure. */
static PyObject *flow_of(const InOrder *in, const Packet *packet)
{
    PyObject *key = PyBytes_FromStringAndSize((const char *)packet->key, packet->key_size);
    if (key == NULL)
        return NULL;
    PyObject *flow = PyDict_GetItemWithError(in->flows, key);
    Py_DECREF(key);
    if (flow == NULL || !PyObject_TypeCheck(flow, (PyTypeObject *)in->classes[FLOW])
        || number(in, flow, FLOW_fast_seq) != (long long)packet->seq)
        return NULL;
    return flow;
}

/* Notes how far the sender of a packet has the other direction: see `Flow.note_ack`. */
static int note_ack(const InOrder *in, PyObject *flow, const Packet *packet)
{
    long long before = number(in, flow, FLOW_ack);
    if (before < 0 && set_number(in, flow, FLOW_first_ack, packet->ack) < 0)
        return -1;
    uint32_t step = packet->ack - (uint32_t)before;
    return before < 0 || (step > 1 && step < 0x80000000)
               ? set_number(in, flow, FLOW_ack, packet->ack) : 0;
}

static int take(InOrder *in, PyObject *flow, const Walk *walk, const Packet *packet)
{
    const Py_ssize_t need = (Py_ssize_t)number(in, flow, FLOW_need);
    const Py_ssize_t start = packet->begin, count = packet->count;
    const Stamp stamp = {packet->time_ns, walk->base + packet->at, walk->base + packet->stop};
    in->payload += count;
    if (set_number(in, flow, FLOW_fast_seq, (uint32_t)(packet->seq + (uint32_t)count)) < 0)
        return -1;
    if (count < need)
        return add_part(in, flow, (const char *)walk->bytes + start, count, need, stamp);
    return take_frames(in, flow, walk->data, start, start + count, need, stamp);
}

/* Whether enough frames wait to be passed on. */
static bool is_time_to_pause(const InOrder *in)
{
    Py_ssize_t count = PyList_GET_SIZE(in->frames);
    return count >= FRAMES_MAX
           || (count > 0
               && number(in, PyList_GET_ITEM(in->frames, count - 1), FRAME_size) >= LONG_FRAME);
}

/* follow(data, at, base, tick_ns, link, interface) */
static PyObject *in_order_follow(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
    InOrder *in = (InOrder *)self;
    long long taken = 0;
    Walk walk;
    Packet packet;
    if (walk_start(&walk, arguments, count) < 0)
        return NULL;
    long long first_ns = 0, time_ns = 0;
    bool is_over = false;
    while (!is_over && walk_next(&walk, &packet)) {
        PyObject *flow = flow_of(in, &packet);
        if (flow == NULL || (taken && is_pause(time_ns, packet.time_ns))
            || packet.time_ns < in->latest_ns - DISORDER_NS)
            break;
        if (packet.time_ns > in->latest_ns)
            in->latest_ns = packet.time_ns;
        if (packet.has_ack && note_ack(in, flow, &packet) < 0)
            return NULL;
        if (packet.count > 0) {
            Py_INCREF(flow);
            int result = take(in, flow, &walk, &packet);
            Py_DECREF(flow);
            if (result < 0)
                return NULL;
            is_over = is_time_to_pause(in);
        }
        if (!taken)
            first_ns = packet.time_ns;
        taken++;
        walk.at = packet.stop;
        time_ns = packet.time_ns;
    }
    if (PyErr_Occurred())
        return NULL;
    return Py_BuildValue("(LLLL)", walk.at, taken, first_ns, time_ns);
}

/* Finds the places of attributes, and makes the texts. */
static int prepare(InOrder *in)
{
    static const struct {
        int class;
        const char *name;
    } attributes[] = {
#define NAME_OF(class, name) {class, #name},
        ATTRIBUTES(NAME_OF)
    };
    for (int at = 0; at < CLASSES; at++) {
        if (!PyType_Check(in->classes[at])) {
            PyErr_SetString(PyExc_TypeError, "expected a class");
            return -1;
        }
    }
    for (int at = 0; at < ATTRIBUTE_COUNT; at++) {
        PyTypeObject *class = (PyTypeObject *)in->classes[attributes[at].class];
        in->offsets[at] = slot_offset(class, attributes[at].name);
        if (in->offsets[at] < 0)
            return -1;
    }
    static const char *const texts[] = {"request", "response", "rpc"};
    for (int at = 0; at < TEXTS; at++) {
        in->texts[at] = PyUnicode_InternFromString(texts[at]);
        if (in->texts[at] == NULL)
            return -1;
    }
    in->nothing = PyTuple_New(0);
    in->feed = PyObject_GetAttrString(in->classes[READER], "feed");
    return in->nothing == NULL || in->feed == NULL ? -1 : 0;
}

/* InOrder(classes, flows, frame_queue, frames, frame_size_max, counted_size_min) */
static PyObject *in_order_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    PyObject *classes, *flows, *queue, *frames;
    long long size_max, counted;
    if (refuse_keywords(keywords, "the loop over packets in order") < 0
        || !PyArg_ParseTuple(arguments, "O!O!OO!LL", &PyTuple_Type, &classes, &PyDict_Type, &flows,
                             &queue, &PyList_Type, &frames, &size_max, &counted))
        return NULL;
    if (PyTuple_GET_SIZE(classes) != CLASSES) {
        PyErr_Format(PyExc_TypeError, "expected %d classes", CLASSES);
        return NULL;
    }
    InOrder *in = (InOrder *)type->tp_alloc(type, 0);
    if (in == NULL)
        return NULL;
    for (int at = 0; at < CLASSES; at++)
        in->classes[at] = Py_NewRef(PyTuple_GET_ITEM(classes, at));
    in->flows = Py_NewRef(flows);
    in->queue = Py_NewRef(queue);
    in->frame_size_max = size_max;
    in->counted_size_min = counted;
    in->frames = Py_NewRef(frames);
    in->packed = -1;
    if (prepare(in) < 0) {
        Py_DECREF(in);
        return NULL;
    }
    return (PyObject *)in;
}

static int in_order_traverse(PyObject *self, visitproc visit, void *arg)
{
    InOrder *in = (InOrder *)self;
    Py_VISIT(Py_TYPE(self));
    for (int at = 0; at < CLASSES; at++)
        Py_VISIT(in->classes[at]);
    PyObject *held[] = {in->flows, in->queue, in->frames, in->file, in->feed};
    for (size_t at = 0; at < sizeof held / sizeof held[0]; at++)
        Py_VISIT(held[at]);
    return 0;
}

static int in_order_clear(PyObject *self)
{
    InOrder *in = (InOrder *)self;
    for (int at = 0; at < CLASSES; at++)
        Py_CLEAR(in->classes[at]);
    for (int at = 0; at < TEXTS; at++)
        Py_CLEAR(in->texts[at]);
    Py_CLEAR(in->flows);
    Py_CLEAR(in->queue);
    Py_CLEAR(in->frames);
    Py_CLEAR(in->file);
    Py_CLEAR(in->feed);
    Py_CLEAR(in->nothing);
    return 0;
}

static void in_order_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    in_order_clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef in_order_methods[] = {
    {"follow", (PyCFunction)(void (*)(void))in_order_follow, METH_FASTCALL,
     "follow(data, at, base, tick_ns, link, interface): where the packets end that were taken, "
     "how many those are, and the times of the first and the last one."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef in_order_members[] = {
    {"payload", T_LONGLONG, offsetof(InOrder, payload), READONLY, "Bytes that were taken in all."},
    {"file", T_OBJECT, offsetof(InOrder, file), 0, "The file that packets come from."},
    {"offset", T_LONGLONG, offsetof(InOrder, offset), 0, "Where it begins, in all of a series."},
    {"packed", T_LONGLONG, offsetof(InOrder, packed), 0, "Its size, if it is compressed; else -1."},
    {"latest_ns", T_LONGLONG, offsetof(InOrder, latest_ns), 0, "The latest time of a packet so far."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot in_order_slots[] = {
    {Py_tp_doc, "Packets that hold the next bytes of their direction, and the frames in them."},
    {Py_tp_new, in_order_new},
    {Py_tp_dealloc, in_order_dealloc},
    {Py_tp_traverse, in_order_traverse},
    {Py_tp_clear, in_order_clear},
    {Py_tp_methods, in_order_methods},
    {Py_tp_members, in_order_members},
    {0, NULL},
};

PyType_Spec in_order_spec = {
    .name = "kraftwire.engine._core.InOrder",
    .basicsize = sizeof(InOrder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = in_order_slots,
};
