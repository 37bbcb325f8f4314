/* The places of attributes in objects, and checks of the descriptions that plans are made from. */

#ifndef KRAFTWIRE_SLOTS_H
#define KRAFTWIRE_SLOTS_H

#include "threads.h"

/* The offset of an attribute in objects of a class; -1 with an exception if it is not a slot. */
Py_ssize_t slot_offset(PyTypeObject *cls, const char *name);

/* -1 with an exception if a constructor is given keywords; `what` is made by it. */
int refuse_keywords(PyObject *keywords, const char *what);

/* -1 with an exception unless `what` is described by a tuple. */
int require_tuple(PyObject *item, const char *what);

/* How many structs a description has; -1 with an exception if there are too few or too many. */
int count_shapes(PyObject *shapes);

#endif
