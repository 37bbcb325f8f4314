/* Packets of captures, as all functions that walk over them read them; see packets.c. */

#ifndef KRAFTWIRE_PACKETS_H
#define KRAFTWIRE_PACKETS_H

#include "wire.h"

/* Where a walk is, and what the records of its packets are: `interface` is the number of a pcapng
   interface whose packet blocks are read, or -1 for the records of classic pcap, both in little
   endian; `tick_ns` the nanoseconds in a tick of its clock. `base` is the position of the buffer's
   first byte in the capture. */
typedef struct {
    PyObject *data;
    const uint8_t *bytes;
    Py_ssize_t size;
    long long at, base, tick_ns, link, interface;
} Walk;

/* A packet that is older than one before it, by more than this, is left to Python: see
   capture/packets/time_order.py. */
#define DISORDER_NS 1000000

/* Whether a walk ends between two packets, so that the first and the last time of its packets say all:
   where time goes back, and before what may be a pause, of at most PAUSE_NS of capture/recorded.py. */
static inline bool is_pause(long long before_ns, long long after_ns)
{
    return after_ns - before_ns > 500000000 || before_ns > after_ns;
}

/* A packet of TCP over IP that is whole in the capture, and neither opens nor ends a connection: its
   record is from `at` to `stop`, its bytes are from `start` on. `key` are addresses and ports, which
   name a direction of a connection; `count` bytes of payload begin at `begin`. */
typedef struct {
    int64_t time_ns;
    Py_ssize_t at, start, captured, wire, stop;
    const uint8_t *key;
    int key_size;
    uint32_t seq, ack;
    bool has_ack;
    Py_ssize_t begin, count;
} Packet;

/* Reads (data, at, base, tick_ns, link, interface); -1 with an exception for anything else. */
int walk_start(Walk *walk, PyObject *const *arguments, Py_ssize_t count);

/* Whether such a packet is next; then it is read. */
bool walk_next(const Walk *walk, Packet *packet);

/* Python's names for what the functions take and return are in _core.pyi. */
PyObject *index_packets(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *join_ranges(PyObject *module, PyObject *arguments);
PyObject *read_packets(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *read_ranges(PyObject *module, PyObject *arguments);

#endif
