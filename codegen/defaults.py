"""Default values of fields, as Python expressions."""

from __future__ import annotations

import base64
import json
from typing import Any

from codegen.schema import Field
from codegen.types import FIXED, VARIABLE


def is_optional_struct(field: Field) -> bool:
    """Whether None stands for a struct with every field at its default.

    A tagged struct is not written while it equals its default, so None costs nothing and saves an
    object for every element that does not carry it.
    """
    return bool(field.struct and not field.is_array and field.tagged and not field.nullable)


def default_of(field: Field) -> str:
    """Python expression for the default value of a field."""
    if field.default == "null":
        return "None"
    if field.is_array:
        return "[]"
    if field.struct:
        return "None" if is_optional_struct(field) else f"{field.struct.name}()"
    if field.type in VARIABLE:
        if field.type == "string":
            return _quoted(str(field.default or ""))
        return 'b""'
    if not field.has_default or field.default == "":
        return FIXED[field.type].default
    return _fixed_default(field.type, field.default)


def _quoted(text: str) -> str:
    # JSON's escapes are also Python's, except for pairs of surrogates, which this keeps.
    return json.dumps(text, ensure_ascii=False)


def _fixed_default(type_name: str, value: Any) -> str:
    if type_name == "bool":
        return "True" if value in (True, "true") else "False"
    if type_name == "float64":
        return repr(float(value))
    if type_name == "uuid":
        return repr(base64.urlsafe_b64decode(str(value) + "=="))
    return str(int(str(value), 0))
