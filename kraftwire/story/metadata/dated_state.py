"""A state that knows for each entity which record was the last to change it."""

from __future__ import annotations

from collections.abc import Hashable

from kraftwire.controller.image.record_store import RecordStore
from kraftwire.controller.image.state import MetadataState
from kraftwire.controller.record_effects import Family
from kraftwire.wire.message import Message


class _DatedRecords(RecordStore):
    """Records with the offset at which each was stored; `offset` is that of the present record."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = -1
        self.offsets: dict[tuple[Family, Hashable], int] = {}

    def put(self, family: Family, key: Hashable, value: bytes) -> None:
        """Store a record, and note when."""
        super().put(family, key, value)
        self.offsets[family, key] = self.offset


class DatedState(MetadataState):
    """The state of a log that is read, with an offset for each entity."""

    def __init__(self) -> None:
        self._dated = _DatedRecords()
        super().__init__(self._dated)

    def apply(self, offset: int, message: Message, value: bytes) -> None:
        """Apply a record; every entity that it changes gets its offset."""
        self._dated.offset = offset
        super().apply(offset, message, value)

    def changed_at(self, family: Family, key: Hashable) -> int:
        """Return the offset of the record that last changed an entity."""
        return self._dated.offsets[family, key]
