/* The packets that most captures consist of: TCP over IPv4 or IPv6, in the usual links, in the records
   of pcap or pcapng. Everything else is left to Python, which reads these as well. */

#include "packets.h"

#define RECORD_HEADER 16
#define BLOCK_HEADER 28
#define PACKET_BLOCK 6
#define SECOND_NS 1000000000
/* No IP packet is longer, whatever link it came over. */
#define RECORD_BYTES_MAX 0x20000

#define TCP 6
#define TCP_HEADER 20
#define IPV4_HEADER 20
#define IPV6_HEADER 40
/* A tunnel has this in the place of TCP's port. */
#define STT_PORT 7471
/* FIN, SYN and RST. */
#define OPENS_OR_ENDS 7
#define ACKNOWLEDGES 16

static uint32_t little(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int walk_start(Walk *walk, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 6 || !PyBytes_CheckExact(arguments[0])) {
        PyErr_SetString(PyExc_TypeError, "a walk takes bytes and five numbers");
        return -1;
    }
    long long numbers[5];
    for (int at = 0; at < 5; at++) {
        numbers[at] = PyLong_AsLongLong(arguments[at + 1]);
        if (numbers[at] == -1 && PyErr_Occurred())
            return -1;
    }
    walk->data = arguments[0];
    walk->bytes = (const uint8_t *)PyBytes_AS_STRING(walk->data);
    walk->size = PyBytes_GET_SIZE(walk->data);
    walk->at = numbers[0];
    walk->base = numbers[1];
    walk->tick_ns = numbers[2];
    walk->link = numbers[3];
    walk->interface = numbers[4];
    if (walk->at >= 0 && walk->at <= walk->size && walk->tick_ns > 0 && walk->tick_ns <= SECOND_NS)
        return 0;
    PyErr_SetString(PyExc_ValueError, "there is no packet at this position");
    return -1;
}

/* A record of classic pcap. */
static bool read_record(const Walk *walk, Packet *packet)
{
    if (walk->size - walk->at < RECORD_HEADER)
        return false;
    const uint8_t *p = walk->bytes + walk->at;
    packet->time_ns = (int64_t)little(p) * SECOND_NS + (int64_t)little(p + 4) * walk->tick_ns;
    packet->captured = little(p + 8);
    packet->wire = little(p + 12);
    packet->start = packet->at + RECORD_HEADER;
    packet->stop = packet->start + packet->captured;
    return packet->captured <= RECORD_BYTES_MAX && packet->captured <= walk->size - packet->start;
}

/* A packet block of pcapng. */
static bool read_block(const Walk *walk, Packet *packet)
{
    if (walk->size - walk->at < BLOCK_HEADER)
        return false;
    const uint8_t *p = walk->bytes + walk->at;
    Py_ssize_t size = little(p + 4);
    if (little(p) != PACKET_BLOCK || little(p + 8) != walk->interface || size & 3
        || size > RECORD_BYTES_MAX || size > walk->size - walk->at)
        return false;
    uint64_t ticks = (uint64_t)little(p + 12) << 32 | little(p + 16);
    if (ticks > INT64_MAX / (uint64_t)walk->tick_ns)
        return false;
    packet->time_ns = (int64_t)(ticks * (uint64_t)walk->tick_ns);
    packet->captured = little(p + 20);
    packet->wire = little(p + 24);
    packet->start = packet->at + BLOCK_HEADER;
    packet->stop = packet->at + size;
    return packet->captured < size - BLOCK_HEADER;
}

/* Whether the protocol in a link's header is that of IP in this version. */
static bool has_protocol(const uint8_t *p, int version)
{
    return get_big(p, 2) == (version == 4 ? 0x0800u : 0x86DDu);
}

