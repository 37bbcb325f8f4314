"""The facts of a schema as a generated module carries them; `kraftwire.wire.facts` reads them."""

from __future__ import annotations

from codegen.defaults import default_of
from codegen.names import json_name
from codegen.schema import NO_VERSIONS, Field, Message, Versions


def facts_of(message: Message) -> str:
    """The nested tuple as Python text."""
    structs = []
    for struct in message.structs:
        fields = [_field_fact(each, message) for each in struct.fields]
        body = "".join(f"            {fact},\n" for fact in fields)
        structs.append(f'        ("{struct.name}", (\n{body}        )),\n')
    head = (
        message.name, message.kind, message.api_key, _pair(message.versions),
        _pair(message.flexible), message.unstable, message.listeners, message.about,
    )  # fmt: skip
    lines = "".join(f"    {value!r},\n" for value in head)
    return f"(\n{lines}    (\n{''.join(structs)}    ),\n)"


def _pair(versions: Versions) -> tuple[int, int]:
    return (versions.low, versions.high)


def _field_fact(field: Field, message: Message) -> str:
    flags = ("i" if field.ignorable else "") + ("k" if field.map_key else "")
    own_flexible = field.flexible != message.flexible
    values = [
        repr(field.json),
        repr(field.attribute),
        repr(field.type_text),
        repr(_pair(field.versions)),
        repr(_pair(field.nullable) if field.nullable else None),
        repr(_pair(field.tagged) if field.tagged else None),
        repr(field.tag),
        _default_fact(field),
        repr(flags),
        repr(_pair(field.flexible or NO_VERSIONS) if own_flexible else None),
        repr(field.entity_type),
        repr(field.about),
        *(repr(json_name(name)) for name in field.former),
    ]
    return f"({', '.join(values)})"


def _default_fact(field: Field) -> str:
    default = default_of(field)
    if default == "ZERO_UUID":
        return repr(bytes(16))
    # Readers make new lists and structs; the facts only say that the default is not null.
    return "()" if default == "[]" or default.endswith("()") else default
