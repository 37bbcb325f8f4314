"""Our own one-line texts on messages and fields: collected from old files, added to new ones.

Texts are keyed by a message's name and a field's path: ``Topics.Partitions.HighWatermark``, or
``@Listener.Port`` for a field of a shared struct, ``@Listener`` for the struct itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tools.import_schemas.schema import Field, Message


def collect_texts(message: Message) -> dict[str, str]:
    """Return all texts of a message by path; the message's own has an empty path."""
    texts = {"": message.about}
    _collect(message.fields, "", texts)
    for struct in message.structs:
        texts[f"@{struct.name}"] = struct.about
        _collect(struct.fields, f"@{struct.name}.", texts)
    return {path: text for path, text in texts.items() if text}


def apply_texts(message: Message, texts: Mapping[str, str]) -> Message:
    """Return the message with these texts; paths that it lacks are ignored."""
    structs = tuple(
        replace(
            struct,
            about=texts.get(f"@{struct.name}", ""),
            fields=_apply(struct.fields, f"@{struct.name}.", texts),
        )
        for struct in message.structs
    )
    fields = _apply(message.fields, "", texts)
    return replace(message, about=texts.get("", ""), fields=fields, structs=structs)


def _collect(fields: tuple[Field, ...], parent: str, texts: dict[str, str]) -> None:
    for field in fields:
        path = f"{parent}{field.name}"
        texts[path] = field.about
        _collect(field.fields or (), f"{path}.", texts)


def _apply(fields: tuple[Field, ...], parent: str, texts: Mapping[str, str]) -> tuple[Field, ...]:
    return tuple(
        replace(
            field,
            about=_text_of(field, parent, texts),
            fields=(
                None
                if field.fields is None
                else _apply(field.fields, f"{parent}{field.name}.", texts)
            ),
        )
        for field in fields
    )


def _text_of(field: Field, parent: str, texts: Mapping[str, str]) -> str:
    """The text of a field, or else the one that it has under a former name."""
    names = (field.name, *field.former)
    return next((texts[path] for name in names if (path := f"{parent}{name}") in texts), "")
