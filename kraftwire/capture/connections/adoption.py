"""Joins what was found in a stretch that was read ahead to the state of the capture before it.

Owns what is done where both fit, see `fits`: the packets that were left are taken in their order,
and every connection gets the state that it had at the end of the stretch.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from kraftwire.capture.capture import Capture
from kraftwire.capture.connections.ahead import Ahead, Times, Trail
from kraftwire.capture.connections.connection import Connection, reverse_key
from kraftwire.capture.connections.fits import Fit
from kraftwire.capture.connections.frame_queue import Outbox
from kraftwire.capture.connections.kafka_connection import Conversation
from kraftwire.capture.connections.share import NotShared
from kraftwire.capture.framing.headers import api_table
from kraftwire.capture.framing.health import Health
from kraftwire.capture.packets.packet import Packet

__all__ = ["Adoption", "Passage", "pack", "passage", "unpack"]

_NOT_THERE = "a connection was not in the state that was assumed"

# The order of what happens at one place.
_BEGINS, _JOINS, _COMES, _PASSES, _ENDS = range(5)


@dataclass(slots=True)
class Passage:
    """What the reader of a stretch has found, apart from frames; for `pack`.

    `opened` and `closed` are connections with places, `troubled` those with something open, with
    the places and times at which they were reviewed last, in their order. `reserved` is the memory
    of long frames that are unfinished.
    """

    size: int
    times: Times
    trails: list[Trail]
    reviews: list[tuple[int, int]]
    opened: list[tuple[int, Connection]]
    closed: list[tuple[int, Connection]]
    troubled: list[tuple[Connection, int, int]]
    reserved: int
    frames: int
    health: Health
    packets: list[Packet]


def passage(capture: Capture, ahead: Ahead, size: int) -> Passage:
    """Collect what was found in a stretch."""
    connections = capture.connections
    return Passage(
        size,
        ahead.times,
        list(dict.fromkeys(ahead.trails.values())),
        ahead.reviews,
        ahead.opened,
        ahead.closed,
        [(each, ahead.reviewed[each], time_ns) for each, time_ns in connections.troubled.items()],
        ahead.budget.used,
        connections.outbox.count,
        deepcopy(capture.health),
        capture.last_packets(),
    )


class Adoption:
    """A stretch that was read ahead, and the capture as it is before this stretch."""

    def __init__(self, capture: Capture, found: Passage) -> None:
        self._capture = capture
        self._flows = capture.connections.flows
        self._found = found

    def misfit(self, waiting: Callable[[str], int]) -> str:
        """Return what does not fit; empty if everything does.

        `waiting` is how many requests of a connection have no response yet where they are shown.
        """
        found = self._found
        if found.health.tls_connections or found.health.fragments:
            return "there are encrypted connections, or fragments of packets"
        for _, connection in found.opened:
            known = self._flows.get(connection.key)
            if known is not None and not known.connection.is_closed:
                return "a connection that begins was open"
            if waiting(connection.name):
                return "requests to a connection of the same ends have no response"
        troubled = self._capture.connections.troubled.values()
        if troubled and (found.times.go_back or found.times.first < max(troubled)):
            return "times go back while connections are in trouble"
        has_unmatched = bool(found.health.unmatched_responses)
        fit = Fit(self._flows, waiting, self._capture.is_as_before, has_unmatched)
        return next(filter(None, map(fit.misfit, found.trails)), "")

    def carry_out(self) -> None:
        """Take what was left, and continue after the stretch. Raises: NotShared.

        The frames that are complete by that are in the capture's outbox.
        """
        capture, found = self._capture, self._found
        steps: list[tuple[int, int, Any]] = [(at, _BEGINS, each) for at, each in found.opened]
        steps += [(at, _ENDS, each) for at, each in found.closed]
        steps += [(at, _PASSES, time_ns) for at, time_ns in found.reviews]
        followed = [trail for trail in found.trails if trail.connection is not None]
        own = {trail.connection: self._flows[trail.key].connection for trail in followed}
        steps += [(trail.until, _JOINS, trail) for trail in followed]
        for trail in found.trails:
            steps += [(segment[0][2], _COMES, segment) for segment in trail.segments]
        steps.sort(key=lambda step: step[:2])
        for at, kind, what in steps:
            if kind == _COMES:
                capture.replay(what)
            elif kind == _PASSES:
                capture.review(at, what)
            elif kind == _BEGINS:
                capture.join(what, at)
            elif kind == _JOINS:
                self._join(what, own[what.connection])
            else:
                capture.bury(own.get(what, what))
        if found.times.go_back and capture.connections.troubled:
            raise NotShared("times go back while connections are in trouble")
        capture.trouble((own.get(each, each), at, ns) for each, at, ns in found.troubled)
        if found.reserved:
            capture.connections.outbox.budget.take(found.reserved)
        capture.connections.outbox.count += found.frames
        capture.health.add(found.health)
        capture.pass_by(found.size, found.packets)

    def _join(self, trail: Trail, connection: Connection) -> None:
        """Let a connection continue in the state after the stretch."""
        found = trail.connection
        assert found is not None
        if connection.is_fresh:
            self._begin(trail, connection)
        else:
            _come_after(trail, connection.conversation)
        keys = found.key, reverse_key(found.key)
        are_own = all(self._flows[key].connection is connection for key in keys)
        connection.become(found)
        if are_own:
            self._flows[keys[0]], self._flows[keys[1]] = connection.flows

    def _begin(self, trail: Trail, before: Connection) -> None:
        """Let a connection begin with what was found in the stretch."""
        found = trail.connection
        assert found is not None
        server = before.direction(reverse_key(trail.key))
        is_there = before.direction(trail.key).fast_seq == trail.client_from
        if not is_there or trail.server_from not in (-1, server.fast_seq):
            raise NotShared(_NOT_THERE)
        if trail.server_from < 0:
            found.direction(reverse_key(trail.key)).go_on_from(server)
        self._capture.health.kafka_connections += 1


def _come_after(trail: Trail, before: Conversation | None) -> None:
    """Put what was found in the stretch after what was there before. Raises: NotShared."""
    assert trail.connection is not None
    if before is None or before.parked or not before.requests.is_clear:
        raise NotShared(_NOT_THERE)
    responses, after = before.responses, trail.connection.conversation
    is_there = before.requests.flow.fast_seq == trail.client_from and responses.is_cut
    if trail.server_from >= 0:
        is_next = responses.is_clear and responses.flow.fast_seq == trail.server_from
        is_there = is_there and is_next and not before.pending
    if not is_there or responses.flow.fast_seq < 0:
        raise NotShared(_NOT_THERE)
    if after is not None:
        after.come_after(before)
        if trail.server_from < 0:
            after.go_on_from(before)


# -- sending ---------------------------------------------------------------------------------------


def pack(what: object, outbox: Outbox) -> bytes:
    """Pickle something, with the objects that all connections of a capture share left out."""
    names = {id(each): name for name, each in enumerate(_shared(outbox))}
    out = io.BytesIO()
    pickler = pickle.Pickler(out, pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = lambda each: names.get(id(each))  # type: ignore[method-assign]
    pickler.dump(what)
    return out.getvalue()


def unpack(data: bytes, outbox: Outbox) -> Any:
    """Return what was packed, with the objects of a capture here in place of those left out."""
    shared = _shared(outbox)
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = shared.__getitem__  # type: ignore[method-assign]
    return unpickler.load()


def _shared(outbox: Outbox) -> Sequence[object]:
    return outbox, outbox.health, outbox.health.bytes, outbox.budget, api_table()
