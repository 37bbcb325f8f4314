/* Reads the records of magic 2 batches into columns, laid out as the buffers of Arrow's arrays.

   The header of a batch is in the buffer; its records are behind it or, decompressed, in bytes of
   their own. The columns hold all batches, one after the other. The walk stops after
   a number of rows or bytes, also inside a batch, and returns its position, so that the next call
   continues there. It also stops at a batch that Python has to read, with none of it in the columns
   except what an earlier call has returned. */

#include "columns.h"
#include "records.h"
#include "threads.h"

/* Positions of the fields of a batch header that are read. */
#define BATCH_LENGTH_AT 8
#define BATCH_LENGTH_FROM 12
#define MAGIC_AT 16
#define ATTRIBUTES_AT 21
#define BASE_TIMESTAMP_AT 27
#define MAX_TIMESTAMP_AT 35
#define BASE_SEQUENCE_AT 53
#define COUNT_AT 57
#define BATCH_HEADER_SIZE 61

#define MAGIC 2
#define CODEC_MASK 0x07
#define STAMPED 0x08

/* Limits of a call: offsets into the bytes of a column have 32 bits. */
#define ROWS_MAX (1 << 24)
#define BYTES_MAX (1 << 28)

/* The records of a batch, and the facts in its header. */
typedef struct {
    const uint8_t *p, *end;
    int64_t base_offset, base_timestamp, append_time;
    int32_t base_sequence, count, number;
    bool is_stamped;
} Batch;

/* The arguments from Python; `positions` and `numbers` have one element for each batch, `sections`
   (held) has bytes or None for each. */
typedef struct {
    const uint8_t *buffer;
    Py_ssize_t size, batches, rows_max, bytes_max;
    const int64_t *positions;
    const int32_t *numbers;
    PyObject *sections;
} Given;

/* The position of a walk: record `index` of a batch, `at` bytes after its first record. */
typedef struct {
    Py_ssize_t batch, index, at;
} Place;

/* `limit` is the end of the batch. */
static inline int take_cell(
    Cells *cells, const uint8_t **p, const uint8_t *end, const uint8_t *limit)
{
    int64_t size;
    if (get_cell_size(p, end, &size) < 0 || put_cell(cells, *p, size, limit) < 0)
        return -1;
    *p += size > 0 ? size : 0;
    return 0;
}

/* Whether some bytes are UTF-8. If not, an exception is set, and creating that may have run a
   collection: nothing that Python gave may be looked at from then on. */
static bool is_text(const uint8_t *data, int64_t size)
{
    int64_t at = 0;
    while (at < size && data[at] < 0x80)
        at++;
    if (at == size)
        return true;
    PyObject *text = PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)size, NULL);
    Py_XDECREF(text);
    return text != NULL;
}

/* The headers of a record. A name that is not UTF-8 is left to Python. */
static int take_headers(
    Columns *columns, const uint8_t **p, const uint8_t *end, const uint8_t *limit)
{
    int64_t count, size;
    if (get_header_count(p, end, &count) < 0 || columns->header_name.count > INT32_MAX - count)
        return -1;
    while (count-- > 0) {
        if (output_reserve(&columns->header_name.ends, 4) < 0
            || output_reserve(&columns->header_value.ends, 4) < 0
            || get_size(p, end, &size) < 0 || size < 0 || !is_text(*p, size)
            || put_cell(&columns->header_name, *p, size, limit) < 0)
            return -1;
        *p += size;
        if (take_cell(&columns->header_value, p, end, limit) < 0)
            return -1;
    }
    put_int32(&columns->header_ends, (int32_t)columns->header_name.count);
    return 0;
}

/* One record. Columns of numbers have room for it. */
static int take_record(Columns *columns, Batch *batch)
{
    int64_t size, time_delta, offset_delta;
    if (get_size(&batch->p, batch->end, &size) < 0 || size < 0)
        return -1;
    const uint8_t *p = batch->p, *end = p + size;
    if (get_deltas(&p, end, &time_delta, &offset_delta) < 0)
        return -1;
    put_int32(&columns->batch, batch->number);
    put_int64(&columns->offset, batch->base_offset + offset_delta);
    put_int64(&columns->timestamp,
              batch->is_stamped ? batch->append_time : batch->base_timestamp + time_delta);
    put_int32(&columns->sequence,
              batch->base_sequence < 0
                  ? -1
                  : (int32_t)((batch->base_sequence + offset_delta) & SEQUENCE_MASK));
    columns->rows++;
    if (take_cell(&columns->key, &p, end, batch->end) < 0
        || take_cell(&columns->value, &p, end, batch->end) < 0
        || take_headers(columns, &p, end, batch->end) < 0)
        return -1;
    batch->p = p;
    return p == end ? 0 : -1;
}

