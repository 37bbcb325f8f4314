"""Fields that a newer release has under another name, with the same bytes.

A field's place is its name under those of the structs around it, as it stands in the file:
``Topics.Partitions.HighWatermark``, or ``@Listener.Port`` in a shared struct. `texts` has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tools.import_schemas.layout import Slot, layout
from tools.import_schemas.schema import Field, Message
from tools.import_schemas.versions import EMPTY


def renamed_fields(old: Message, new: Message) -> dict[str, str]:
    """Old place to new place, taken from the newest version of both with the same bytes.

    Tagged fields that only one of the two has do not matter: they may come in any version.
    """
    for version in reversed((old.valid & new.valid).without(EMPTY)):
        before, after = layout(old, version), layout(new, version)
        before, after = _without_tags(before, after), _without_tags(after, before)
        if nameless(before) == nameless(after):
            return dict(_moves(before, after))
    return {}


def _moves(before: tuple[Slot, ...], after: tuple[Slot, ...]) -> Iterator[tuple[str, str]]:
    """Names that only one of the two has; where both have them, fields changed places."""
    old, new = ({_name(slot.place) for slot in slots} for slots in (before, after))
    for a, b in zip(before, after, strict=True):
        if _name(a.place) not in new and _name(b.place) not in old:
            yield a.place, b.place


def nameless(slots: tuple[Slot, ...]) -> list[Slot]:
    """The slots without what a renaming changes."""
    return [replace(slot, path="") for slot in slots]


def with_current_names(old: Message, new: Message) -> Message:
    """The older message, its fields with the names that the newer one has for them."""
    moves = renamed_fields(old, new)

    def rename(field: Field, place: str) -> Field:
        return replace(field, name=_name(moves[place])) if place in moves else field

    return _each_field(old, rename)


def with_former_names(new: Message, present: Message) -> Message:
    """The newer message, its fields with the names that our present file has or had for them."""
    moves = renamed_fields(present, new)
    former: dict[str, tuple[str, ...]] = {}

    def note(field: Field, place: str) -> Field:
        is_moved = place in moves
        former[moves.get(place, place)] = (*field.former, *([field.name] if is_moved else []))
        return field

    def add(field: Field, place: str) -> Field:
        return replace(field, former=former.get(place, ()))

    _each_field(present, note)
    return _each_field(new, add)


def _without_tags(slots: tuple[Slot, ...], other: tuple[Slot, ...]) -> tuple[Slot, ...]:
    """The slots without the tagged fields that the other message lacks, and what is in them."""
    tags = {(_parent(slot.path), slot.tag) for slot in other}
    lacking = [
        slot.path
        for slot in slots
        if slot.tag is not None and (_parent(slot.path), slot.tag) not in tags
    ]
    return tuple(
        slot
        for slot in slots
        if not any(slot.path == path or slot.path.startswith(f"{path}.") for path in lacking)
    )


def _each_field(message: Message, change: Callable[[Field, str], Field]) -> Message:
    def walk(fields: tuple[Field, ...], parent: str) -> tuple[Field, ...]:
        changed = []
        for field in fields:
            place = f"{parent}{field.name}"
            inner = None if field.fields is None else walk(field.fields, f"{place}.")
            changed.append(change(replace(field, fields=inner), place))
        return tuple(changed)

    structs = tuple(
        replace(struct, fields=walk(struct.fields, f"@{struct.name}."))
        for struct in message.structs
    )
    return replace(message, fields=walk(message.fields, ""), structs=structs)


def _name(place: str) -> str:
    return place.rpartition(".")[2]


def _parent(path: str) -> str:
    return path.rpartition(".")[0]
