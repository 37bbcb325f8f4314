#ifndef KRAFTWIRE_LANE_H
#define KRAFTWIRE_LANE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyType_Spec lane_spec;

#endif
