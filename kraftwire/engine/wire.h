/* The bytes of Kafka's wire format: big-endian numbers, varints, and where a reader or a writer stands.

   Reading takes an explicit end and never looks at a byte at or after it. */

#ifndef KRAFTWIRE_WIRE_H
#define KRAFTWIRE_WIRE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UVARINT_BYTES_MAX 5
#define VARLONG_BYTES_MAX 10

/* Compilers make one load and one byte swap of such a loop, on machines of either byte order. */
static inline uint64_t get_big(const uint8_t *p, int size)
{
    uint64_t value = 0;
    for (int at = 0; at < size; at++)
        value = value << 8 | p[at];
    return value;
}

static inline void put_big(uint8_t *p, uint64_t value, int size)
{
    for (int at = size - 1; at >= 0; at--) {
        p[at] = (uint8_t)value;
        value >>= 8;
    }
}

/* A zero length may come with a null pointer, which memcpy must not be given: the compiler would
   conclude that the pointer is never null and drop later tests of it. */
static inline void copy_bytes(uint8_t *to, const void *from, Py_ssize_t size)
{
    if (size > 0)
        memcpy(to, from, (size_t)size);
}

/* The first bytes of the unsigned varint at *p as a value of up to `bits` bits; -1 if the bytes end
   inside it or the value has more bits. A varint longer than need be is read like any other. */
static inline int get_uvarint(const uint8_t **p, const uint8_t *end, int bits, uint64_t *value)
{
    uint64_t result = 0;
    for (int shift = 0; shift < bits && *p < end; shift += 7) {
        uint64_t byte = *(*p)++;
        uint64_t group = byte & 0x7F;
        if (shift + 7 > bits && group >> (bits - shift))
            return -1;
        result |= group << shift;
        if (byte < 0x80) {
            *value = result;
            return 0;
        }
    }
    return -1;
}

/* The same for zig-zag varints, which the fields of a record are. */
static inline int get_varint(const uint8_t **p, const uint8_t *end, int bits, int64_t *value)
{
    uint64_t raw;
    if (*p < end && **p < 0x80) {
        raw = *(*p)++;
    } else if (end - *p >= 2 && (*p)[1] < 0x80) {
        raw = ((*p)[0] & 0x7F) | (uint64_t)(*p)[1] << 7;
        *p += 2;
    } else if (get_uvarint(p, end, bits, &raw) < 0) {
        return -1;
    }
    *value = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    return 0;
}

static inline uint8_t *put_uvarint(uint8_t *p, uint64_t value)
{
    while (value > 0x7F) {
        *p++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *p++ = (uint8_t)value;
    return p;
}

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int uvarint_size(uint64_t value)
{
    int size = 1;
    while (value >>= 7)
        size++;
    return size;
}

#endif
