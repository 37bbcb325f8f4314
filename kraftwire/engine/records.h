/* The records of a batch: to rows, from columns; see read_records.c and write_records.c. */

#ifndef KRAFTWIRE_RECORDS_H
#define KRAFTWIRE_RECORDS_H

#include "wire.h"

/* Python's names for what the functions take and return are in _core.pyi. */
PyObject *read_records(PyObject *module, PyObject *arguments);
PyObject *split_records(PyObject *module, PyObject *rows);
PyObject *write_records(PyObject *module, PyObject *arguments);

#endif