/* The batch with a number, or -1 if Python has to read it. */
static int open_batch(const Given *given, Py_ssize_t number, Batch *batch)
{
    int64_t position = given->positions[number];
    if (position < 0 || position > given->size - BATCH_HEADER_SIZE)
        return -1;
    const uint8_t *header = given->buffer + position;
    int64_t length = (int32_t)get_big(header + BATCH_LENGTH_AT, 4);
    if (header[MAGIC_AT] != MAGIC || length < BATCH_HEADER_SIZE - BATCH_LENGTH_FROM
        || length > given->size - position - BATCH_LENGTH_FROM)
        return -1;
    int attributes = (int)get_big(header + ATTRIBUTES_AT, 2);
    batch->p = header + BATCH_HEADER_SIZE;
    batch->end = header + BATCH_LENGTH_FROM + length;
    PyObject *section = PySequence_Fast_GET_ITEM(given->sections, number);
    if (PyBytes_CheckExact(section)) {
        batch->p = (const uint8_t *)PyBytes_AS_STRING(section);
        batch->end = batch->p + PyBytes_GET_SIZE(section);
    } else if (section != Py_None || attributes & CODEC_MASK) {
        return -1;
    }
    batch->base_offset = (int64_t)get_big(header, 8);
    batch->base_timestamp = (int64_t)get_big(header + BASE_TIMESTAMP_AT, 8);
    batch->append_time = (int64_t)get_big(header + MAX_TIMESTAMP_AT, 8);
    batch->is_stamped = (attributes & STAMPED) != 0;
    batch->base_sequence = (int32_t)get_big(header + BASE_SEQUENCE_AT, 4);
    batch->count = (int32_t)get_big(header + COUNT_AT, 4);
    batch->number = given->numbers[number];
    if (batch->count < 0 || batch->count > (batch->end - batch->p) / RECORD_SIZE_MIN)
        return -1;
    return has_usual_bases(batch->base_offset, batch->base_timestamp) ? 0 : -1;
}

/* Read records from a place on, until a bound is reached or the batch ends; `index` and `at` of the
   place advance. 0, or -1 if Python has to read the batch. */
static int take_batch(Columns *columns, const Given *given, Place *place, Py_ssize_t *bytes)
{
    Batch batch;
    if (open_batch(given, place->batch, &batch) < 0 || place->index > batch.count
        || place->at > batch.end - batch.p)
        return -1;
    const uint8_t *start = batch.p;
    batch.p += place->at;
    Py_ssize_t index = place->index;
    while (index < batch.count && columns->rows < given->rows_max && *bytes < given->bytes_max) {
        const uint8_t *before = batch.p;
        if (take_record(columns, &batch) < 0)
            return -1;
        *bytes += batch.p - before;
        index++;
    }
    if (index < batch.count) {
        place->index = index;
        place->at = batch.p - start;
        return 0;
    }
    /* Without a count, the bytes are not read. */
    if (batch.count && batch.p != batch.end)
        return -1;
    *place = (Place){place->batch + 1, 0, 0};
    return 0;
}

/* Read batches from a place on, until a bound is reached or Python has to read one, which is
   returned. */
static bool take_batches(Columns *columns, const Given *given, Place *place)
{
    Py_ssize_t bytes = 0;
    while (place->batch < given->batches && columns->rows < given->rows_max
           && bytes < given->bytes_max) {
        Mark mark = columns_mark(columns);
        Py_ssize_t batch = place->batch;
        if (take_batch(columns, given, place, &bytes) < 0) {
            PyErr_Clear();
            columns_cut(columns, &mark);
            return true;
        }
        if (place->batch == batch)
            break;
    }
    return false;
}

/* Whether the numbers from Python are consistent, so that no batch lies outside of its arrays. */
static bool is_sound(const Given *given, const Place *place, Py_ssize_t numbers_size)
{
    return numbers_size == 4 * given->batches && PySequence_Fast_GET_SIZE(given->sections) == given->batches
           && place->batch >= 0 && place->batch <= given->batches && place->index >= 0
           && place->at >= 0 && given->rows_max > 0 && given->rows_max <= ROWS_MAX
           && given->bytes_max > 0 && given->bytes_max <= BYTES_MAX;
}

/* The most bytes of values to expect, at most the caller's bound. */
static Py_ssize_t bytes_of(const Given *given)
{
    Py_ssize_t bytes = given->size;
    for (Py_ssize_t at = 0; at < given->batches && bytes < given->bytes_max; at++) {
        PyObject *section = PySequence_Fast_GET_ITEM(given->sections, at);
        bytes += PyBytes_CheckExact(section) ? PyBytes_GET_SIZE(section) : 0;
    }
    return Py_MIN(bytes, given->bytes_max);
}

static PyObject *columns_of(const Given *given, Place *place)
{
    Columns columns;
    bool is_odd = false;
    PyObject *result = NULL;
    if (columns_start(&columns, given->rows_max, bytes_of(given)) == 0) {
        is_odd = take_batches(&columns, given, place);
        result = columns_finish(&columns);
    }
    columns_drop(&columns);
    if (result == NULL)
        return NULL;
    return Py_BuildValue("(nnn)NnN", place->batch, place->index, place->at,
                         PyBool_FromLong(is_odd), columns.rows, result);
}

PyObject *read_columns(PyObject *module, PyObject *arguments)
{
    (void)module;
    Given given;
    Place place;
    PyObject *buffer, *sections, *result = NULL;
    Py_buffer positions, numbers;
    if (!PyArg_ParseTuple(arguments, "O!y*y*O!(nnn)nn", &PyBytes_Type, &buffer, &positions,
                          &numbers, &PyList_Type, &sections, &place.batch, &place.index,
                          &place.at, &given.rows_max, &given.bytes_max))
        return NULL;
    given.buffer = (const uint8_t *)PyBytes_AS_STRING(buffer);
    given.size = PyBytes_GET_SIZE(buffer);
    given.positions = positions.buf;
    given.numbers = numbers.buf;
    given.batches = positions.len / (Py_ssize_t)sizeof *given.positions;
    given.sections = hold_items(sections);
    if (given.sections != NULL && is_sound(&given, &place, numbers.len))
        result = columns_of(&given, &place);
    else if (given.sections != NULL)
        PyErr_SetString(PyExc_ValueError, "the numbers of batches do not fit together");
    release(given.sections);
    PyBuffer_Release(&positions);
    PyBuffer_Release(&numbers);
    return result;
}
