/* Bytes of captures; see packets.c. */

#ifndef KRAFTWIRE_PACKETS_H
#define KRAFTWIRE_PACKETS_H

#include "wire.h"

/* Python's names for what the functions take and return are in _core.pyi. */
PyObject *join_ranges(PyObject *module, PyObject *arguments);

#endif
