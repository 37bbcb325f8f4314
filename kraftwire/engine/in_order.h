/* The class of the loop over packets in order; see in_order.c. */

#ifndef KRAFTWIRE_IN_ORDER_H
#define KRAFTWIRE_IN_ORDER_H

#include <Python.h>

extern PyType_Spec in_order_spec;

#endif
