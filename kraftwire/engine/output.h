/* A growing buffer that ends as a bytes object. */

#ifndef KRAFTWIRE_OUTPUT_H
#define KRAFTWIRE_OUTPUT_H

#include "wire.h"

/* What has been written so far: in `small` first, and in a bytes object from the moment that it is
   full. `bytes` is owned. */
typedef struct {
    uint8_t *start, *p, *limit;
    PyObject *bytes;
    uint8_t small[1024];
} Output;

void output_start(Output *out);
int output_grow(Output *out, Py_ssize_t size);
PyObject *output_finish(Output *out);
void output_drop(Output *out);

/* Make room for `size` more bytes. 0, or -1 if there is no memory. */
static inline int output_reserve(Output *out, Py_ssize_t size)
{
    return out->limit - out->p >= size ? 0 : output_grow(out, size);
}

#endif
