"""Judges a history against the committed log: nothing lost, nothing doubled, real-time order.

The log is the order of all appends, so linearizability needs no search: every acknowledged append
is in the log once, at the offset in its answer, and one that was acknowledged before another
was called comes before it. Each check reads the history once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.nemesis.history import Append, History, Look


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed log in the form that the checker needs.

    `places` are the offsets at which a key stands, `epochs` the leader epoch of the batch at an
    offset, `leaders` who says in the log that it leads an epoch, `end_offset` where the log ends,
    `control` the offsets of control records.
    """

    places: Mapping[bytes, Sequence[int]]
    epochs: Mapping[int, int]
    leaders: Mapping[int, int]
    end_offset: int
    control: frozenset[int] = frozenset()

    def is_at(self, answered: int, place: int) -> bool:
        """Whether a record may be at `place` if the answer named the offset `answered`.

        A Java controller names the offset that it expects. Where a change of the voters comes in
        between, which the raft layer appends by itself, the record stands right after that.
        """
        return answered <= place and all(
            offset in self.control for offset in range(answered, place)
        )


def check(history: History, log: Committed) -> list[str]:
    """What is wrong, one sentence each; empty if nothing is."""
    return [
        *_check_places(history.appends, log),
        *_check_order(history.appends, log),
        *_check_looks(history, log),
        *_check_leaders(history.looks, log),
    ]


def _check_places(appends: Iterable[Append], log: Committed) -> list[str]:
    """An acknowledged append is there once, at the offset in its answer; others at most once."""
    found = []
    for append in appends:
        places = list(log.places.get(append.key, ()))
        name = append.key.hex()
        if len(places) > 1:
            found.append(f"doubled: {name} stands at the offsets {places}")
        elif append.is_acknowledged and not places:
            found.append(f"lost: {name} was acknowledged at offset {append.offset}")
        elif append.offset is not None and not log.is_at(append.offset, places[0]):
            found.append(f"moved: {name} was told offset {append.offset}, stands at {places}")
    return found


def _check_order(appends: Sequence[Append], log: Committed) -> list[str]:
    """What was acknowledged before an append was called comes before it."""
    placed = [(one, log.places[one.key][0]) for one in appends if one.key in log.places]
    moments: list[tuple[float, int, int]] = []
    for append, offset in placed:
        moments.append((append.called, 1, offset))
        if append.returned is not None:
            moments.append((append.returned, 0, offset))
    found, highest = [], -1
    for _, is_call, offset in sorted(moments):
        if is_call and offset < highest:
            found.append(f"order: offset {offset} was called after {highest} was acknowledged")
        elif not is_call:
            highest = max(highest, offset)
    return found


def _check_looks(history: History, log: Committed) -> list[str]:
    """A high watermark stays committed, and is above everything its leader acknowledged before.

    A deposed leader that does not know it yet may show an old one, but only of its own epoch: what
    was acknowledged in that epoch or an older one, before the request, lies below.
    """
    found = [
        f"taken back: node {look.node_id} said that {look.high_watermark} was committed in epoch "
        f"{look.epoch}, the log ends at {log.end_offset}"
        for look in history.looks
        if look.high_watermark > log.end_offset
    ]
    return found + _check_freshness(history, log) + _check_monotony(history.looks)


def _check_freshness(history: History, log: Committed) -> list[str]:
    moments: list[tuple[float, int, Look | tuple[int, int]]] = []
    for append in history.appends:
        places = log.places.get(append.key)
        if append.returned is not None and places:
            epoch = log.epochs[places[0]]
            moments.append((append.returned, 0, (epoch, places[0])))
    moments += [(look.called, 1, look) for look in history.looks if look.high_watermark >= 0]
    found = []
    highest: dict[int, int] = {}
    for _, _, what in sorted(moments, key=lambda moment: moment[:2]):
        if isinstance(what, Look):
            known = [offset for epoch, offset in highest.items() if epoch <= what.epoch]
            if known and what.high_watermark <= max(known):
                found.append(
                    f"stale: leader {what.node_id} of epoch {what.epoch} said "
                    f"{what.high_watermark} after offset {max(known)} was acknowledged"
                )
        else:
            epoch, offset = what
            highest[epoch] = max(highest.get(epoch, -1), offset)
    return found


def _check_monotony(looks: Iterable[Look]) -> list[str]:
    """Within an epoch, the high watermark that a leader reports does not decrease."""
    moments: list[tuple[float, int, Look]] = []
    for look in looks:
        moments.append((look.called, 1, look))
        moments.append((look.returned, 0, look))
    found = []
    said: dict[int, int] = {}
    for _, is_call, look in sorted(moments, key=lambda moment: moment[:2]):
        if not is_call:
            said[look.epoch] = max(said.get(look.epoch, -1), look.high_watermark)
        elif look.high_watermark < said.get(look.epoch, -1):
            found.append(
                f"backwards: leader {look.node_id} of epoch {look.epoch} said "
                f"{look.high_watermark} after {said[look.epoch]}"
            )
    return found


def _check_leaders(looks: Iterable[Look], log: Committed) -> list[str]:
    """One leader for each epoch, according to the nodes and to the log."""
    known = dict(log.leaders)
    found = []
    for look in looks:
        leader = known.setdefault(look.epoch, look.node_id)
        if leader != look.node_id:
            found.append(f"two leaders: {leader} and {look.node_id} in epoch {look.epoch}")
    return found
