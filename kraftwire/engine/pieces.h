/* Long values of a message, copied once, when the length of the whole is known. The rest of the
   message is in an Output meanwhile. */

#ifndef KRAFTWIRE_PIECES_H
#define KRAFTWIRE_PIECES_H

#include "output.h"

/* Smaller values cost less to copy twice than to note: measured, that is so up to about 700 bytes. */
#define PIECE_SIZE_MIN 1024

/* `data` (borrowed) belongs before byte `at` of the output. */
typedef struct {
    Py_ssize_t at, size;
    const void *data;
} Piece;

/* In ascending order. `total` is the sum of their sizes. */
typedef struct {
    Piece *items;
    Py_ssize_t count, capacity, total;
} Pieces;

void pieces_start(Pieces *pieces);

/* Add a piece at the end of the output. 0, or -1 if there is no memory. The bytes must neither move
   nor change before pieces_finish. */
int pieces_add(Pieces *pieces, const Output *out, const void *data, Py_ssize_t size);

/* Say that the output before the pieces from `first` on has grown by some bytes. */
void pieces_move(Pieces *pieces, Py_ssize_t first, int by);

/* A new bytes object of the output and the pieces, or NULL without memory; the output may be used up. */
PyObject *pieces_finish(const Pieces *pieces, Output *out);

void pieces_drop(Pieces *pieces);

#endif
