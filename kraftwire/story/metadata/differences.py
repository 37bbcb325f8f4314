"""How two states differ: what was added, removed and changed, entity by entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kraftwire.story.metadata.rows import Row


@dataclass(frozen=True, slots=True)
class EntityChange:
    """An entity that only one state has, or that they describe differently in `fields`."""

    first: Row | None
    second: Row | None
    fields: tuple[str, ...] = ()

    @property
    def row(self) -> Row:
        """The entity."""
        row = self.first if self.second is None else self.second
        assert row is not None
        return row

    @property
    def kind(self) -> str:
        """What happened: added, removed or changed."""
        if self.first is None:
            return "added"
        return "removed" if self.second is None else "changed"

    def to_json(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {
            "subject": self.row.subject,
            "name": self.row.name,
            "change": self.kind,
            "fields": list(self.fields),
            "first": None if self.first is None else self.first.to_json(),
            "second": None if self.second is None else self.second.to_json(),
        }


def differences(first: Iterable[Row], second: Iterable[Row]) -> Iterator[EntityChange]:
    """Yield the changes from the rows of one state to those of another, additions last."""
    after = {row.name: row for row in second}
    for row in first:
        new = after.pop(row.name, None)
        if new is None:
            yield EntityChange(row, None)
        elif changed := _changed(row, new):
            yield EntityChange(row, new, changed)
    for row in after.values():
        yield EntityChange(None, row)


def _changed(old: Row, new: Row) -> tuple[str, ...]:
    before, after = old.compared or old.data, new.compared or new.data
    keys = {**before, **after}
    return tuple(key for key in keys if _sorted(before.get(key)) != _sorted(after.get(key)))


def _sorted(value: Any) -> Any:
    """Return a value to compare: lists of objects, such as endpoints, have no order."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sorted(value, key=repr)
    return value
