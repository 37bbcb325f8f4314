/* The module kraftwire.engine._core; docs/engine.md explains how it works. */

#include "in_order.h"
#include "json.h"
#include "packets.h"
#include "records.h"

/* Raised with every change of what Python passes in or gets back, so that a module that was built
   from older sources is not used; kraftwire/engine/__init__.py has the same number. */
#define INTERFACE 15

static int add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    if (type == NULL)
        return -1;
    int result = PyModule_AddObjectRef(module, name, type);
    Py_DECREF(type);
    return result;
}

static int module_exec(PyObject *module)
{
    if (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0)
        return -1;
    if (add_type(module, "Plan", &plan_spec) < 0)
        return -1;
    if (add_type(module, "JsonPlan", &json_plan_spec) < 0)
        return -1;
    return add_type(module, "InOrder", &in_order_spec);
}

static PyMethodDef module_methods[] = {
    {"check_records", check_records, METH_VARARGS, "Whether the records of a batch can be read."},
    {"count_within", count_within, METH_VARARGS, "How many records begin within some bytes."},
    {"index_packets", (PyCFunction)(void (*)(void))index_packets, METH_FASTCALL,
     "Runs of packets by connection."},
    {"join_ranges", join_ranges, METH_VARARGS, "Ranges of bytes, one after the other."},
    {"json_batches", (PyCFunction)(void (*)(void))json_batches, METH_FASTCALL,
     "Headers of batches as JSON."},
    {"read_columns", read_columns, METH_VARARGS, "Records of batches as buffers of Arrow's arrays."},
    {"read_packets", (PyCFunction)(void (*)(void))read_packets, METH_FASTCALL,
     "The packets of a run that was followed."},
    {"read_ranges", read_ranges, METH_VARARGS, "Ranges of a file, one after the other."},
    {"read_records", read_records, METH_VARARGS, "Records of a batch as rows."},
    {"split_records", split_records, METH_O, "Columns of rows."},
    {"write_records", write_records, METH_VARARGS, "The records part of a batch from columns."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "Messages and records in C, under the classes of kraftwire.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_definition);
}