/* Where IP begins in the packet, -1 to leave it to Python. */
static Py_ssize_t network_start(const Walk *walk, const uint8_t *p, Py_ssize_t captured)
{
    Py_ssize_t at = 0, protocol_at = -1;
    switch (walk->link) {
    case 1: /* Ethernet */
        at = 14, protocol_at = 12;
        break;
    case 113: /* Linux cooked */
        at = 16, protocol_at = 14;
        break;
    case 276: /* Linux cooked, version 2 */
        at = 20, protocol_at = 0;
        break;
    case 0: /* BSD loopback */
    case 108:
        at = 4;
        break;
    case 12: /* raw IP */
    case 14:
    case 101:
    case 228:
    case 229:
        break;
    default:
        return -1;
    }
    if (captured <= at || (protocol_at >= 0 && !has_protocol(p + protocol_at, p[at] >> 4)))
        return -1;
    return at;
}

/* Reads TCP's header, which begins at `at`; the packet ends at `end`. */
static bool read_tcp(const uint8_t *p, Py_ssize_t at, Py_ssize_t end, Packet *packet)
{
    if (end - at < TCP_HEADER || p[at + 13] & OPENS_OR_ENDS || get_big(p + at + 2, 2) == STT_PORT)
        return false;
    Py_ssize_t size = 4 * (p[at + 12] >> 4);
    if (size < TCP_HEADER || size > end - at)
        return false;
    packet->seq = (uint32_t)get_big(p + at + 4, 4);
    packet->ack = (uint32_t)get_big(p + at + 8, 4);
    packet->has_ack = p[at + 13] & ACKNOWLEDGES;
    packet->begin = packet->start + at + size;
    packet->count = end - at - size;
    return true;
}

/* IPv4 without options, in one piece: addresses and ports stand side by side. */
static bool read_ipv4(const uint8_t *p, Py_ssize_t at, Packet *packet)
{
    if (packet->captured - at < IPV4_HEADER || p[at] != 0x45 || p[at + 9] != TCP
        || get_big(p + at + 6, 2) & 0x3FFF)
        return false;
    Py_ssize_t total = (Py_ssize_t)get_big(p + at + 2, 2);
    if (total > packet->captured - at || !read_tcp(p, at + IPV4_HEADER, at + total, packet))
        return false;
    packet->key = p + at + 12;
    packet->key_size = 12;
    return true;
}

/* IPv6 without extensions. */
static bool read_ipv6(const uint8_t *p, Py_ssize_t at, Packet *packet)
{
    if (packet->captured - at < IPV6_HEADER || p[at] >> 4 != 6 || p[at + 6] != TCP)
        return false;
    Py_ssize_t length = (Py_ssize_t)get_big(p + at + 4, 2);
    Py_ssize_t start = at + IPV6_HEADER;
    if (!length || length > packet->captured - start
        || !read_tcp(p, start, start + length, packet))
        return false;
    packet->key = p + at + 8;
    packet->key_size = 36;
    return true;
}

bool walk_next(const Walk *walk, Packet *packet)
{
    packet->at = (Py_ssize_t)walk->at;
    if (!(walk->interface < 0 ? read_record(walk, packet) : read_block(walk, packet)))
        return false;
    const uint8_t *p = walk->bytes + packet->start;
    Py_ssize_t at = network_start(walk, p, packet->captured);
    return at >= 0 && (p[at] >> 4 == 4 ? read_ipv4(p, at, packet) : read_ipv6(p, at, packet));
}

/* read_packets(data, at, base, tick_ns, link, interface, to) */
PyObject *read_packets(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    Walk walk;
    Packet packet;
    if (count < 1) {
        PyErr_SetString(PyExc_TypeError, "expected where packets are, and where they end");
        return NULL;
    }
    long long to = PyLong_AsLongLong(arguments[count - 1]);
    if ((to == -1 && PyErr_Occurred()) || walk_start(&walk, arguments, count - 1) < 0)
        return NULL;
    PyObject *found = PyList_New(0);
    while (found != NULL && walk.at < to && walk_next(&walk, &packet)) {
        PyObject *item = Py_BuildValue(
            "(LLOnnnLnn)", (long long)packet.time_ns, walk.link, walk.data, packet.start,
            packet.captured, packet.wire, walk.base, packet.at, packet.stop);
        if (item == NULL || PyList_Append(found, item) < 0)
            Py_CLEAR(found);
        Py_XDECREF(item);
        walk.at = packet.stop;
    }
    return found;
}
