/* A plan that writes JSON: what one version of a message has, as the printer walks over its bytes.

   Made once from a description in Python (kraftwire/wire/json_form.py), like the plans of plan.h:
   inner structs stand before those that hold them. */

#ifndef KRAFTWIRE_JSON_H
#define KRAFTWIRE_JSON_H

#include "output.h"
#include "plan.h"

typedef struct JsonShape JsonShape;

/* What a field says about the topic of the records after it. */
typedef enum { NO_TOPIC, TOPIC_NAME, TOPIC_ID, TOPIC_KINDS } TopicKind;

/* A field of a struct. `key` (owned) is its name as JSON with the colon; `fallback` (owned) are the
   bytes of its default, for a field with a tag, else NULL; `element_min` the fewest bytes of an
   element. */
typedef struct {
    Kind kind;
    bool is_array, is_compact, is_nullable, is_tagged;
    TopicKind topic;
    uint32_t tag;
    Py_ssize_t element_min;
    PyObject *key, *fallback;
    const JsonShape *child;
} JsonField;

/* A struct: fields in wire order, then those with tags in the order of these. `weight` is what an
   object of it takes from the budget. */
struct JsonShape {
    bool is_flexible;
    Py_ssize_t size_min, weight;
    int wire_count, tagged_count, depth;
    JsonField *fields;
};

typedef struct {
    PyObject_HEAD
    Py_ssize_t string_size_max;
    int shape_count;
    JsonShape *shapes;
} JsonPlan;

extern PyType_Spec json_plan_spec;

PyObject *json_plan_write(PyObject *self, PyObject *const *arguments, Py_ssize_t count);
PyObject *json_batches(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

/* Text that needs no escape. */
static inline int put_text(Output *out, const char *text, Py_ssize_t size)
{
    if (output_reserve(out, size) < 0)
        return -1;
    copy_bytes(out->p, text, size);
    out->p += size;
    return 0;
}

int put_number(Output *out, int64_t value);

#endif
