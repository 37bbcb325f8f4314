"""Selects from the timeline the lines that fit on a screen and explain a failure.

Lines that change something are kept from further back than others, and lines about the nodes at
evidence from further than the rest. A separate line counts those left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kraftwire.raft import effects as do
from kraftwire.raft import events
from kraftwire.sim import describe

# The size of a screen: lines of the timeline, and characters in a line.
LINES_MAX = 60
_WIDTH = 180

# How often the same text is shown at most.
_SAME_SHOWN = 2

# The number of lines at the end that are always kept.
_LAST = 6

# How many consecutive exchanges that change nothing are shown one by one.
_IDLE_SHOWN = 2

_KINDS_SHOWN = 4

_AT_ODDS = 4


class Weight(IntEnum):
    """What a step changed: nothing, data in logs, or the leader and the stored election state."""

    NOTHING = 0
    DATA = 1
    ELECTION = 2


# How much further back a line of this weight is kept than one of weight NOTHING.
_REACH = {Weight.NOTHING: 1, Weight.DATA: 4, Weight.ELECTION: 24}

_DECISIVE = (
    do.PersistQuorumState,
    do.TruncateLog,
    do.ResetLog,
    do.DropLogPrefix,
    do.UpgradeDecided,
    do.RoleChanged,
    do.ShutdownFinished,
)
_ROUTINE = (
    do.SendRequest,
    do.SendReply,
    do.ResetConnections,
    do.FlushLog,
    do.Note,
    do.AppendAccepted,
)
_ELECTION = ("VoteRequest", "VoteResponse", "BeginQuorumEpochRequest", "EndQuorumEpochRequest")


@dataclass(frozen=True, slots=True)
class Line:
    """Something that happened.

    `nodes` begins with the one to which it happened, and is empty for all; `kind` is a noun; `head`
    has the time, `text` the description, computed on demand.
    """

    nodes: tuple[int, ...]
    weight: Weight
    kind: str
    head: str
    text: Callable[[], str]

    def __str__(self) -> str:
        return cut(f"{self.head}{self.text()}")


def cut(line: str) -> str:
    """Truncate a line to the width of a screen."""
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 4]} ..."


def weight_of(effects: Iterable[do.Effect]) -> Weight:
    """Return what the effects of a step change."""
    weight = Weight.NOTHING
    for effect in effects:
        if isinstance(effect, _DECISIVE):
            return Weight.ELECTION
        if isinstance(effect, do.SendRequest | do.SendReply) and _decides(effect):
            return Weight.ELECTION
        if not isinstance(effect, _ROUTINE):
            weight = Weight.DATA
    return weight


def _decides(effect: do.SendRequest | do.SendReply) -> bool:
    """Return whether a message belongs to an election, or reports where logs diverge."""
    message = effect.message
    if message.NAME == "FetchResponse":
        topics = getattr(message, "responses", ())
        diverging = topics[0].partitions[0].diverging_epoch if topics else None
        return diverging is not None and diverging.epoch >= 0
    return message.NAME in _ELECTION


def kind_of(event: events.Event | None) -> str:
    """Return a noun for an event of a core."""
    if isinstance(event, events.RequestReceived):
        name = event.message.NAME.removesuffix("Request")
        return "fetch" if name == "Fetch" else f"{name} request"
    if isinstance(event, events.ResponseReceived):
        return "response"
    return _KINDS.get(type(event), "other event")


_KINDS: dict[type, str] = {
    events.TimerExpired: "timer",
    events.LogFlushed: "flush",
    events.AppendRequested: "append",
    events.RequestFailed: "failed request",
}


def peer_of(event: events.Event | None) -> tuple[int, ...]:
    """Return the sender of a request, if the request names it."""
    if not isinstance(event, events.RequestReceived):
        return ()
    message = event.message
    if message.NAME == "FetchRequest":
        state = getattr(message, "replica_state", None)
        known = state.replica_id if state is not None else -1
        return _known(known if known >= 0 else getattr(message, "replica_id", -1))
    topics = getattr(message, "topics", None)
    first = topics[0].partitions[0] if topics else None
    return _known(getattr(first, "replica_id", getattr(first, "leader_id", -1)))


def _known(node: int) -> tuple[int, ...]:
    return (node,) if node >= 0 else ()


# ---- choosing ------------------------------------------------------------------------------------


def select_lines(
    lines: Sequence[Line], room: int, involved: frozenset[int] = frozenset(), earlier: int = 0
) -> list[str]:
    """Return at most `room` lines that summarize these.

    `involved` are the nodes that matter most; `earlier` counts the steps before the first line.
    """
    ranked = _varied(lines, _ranked(lines, involved), room)
    for count in range(len(ranked), 0, -1):
        kept = set(ranked[:count])
        shown = _shown(lines, kept, earlier)
        if len(shown) <= room:
            return shown
    return _shown(lines, set(ranked[:1]), 0)[-room:]


def _ranked(lines: Sequence[Line], involved: frozenset[int]) -> list[int]:
    """Return the indexes of the lines worth showing, the most important first."""
    count = len(lines)
    folded = _idle(lines)

    def rank(place: int) -> float:
        age = count - 1 - place
        if age < _LAST:
            return 0.0
        line = lines[place]
        nearness = _AT_ODDS if not line.nodes or involved & set(line.nodes) else 1
        return age / (_REACH[line.weight] * nearness)

    places = (place for place in range(count) if place not in folded)
    return sorted(places, key=lambda place: (rank(place), -place))


def _varied(lines: Sequence[Line], ranked: Iterable[int], room: int) -> list[int]:
    """Return the first `room` of these indexes, without lines that repeat others."""
    seen: Counter[str] = Counter()
    places: list[int] = []
    for place in ranked:
        text = lines[place].text()
        seen[text] += 1
        if seen[text] <= _SAME_SHOWN or len(lines) - place <= _LAST:
            places.append(place)
        if len(places) == room:
            break
    return places


def _idle(lines: Sequence[Line]) -> set[int]:
    """Return the indexes in long runs of exchanges that change nothing, except the last line."""
    found: set[int] = set()
    run: list[int] = []
    for place, line in enumerate(lines):
        if line.weight is Weight.NOTHING and place < len(lines) - 1:
            run.append(place)
            continue
        if len(run) > _IDLE_SHOWN:
            found.update(run)
        run = []
    return found


def _shown(lines: Sequence[Line], kept: set[int], earlier: int) -> list[str]:
    shown: list[str] = []
    gap: list[Line] = []
    for place, line in enumerate(lines):
        if place in kept:
            shown += _gap(gap, earlier)
            shown.append(str(line))
            gap, earlier = [], 0
        else:
            gap.append(line)
    return shown + _gap(gap, earlier)


def _gap(gap: Sequence[Line], earlier: int) -> list[str]:
    """Return the line that replaces omitted ones; `earlier` counts steps before them."""
    if earlier:
        return [f"    ... {len(gap) + earlier:,} earlier steps ..."]
    if len(gap) <= 1:
        return [str(line) for line in gap]
    kinds = Counter(line.kind for line in gap)
    nodes = describe.listed(sorted({node for line in gap for node in line.nodes}))
    if kinds.keys() <= {"fetch", "response"} and not any(line.weight for line in gap):
        fetches = kinds["fetch"] or kinds["response"]
        changed = "that change nothing" if fetches > 1 else "that changes nothing"
        return [f"    ... {_counted(fetches, 'more fetch')} of {nodes} {changed} ..."]
    common = kinds.most_common(_KINDS_SHOWN)
    parts = [_counted(count, kind) for kind, count in common]
    if others := len(gap) - sum(count for _, count in common):
        parts.append(_counted(others, "other"))
    return [f"    ... {len(gap)} more steps of {nodes or 'the cluster'}: {', '.join(parts)} ..."]


def _counted(count: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith(("ch", "sh")) else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
