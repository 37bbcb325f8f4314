/* Columns of records as Arrow lays them out in memory, while they grow. */

#ifndef KRAFTWIRE_COLUMNS_H
#define KRAFTWIRE_COLUMNS_H

#include "output.h"

/* Cells of any size: the end of each (int32, after a leading 0), their bytes, and from the first
   null on a bitmap of those that are present. */
typedef struct {
    Output ends, present, data;
    Py_ssize_t count, nulls;
} Cells;

typedef struct {
    Output batch, offset, timestamp, sequence, header_ends;
    Cells key, value, header_name, header_value;
    Py_ssize_t rows;
} Columns;

/* Sizes of cells and of all columns at some moment, to cut them back to. */
typedef struct {
    Py_ssize_t count, nulls, size;
} CellsMark;

typedef struct {
    CellsMark key, value, header_name, header_value;
    Py_ssize_t rows;
} Mark;

/* Append a number in the machine's own byte order. There is room. */
static inline void put_int32(Output *out, int32_t value)
{
    memcpy(out->p, &value, sizeof value);
    out->p += sizeof value;
}

static inline void put_int64(Output *out, int64_t value)
{
    memcpy(out->p, &value, sizeof value);
    out->p += sizeof value;
}

/* Shorter cells are copied as this many bytes, which compilers do without a call of memcpy. */
#define CELL_BYTES_SMALL 16

int cells_note(Cells *cells, bool is_there);

/* Append a cell of `size` bytes, or a null if that is negative. Bytes up to `limit` may be read.
   There is room for where it ends. */
static inline int put_cell(Cells *cells, const uint8_t *data, int64_t size, const uint8_t *limit)
{
    /* The bitmap begins with the first null. */
    if ((size < 0 || cells->nulls) && cells_note(cells, size >= 0) < 0)
        return -1;
    cells->count++;
    if (size > 0) {
        if (output_reserve(&cells->data, size + CELL_BYTES_SMALL) < 0)
            return -1;
        if (size <= CELL_BYTES_SMALL && limit - data >= CELL_BYTES_SMALL)
            memcpy(cells->data.p, data, CELL_BYTES_SMALL);
        else
            memcpy(cells->data.p, data, (size_t)size);
        cells->data.p += size;
    }
    if (cells->data.p - cells->data.start > INT32_MAX)
        return -1;
    put_int32(&cells->ends, (int32_t)(cells->data.p - cells->data.start));
    return 0;
}

int columns_start(Columns *columns, Py_ssize_t rows_max, Py_ssize_t bytes);
PyObject *columns_finish(Columns *columns);
void columns_drop(Columns *columns);
Mark columns_mark(const Columns *columns);
void columns_cut(Columns *columns, const Mark *mark);

#endif
