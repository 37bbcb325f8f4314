/* A plan: what one version of a message has, as the decoder and the encoder walk over it.

   A plan is made once from a description in Python (kraftwire/wire/plans.py) and never changes.
   Its shapes stand in an array, inner structs before those that hold them, so that a walk goes
   only downwards and its depth is bounded by DEPTH_MAX. */

#ifndef KRAFTWIRE_PLAN_H
#define KRAFTWIRE_PLAN_H

#include "slots.h"

#define DEPTH_MAX 32

typedef enum {
    KIND_BOOL,
    KIND_INT8,
    KIND_INT16,
    KIND_UINT16,
    KIND_INT32,
    KIND_UINT32,
    KIND_INT64,
    KIND_FLOAT64,
    KIND_UUID,
    KIND_STRING,
    KIND_BYTES,
    KIND_RECORDS,
    KIND_STRUCT,
} Kind;

typedef struct Shape Shape;

/* A field of a struct. `size` is that of a fixed-width value, or the fewest bytes of an element
   of an array; `offset` is the slot's place in an object; `fallback` (owned) is the value of a
   field that is not there, or the empty tuple for a new list or struct. `optional` is a struct
   for which None stands when every field is at its default, and `is_error` marks error codes. */
typedef struct {
    Kind kind;
    bool is_array, is_compact, is_nullable, is_tagged, is_optional, is_ignorable, is_error;
    uint32_t tag;
    Py_ssize_t size, offset;
    PyObject *fallback;
    const Shape *child;
} Field;

/* A struct: fields in wire order, then those that the version lacks, then those with tags, in the
   order of these. `cls` (owned) is the class of the objects. */
struct Shape {
    PyTypeObject *cls;
    bool is_flexible, is_counted;
    Py_ssize_t size_min, unknown_offset;
    int wire_count, absent_count, tagged_count, depth;
    Field *fields;
};

/* `decoder` and `encoder` are the Python functions that the plan falls back to. A message may have so
   many free elements of small structs, and one more for each `element_bytes_min` bytes. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t string_size_max, elements_free, element_bytes_min;
    int shape_count;
    Shape *shapes;
    PyObject *decoder, *encoder;
} Plan;

extern PyType_Spec plan_spec;

PyObject *plan_decode(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *plan_encode(PyObject *self, PyObject *message);
PyObject *plan_read(PyObject *self, PyObject *const *arguments, Py_ssize_t count);

/* The kind of a type by the schema's name for it; -1 with an exception if there is none. */
int kind_named(const char *name, Kind *kind);

/* The fewest bytes of an array's element; `struct_size_min` is that of its struct, if it is one. */
Py_ssize_t element_size_min(Kind kind, bool is_compact, Py_ssize_t struct_size_min);

/* -1 with an exception unless the struct of this number stands before the one that holds it. */
int require_inner(int number, Py_ssize_t outer);

/* -1 with an exception if structs are nested too deeply. */
int require_depth(int depth);

/* 1 if the value is the field's default, 0 if not, -1 if only Python can tell. */
int is_at_default(const Field *field, PyObject *value);

/* The value of a field that is not there, new; NULL without memory. */
PyObject *fresh_default(const Field *field);

/* Bytes of a value of fixed width. */
static inline int fixed_size(Kind kind)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 16};
    return sizes[kind];
}

/* Objects of another class are rare: said to the compiler, that is worth a few percent of encoding. */
static inline bool is_of(const Shape *shape, PyObject *object)
{
    return __builtin_expect(Py_TYPE(object) == shape->cls, 1);
}

#endif
