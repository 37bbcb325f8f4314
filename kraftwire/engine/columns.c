/* The life of growing columns, from the first row to Arrow's buffers; see columns.h. */

#include "columns.h"

/* Note in the bitmap whether the next cell is there; all before the first null are. */
int cells_note(Cells *cells, bool is_there)
{
    Output *bits = &cells->present;
    Py_ssize_t missing = cells->count / 8 + 1 - (bits->p - bits->start);
    if (missing > 0) {
        if (output_reserve(bits, missing) < 0)
            return -1;
        memset(bits->p, 0xFF, (size_t)missing);
        bits->p += missing;
    }
    if (!is_there) {
        bits->start[cells->count / 8] &= (uint8_t)~(1 << (cells->count & 7));
        cells->nulls++;
    }
    return 0;
}

static CellsMark mark_cells(const Cells *cells)
{
    return (CellsMark){cells->count, cells->nulls, cells->data.p - cells->data.start};
}

Mark columns_mark(const Columns *columns)
{
    return (Mark){mark_cells(&columns->key), mark_cells(&columns->value),
                  mark_cells(&columns->header_name), mark_cells(&columns->header_value),
                  columns->rows};
}

static void cut_cells(Cells *cells, CellsMark mark)
{
    cells->count = mark.count;
    cells->nulls = mark.nulls;
    cells->ends.p = cells->ends.start + 4 * (mark.count + 1);
    cells->data.p = cells->data.start + mark.size;
    cells->present.p = cells->present.start + (mark.nulls ? (mark.count + 7) / 8 : 0);
    /* A cell that comes here next is there until something else is noted. */
    if (mark.nulls && mark.count & 7)
        cells->present.p[-1] |= (uint8_t)~((1 << (mark.count & 7)) - 1);
}

/* Forget what came after a mark. */
void columns_cut(Columns *columns, const Mark *mark)
{
    cut_cells(&columns->key, mark->key);
    cut_cells(&columns->value, mark->value);
    cut_cells(&columns->header_name, mark->header_name);
    cut_cells(&columns->header_value, mark->header_value);
    columns->rows = mark->rows;
    columns->batch.p = columns->batch.start + 4 * mark->rows;
    columns->offset.p = columns->offset.start + 8 * mark->rows;
    columns->timestamp.p = columns->timestamp.start + 8 * mark->rows;
    columns->sequence.p = columns->sequence.start + 4 * mark->rows;
    columns->header_ends.p = columns->header_ends.start + 4 * (mark->rows + 1);
}

static void start_cells(Cells *cells)
{
    output_start(&cells->ends);
    output_start(&cells->present);
    output_start(&cells->data);
    cells->count = cells->nulls = 0;
    put_int32(&cells->ends, 0);
}

/* Room for `rows_max` rows, and for `bytes` in all values; keys and headers grow. */
int columns_start(Columns *columns, Py_ssize_t rows_max, Py_ssize_t bytes)
{
    start_cells(&columns->key);
    start_cells(&columns->value);
    start_cells(&columns->header_name);
    start_cells(&columns->header_value);
    columns->rows = 0;
    output_start(&columns->batch);
    output_start(&columns->offset);
    output_start(&columns->timestamp);
    output_start(&columns->sequence);
    output_start(&columns->header_ends);
    put_int32(&columns->header_ends, 0);
    return output_reserve(&columns->batch, 4 * rows_max) < 0
                   || output_reserve(&columns->offset, 8 * rows_max) < 0
                   || output_reserve(&columns->timestamp, 8 * rows_max) < 0
                   || output_reserve(&columns->sequence, 4 * rows_max) < 0
                   || output_reserve(&columns->header_ends, 4 * rows_max) < 0
                   || output_reserve(&columns->key.ends, 4 * rows_max) < 0
                   || output_reserve(&columns->value.ends, 4 * rows_max) < 0
                   || output_reserve(&columns->value.data, bytes) < 0
               ? -1
               : 0;
}

static void drop_cells(Cells *cells)
{
    output_drop(&cells->ends);
    output_drop(&cells->present);
    output_drop(&cells->data);
}

void columns_drop(Columns *columns)
{
    drop_cells(&columns->key);
    drop_cells(&columns->value);
    drop_cells(&columns->header_name);
    drop_cells(&columns->header_value);
    output_drop(&columns->batch);
    output_drop(&columns->offset);
    output_drop(&columns->timestamp);
    output_drop(&columns->sequence);
    output_drop(&columns->header_ends);
}

/* The buffers of some cells: bitmap or None, ends, bytes. NULL without memory, as below. */
static PyObject *finish_cells(Cells *cells)
{
    PyObject *present = cells->nulls ? output_finish(&cells->present) : Py_NewRef(Py_None);
    PyObject *ends = output_finish(&cells->ends);
    PyObject *data = output_finish(&cells->data);
    if (present != NULL && ends != NULL && data != NULL)
        return Py_BuildValue("NNN", present, ends, data);
    Py_XDECREF(present);
    Py_XDECREF(ends);
    Py_XDECREF(data);
    return NULL;
}

/* The headers, None where there are none: ends of each row's, names, values. */
static PyObject *finish_headers(Columns *columns)
{
    if (columns->header_name.count == 0)
        Py_RETURN_NONE;
    PyObject *ends = output_finish(&columns->header_ends);
    PyObject *names = finish_cells(&columns->header_name);
    PyObject *values = finish_cells(&columns->header_value);
    if (ends != NULL && names != NULL && values != NULL)
        return Py_BuildValue("NNNn", ends, names, values, columns->header_name.count);
    Py_XDECREF(ends);
    Py_XDECREF(names);
    Py_XDECREF(values);
    return NULL;
}

PyObject *columns_finish(Columns *columns)
{
    PyObject *parts[] = {
        output_finish(&columns->batch),      output_finish(&columns->offset),
        output_finish(&columns->timestamp), output_finish(&columns->sequence),
        finish_cells(&columns->key),        finish_cells(&columns->value),
        finish_headers(columns),
    };
    const int count = sizeof parts / sizeof *parts;
    bool is_whole = true;
    for (int at = 0; at < count; at++)
        is_whole = is_whole && parts[at] != NULL;
    PyObject *result = is_whole ? PyTuple_New(count) : NULL;
    for (int at = 0; at < count; at++)
        if (result == NULL)
            Py_XDECREF(parts[at]);
        else
            PyTuple_SET_ITEM(result, at, parts[at]);
    return result;
}
