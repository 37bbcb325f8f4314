/* The records of a batch: to rows and to columns, from columns; see read_records.c, read_columns.c,
   write_records.c.

   A record: length, attributes, timestamp delta, offset delta, key, value, headers; lengths and
   deltas are zig-zag varints. Source: Kafka's DefaultRecord. */

#ifndef KRAFTWIRE_RECORDS_H
#define KRAFTWIRE_RECORDS_H

#include "wire.h"

#define SEQUENCE_MASK 0x7FFFFFFF

/* Length, attributes, two deltas, null key, null value, no headers: one byte each. */
#define RECORD_SIZE_MIN 7

/* Two lengths of 0. */
#define HEADER_SIZE_MIN 2

/* A record of more headers is left to Python. The number of kraftwire/records/limits.py. */
#define HEADERS_COUNT_FREE 32768

/* Python's names for what the functions take and return are in _core.pyi. */
PyObject *check_records(PyObject *module, PyObject *arguments);
PyObject *count_within(PyObject *module, PyObject *arguments);
PyObject *read_columns(PyObject *module, PyObject *arguments);
PyObject *read_records(PyObject *module, PyObject *arguments);
PyObject *split_records(PyObject *module, PyObject *rows);
PyObject *write_records(PyObject *module, PyObject *arguments);

/* A length that the bytes can hold; it may be negative. */
static inline int get_size(const uint8_t **p, const uint8_t *end, int64_t *size)
{
    if (get_varint(p, end, 32, size) < 0 || *size > end - *p)
        return -1;
    return 0;
}

/* The same for a key or a value, where -1 stands for none. Python copes with other negative ones. */
static inline int get_cell_size(const uint8_t **p, const uint8_t *end, int64_t *size)
{
    return get_size(p, end, size) < 0 || *size < -1 ? -1 : 0;
}

/* How many headers follow, which is compared with the bytes that are left. */
static inline int get_header_count(const uint8_t **p, const uint8_t *end, int64_t *count)
{
    if (get_varint(p, end, 32, count) < 0 || *count < 0 || *count > (end - *p) / HEADER_SIZE_MIN
        || *count > HEADERS_COUNT_FREE)
        return -1;
    return 0;
}

/* The deltas of a record and the attributes before them, which mean nothing. 63 bits and a usual
   base cannot overflow. */
static inline int get_deltas(const uint8_t **p, const uint8_t *end, int64_t *time, int64_t *offset)
{
    if (*p == end)
        return -1;
    *p += 1;
    return get_varint(p, end, 63, time) < 0 || get_varint(p, end, 32, offset) < 0 ? -1 : 0;
}

/* Whether the bases are so far from the edge that no sum with a delta leaves 64 bits. */
static inline bool has_usual_bases(int64_t base_offset, int64_t base_timestamp)
{
    const int64_t offset_max = INT64_MAX - (1LL << 32), time_max = 1LL << 62;
    return base_offset <= offset_max && base_offset >= -offset_max && base_timestamp <= time_max
           && base_timestamp >= -time_max;
}

#endif
