/* Which connection packets belong to, and what all of each direction's packets come to: the index of a
   capture, from which connections are read one by one (kraftwire/spark/captures/packet_index.py). */

#include "packets.h"
#include "slots.h"

/* Runs of consecutive packets of a connection: lists of the connections' numbers, of positions in the
   capture, and of sizes. The last run is kept apart: it may still grow. */
typedef struct {
    PyObject *numbers, *starts, *sizes;
    long long number, start, size;
} Runs;

/* The places of attributes in directions. */
typedef struct {
    Py_ssize_t number, packets, size, payload, last_ns, awaited;
} Places;

static int add(PyObject *list, long long value)
{
    PyObject *item = PyLong_FromLongLong(value);
    int result = item == NULL ? -1 : PyList_Append(list, item);
    Py_XDECREF(item);
    return result;
}

static int end_run(Runs *runs)
{
    if (runs->size == 0)
        return 0;
    if (add(runs->numbers, runs->number) < 0 || add(runs->starts, runs->start) < 0)
        return -1;
    return add(runs->sizes, runs->size);
}

static int add_packet(Runs *runs, long long number, long long position, long long size,
                      long long size_max)
{
    if (number == runs->number && runs->size > 0 && runs->size < size_max) {
        runs->size += size;
        return 0;
    }
    int result = end_run(runs);
    runs->number = number;
    runs->start = position;
    runs->size = size;
    return result;
}

static long long number_at(PyObject *object, Py_ssize_t offset)
{
    PyObject *value = *slot(object, offset);
    return value != NULL && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
}

static int put_number(PyObject *object, Py_ssize_t offset, long long value)
{
    PyObject *fresh = PyLong_FromLongLong(value);
    if (fresh == NULL)
        return -1;
    Py_XSETREF(*slot(object, offset), fresh);
    return 0;
}

static int add_number(PyObject *object, Py_ssize_t offset, long long value)
{
    return value == 0 ? 0 : put_number(object, offset, number_at(object, offset) + value);
}

/* 1 if Python wants to read the payload: it begins like a request that says something about others, or
   may be the response to one. */
static int is_informative(const Walk *walk, const Packet *packet, PyObject *direction,
                          const Places *places, PyObject *informative)
{
    PyObject *awaited = *slot(direction, places->awaited);
    if (packet->count == 0)
        return 0;
    if (awaited == NULL || PyObject_Length(awaited) != 0)
        return 1;
    if (packet->count < 8)
        return 0;
    PyObject *api = PyBytes_FromStringAndSize((const char *)walk->bytes + packet->begin + 4, 4);
    int result = api == NULL ? -1 : PySet_Contains(informative, api);
    Py_XDECREF(api);
    return result;
}

/* The direction of a packet (borrowed) if nobody has to look at it; NULL if Python does, or on failure. */
static PyObject *direction_of(const Walk *walk, const Packet *packet, PyObject *directions,
                              PyTypeObject *class, const Places *places, PyObject *informative)
{
    PyObject *key = PyBytes_FromStringAndSize((const char *)packet->key, packet->key_size);
    if (key == NULL)
        return NULL;
    PyObject *direction = PyDict_GetItemWithError(directions, key);
    Py_DECREF(key);
    if (direction == NULL || Py_TYPE(direction) != class)
        return NULL;
    return is_informative(walk, packet, direction, places, informative) ? NULL : direction;
}

static int find_places(PyTypeObject *class, Places *places)
{
    places->number = slot_offset(class, "number");
    places->packets = slot_offset(class, "packets");
    places->size = slot_offset(class, "size");
    places->payload = slot_offset(class, "payload");
    places->last_ns = slot_offset(class, "last_ns");
    places->awaited = slot_offset(class, "awaited");
    return PyErr_Occurred() ? -1 : 0;
}

/* Adds packets to runs as long as nobody has to look at them; how many, -1 on failure. */
static long long walk_on(Walk *walk, Runs *runs, PyObject *directions, PyTypeObject *class,
                         PyObject *informative, long long size_max, long long *first_ns,
                         long long *time_ns)
{
    Places places;
    Packet packet;
    long long count = 0;
    if (find_places(class, &places) < 0)
        return -1;
    while (walk_next(walk, &packet) && !(count && is_pause(*time_ns, packet.time_ns))) {
        PyObject *direction =
            direction_of(walk, &packet, directions, class, &places, informative);
        if (direction == NULL)
            break;
        Py_ssize_t size = packet.stop - packet.at;
        int result = add_number(direction, places.packets, 1);
        result |= add_number(direction, places.size, size);
        result |= add_number(direction, places.payload, packet.count);
        result |= put_number(direction, places.last_ns, packet.time_ns);
        result |= add_packet(runs, number_at(direction, places.number), walk->base + packet.at,
                             size, size_max);
        if (result < 0)
            return -1;
        walk->at = packet.stop;
        if (!count)
            *first_ns = packet.time_ns;
        *time_ns = packet.time_ns;
        count++;
    }
    return PyErr_Occurred() || end_run(runs) < 0 ? -1 : count;
}

/* index_packets(data, at, base, tick_ns, link, interface, directions, class, informative, run_bytes) */
PyObject *index_packets(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Walk walk;
    if (count != 10 || walk_start(&walk, arguments, 6) < 0 || !PyDict_Check(arguments[6])
        || !PyType_Check(arguments[7]) || !PyAnySet_Check(arguments[8])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected a walk, a dict, a class, a set and a number");
        return NULL;
    }
    long long size_max = PyLong_AsLongLong(arguments[9]);
    long long first_ns = 0, time_ns = 0, taken = -1;
    if (size_max == -1 && PyErr_Occurred())
        return NULL;
    Runs runs = {PyList_New(0), PyList_New(0), PyList_New(0), 0, 0, 0};
    if (runs.numbers != NULL && runs.starts != NULL && runs.sizes != NULL)
        taken = walk_on(&walk, &runs, arguments[6], (PyTypeObject *)arguments[7], arguments[8],
                        size_max, &first_ns, &time_ns);
    PyObject *result = NULL;
    if (taken >= 0)
        result = Py_BuildValue("(LLLL(OOO))", walk.at, taken, first_ns, time_ns, runs.numbers,
                               runs.starts, runs.sizes);
    Py_XDECREF(runs.numbers);
    Py_XDECREF(runs.starts);
    Py_XDECREF(runs.sizes);
    return result;
}
