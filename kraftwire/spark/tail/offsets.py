"""The offset of a stream over folders: a mark for each, and how it advances.

The offset that a trigger reaches also holds where its first read of a folder begins and which
snapshots it reads, so that the trigger can be repeated after a restart, or refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraftwire.errors import LogMovedError
from kraftwire.spark.tail.folders import snapshot_key, snapshots
from kraftwire.spark.tail.growth import (
    FolderEnd,
    Growth,
    LogStartMovedError,
    Stretch,
    advance,
    bound_of,
    last_mark,
    of_snapshot,
    segments,
    stretches,
)
from kraftwire.spark.tail.marks import BatchMark

# As Spark keeps it: JSON.
Offset = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """What a trigger may read.

    `bounds` and `snapshots` are the ends and snapshots of folders that a query ends with,
    None for one that does not end; without `fails_on_loss`, lost folders and records are skipped.
    """

    offsets_max: int | None = None
    bounds: Mapping[str, FolderEnd | None] | None = None
    snapshots: Mapping[str, Sequence[str]] | None = None
    with_snapshots: bool = True
    fails_on_loss: bool = True


@dataclass(frozen=True, slots=True)
class _FolderPosition:
    """The position of a stream in one folder.

    `snapshot` is the newest that was read. About the trigger that leads here: `first` is the base
    offset at which it began if it did not resume from a mark, `fresh` has the snapshots that it
    reads.
    """

    mark: BatchMark | None = None
    snapshot: str | None = None
    first: int | None = None
    fresh: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> _FolderPosition:
        mark = data.get("mark")
        return cls(
            None if mark is None else BatchMark.from_json(mark),
            data.get("snapshot"),
            data.get("first"),
            tuple(data.get("fresh", ())),
        )

    def to_json(self) -> dict[str, Any]:
        cells = {
            "mark": None if self.mark is None else self.mark.to_json(),
            "snapshot": self.snapshot,
            "first": self.first,
            "fresh": list(self.fresh) or None,
        }
        return {name: value for name, value in cells.items() if value is not None}


def end_of(folders: Sequence[Path], *, with_snapshots: bool) -> Offset:
    """Return the offset after everything that is in some folders now."""
    places = {}
    for folder in folders:
        names = snapshots(folder) if with_snapshots else []
        places[str(folder)] = _FolderPosition(last_mark(folder), names[-1] if names else None)
    return _offset(places, None)


def following(folders: Sequence[Path], start: Offset, limits: TriggerLimits) -> Offset:
    """Return the offset that a trigger reaches; `start` itself if there is nothing new.

    With a limit, partitions first get equal shares, then the remainder; one batch is taken even if
    it alone exceeds the limit. Raises: LogMovedError.
    """
    before = _places(start)
    empty = (Path(name) for name in before.keys() - set(map(str, folders)))
    folders = sorted([*folders, *(path for path in empty if path.is_dir())], key=str)
    gone = before.keys() - set(map(str, folders))
    if gone and limits.fails_on_loss:
        raise LogMovedError(
            "this folder was read and is gone: records written to it since are lost",
            file=min(gone),
        )
    # Values that only the previous trigger needed are dropped.
    places = {
        name: replace(place, first=None, fresh=())
        for name, place in before.items()
        if name not in gone
    }
    trigger = _Trigger(places, limits)
    turn = trigger.take(_in_turn(folders, start.get("turn")))
    for folder in folders if limits.with_snapshots else ():
        trigger.take_snapshots(folder)
    is_new = turn is not None or any(place.fresh for place in places.values())
    return _offset(places, turn or start.get("turn")) if is_new else start


class _Trigger:
    """Advances places, within limits."""

    def __init__(self, places: dict[str, _FolderPosition], limits: TriggerLimits) -> None:
        self._places = places
        self._limits = limits
        self._left = limits.offsets_max

    def take(self, folders: Sequence[Path]) -> str | None:
        """Take what the limits allow; return the last folder that had something, if any."""
        if self._left is None:
            return self._round(folders, None)
        share = max(1, self._left // max(1, len(folders)))
        served = self._round(folders, share)
        served = self._round(folders, self._left) or served
        if served is None and self._left:
            return self._round(folders, self._left, is_forced=True)
        return served

    def _round(
        self, folders: Sequence[Path], share: int | None, *, is_forced: bool = False
    ) -> str | None:
        served = None
        for folder in folders:
            if self._left is not None and (self._left <= 0 or (is_forced and served)):
                break
            most = None if share is None or self._left is None else min(share, self._left)
            growth = self._advance(folder, most, is_forced)
            if growth is not None:
                served = str(folder)
                if self._left is not None:
                    self._left -= growth.offsets
        return served

    def _advance(self, folder: Path, most: int | None, is_forced: bool) -> Growth | None:
        name = str(folder)
        bounds = self._limits.bounds
        bound = None if bounds is None else bounds.get(name)
        if bounds is not None and bound is None:
            return None
        place = self._places.get(name, _FolderPosition())
        first = place.first
        try:
            growth = advance(folder, place.mark, offsets_max=most, bound=bound, is_forced=is_forced)
        except LogStartMovedError:
            if self._limits.fails_on_loss:
                raise
            place = replace(place, mark=None)
            growth = advance(folder, None, offsets_max=most, bound=bound, is_forced=is_forced)
        if growth is None:
            return None
        if place.mark is None:
            first = segments(folder)[0]
        self._places[name] = replace(place, mark=growth.mark, first=first)
        return growth

    def take_snapshots(self, folder: Path) -> None:
        """Take the snapshots that are newer than those read before."""
        name = str(folder)
        names = snapshots(folder)
        if self._limits.snapshots is not None:
            known = self._limits.snapshots.get(name, ())
            names = [each for each in names if each in known]
        place = self._places.get(name, _FolderPosition())
        if place.snapshot is not None:
            newest = snapshot_key(place.snapshot)
            names = [each for each in names if snapshot_key(each) > newest]
        if names:
            self._places[name] = replace(place, snapshot=names[-1], fresh=tuple(names))


def between(start: Offset, end: Offset) -> Iterator[Stretch]:
    """Return what a trigger between two offsets reads. Raises: LogMovedError if it is gone."""
    before = _places(start)
    for name, place in _places(end).items():
        folder = Path(name)
        if not folder.is_dir():
            raise LogMovedError("this folder is gone before it was read", file=name)
        for snapshot in place.fresh:
            yield of_snapshot(folder / snapshot)
        mark = before.get(name, _FolderPosition()).mark
        if place.mark is not None and place.mark != mark:
            yield from stretches(folder, mark, place.mark, place.first)


def bounds_of(folders: Sequence[Path]) -> tuple[dict[str, FolderEnd | None], dict[str, list[str]]]:
    """Return the present ends and snapshots of some folders."""
    return (
        {str(folder): bound_of(folder) for folder in folders},
        {str(folder): snapshots(folder) for folder in folders},
    )


def _places(offset: Offset) -> dict[str, _FolderPosition]:
    return {name: _FolderPosition.from_json(data) for name, data in offset["folders"].items()}


def _offset(places: Mapping[str, _FolderPosition], turn: str | None) -> Offset:
    folders = {name: places[name].to_json() for name in sorted(places)}
    return {"folders": folders} | ({} if turn is None else {"turn": turn})


def _in_turn(folders: Sequence[Path], turn: str | None) -> list[Path]:
    """Return the folders, beginning after the one that was served last."""
    if turn is None:
        return list(folders)
    later = [folder for folder in folders if str(folder) > turn]
    return later + [folder for folder in folders if str(folder) <= turn]
