/* Long values that are copied at the end; see pieces.h. */

#include "pieces.h"

#define CAPACITY_FIRST 16

void pieces_start(Pieces *pieces)
{
    *pieces = (Pieces){NULL, 0, 0, 0};
}

static int pieces_grow(Pieces *pieces)
{
    Py_ssize_t capacity = Py_MAX(2 * pieces->capacity, CAPACITY_FIRST);
    Piece *items = PyMem_Realloc(pieces->items, (size_t)capacity * sizeof *items);
    if (items == NULL)
        return -1;
    pieces->items = items;
    pieces->capacity = capacity;
    return 0;
}

/* A message may name the same bytes often, so the total is checked. It also bounds the count. */
int pieces_add(Pieces *pieces, const Output *out, const void *data, Py_ssize_t size)
{
    if (size > PY_SSIZE_T_MAX / 4 - pieces->total)
        return -1;
    if (pieces->count == pieces->capacity && pieces_grow(pieces) < 0)
        return -1;
    pieces->items[pieces->count++] = (Piece){out->p - out->start, size, data};
    pieces->total += size;
    return 0;
}

void pieces_move(Pieces *pieces, Py_ssize_t first, int by)
{
    for (Py_ssize_t at = first; at < pieces->count; at++)
        pieces->items[at].at += by;
}

PyObject *pieces_finish(const Pieces *pieces, Output *out)
{
    if (pieces->count == 0)
        return output_finish(out);
    Py_ssize_t used = out->p - out->start;
    PyObject *result = PyBytes_FromStringAndSize(NULL, used + pieces->total);
    if (result == NULL)
        return NULL;
    uint8_t *to = (uint8_t *)PyBytes_AS_STRING(result);
    Py_ssize_t from = 0;
    for (const Piece *piece = pieces->items; piece < pieces->items + pieces->count; piece++) {
        copy_bytes(to, out->start + from, piece->at - from);
        to += piece->at - from;
        from = piece->at;
        copy_bytes(to, piece->data, piece->size);
        to += piece->size;
    }
    copy_bytes(to, out->start + from, used - from);
    return result;
}

void pieces_drop(Pieces *pieces)
{
    PyMem_Free(pieces->items);
}
