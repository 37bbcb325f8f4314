"""JSON objects from the attributes of dataclasses."""

from __future__ import annotations

import re
from typing import Any

_CAPITAL = re.compile("[A-Z]")


def attributes_to_json(value: object, keys: str, /, **derived: Any) -> dict[str, Any]:
    """Return attributes of a value as a JSON object with these keys, in their order.

    The key "endOffset" is for the attribute `end_offset`, "from=time" for that of another name;
    "ending?" is null where the attribute is empty. `derived` are the values of keys that are no
    attributes.
    """
    json = {}
    for each in keys.split():
        key, _, attribute = each.removesuffix("?").partition("=")
        if key in derived:
            json[key] = derived[key]
            continue
        found = getattr(value, attribute or _CAPITAL.sub(_snake, key))
        json[key] = None if each.endswith("?") and not found else found
    return json


def _snake(capital: re.Match[str]) -> str:
    return f"_{capital[0].lower()}"
