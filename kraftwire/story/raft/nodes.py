"""The nodes at the ends of connections: their silences, and who closed or reset a connection."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, product, takewhile
from operator import itemgetter
from typing import Any

from kraftwire.capture.framing.frames import Ending, RawFrame, Request
from kraftwire.capture.recorded import HostPair, Recordings, host_pair
from kraftwire.decode.text import ids_text
from kraftwire.limits import RAFT_EVENT_COUNT_MAX, RAFT_PENDING_COUNT_MAX
from kraftwire.messages.controller_registration_request import ControllerRegistrationRequest
from kraftwire.protocol.endpoint import address_text
from kraftwire.story.raft.model import NodeId, RaftEvent, Silence

# A replica fetches at least every 500 ms (the wait of a Fetch). Between two requests may be a time
# without a recording that is too short to be noted (`PAUSE_NS`); longer than that is unusual.
SILENCE_S = 1.8

# Silence is only unusual for a node that was seen without a pause for this long and in this many
# frames. A capture at one node's interface shows the others only now and then.
_HEARD_S = 2.0
_HEARD_COUNT = 6

# Less than any pause.
_MOMENT_S = 0.001

# Time for requests that were in flight, or waiting at the node, when it fell silent.
_ON_THE_WAY_S = 2.0

# A node answers the next request within this time.
_BACK_S = 1.0


class Nodes:
    """Gathers the nodes of a capture and their silences."""

    def __init__(self, recordings: Recordings) -> None:
        self.recordings = recordings
        self.kinds: dict[NodeId, str] = {}
        self.silences: list[Silence] = []
        self._servers: dict[str, int] = {}
        self._clients: dict[str, int] = {}
        self._last_seen: dict[NodeId, float] = {}
        # Node -> since when, and in how many frames, it was seen without a pause.
        self._heard: dict[NodeId, tuple[float, int]] = {}
        # Node -> the server of its last request, until that is answered.
        self._waits_for: dict[NodeId, str] = {}
        # (connection, correlation id) -> (server, time); the oldest requests are forgotten first.
        self._pending: OrderedDict[tuple[str, int | None], tuple[str, float, Request | None]]
        self._pending = OrderedDict()

    def learn_server(self, endpoint: str, node: int) -> None:
        """Note which node listens on "host:port"."""
        if node >= 0:
            self._servers[endpoint] = node

    def learn_endpoints(self, endpoints: Iterable[tuple[int, str, int]]) -> None:
        """Note (node id, host, port) of an answer or record, unless traffic has shown otherwise."""
        for node, host, port in endpoints:
            self._servers.setdefault(address_text((host, port)), node)

    def learn_client(self, frame: RawFrame, node: int) -> None:
        """Note which node opened a connection."""
        if node >= 0:
            self._clients[frame.connection] = node

    def on_registration(self, frame: RawFrame, body: Any) -> None:
        """Add a registration of a broker or controller, or a heartbeat."""
        kind = "controller" if isinstance(body, ControllerRegistrationRequest) else "broker"
        node = getattr(body, f"{kind}_id")
        self.learn_client(frame, node)
        self.kinds.setdefault(node, kind)

    def server(self, frame: RawFrame) -> NodeId:
        """Return the node that listens."""
        return self._servers.get(frame.server, frame.server)

    def client(self, frame: RawFrame) -> NodeId | None:
        """Return the node that opened the connection; None if it is unknown or not a node."""
        return self._clients.get(frame.connection)

    def ends(self, connection: str) -> tuple[NodeId | None, NodeId]:
        """Return the nodes at both ends, the client first, or None if it is no known node."""
        server = connection.rpartition("-")[2]
        return self._clients.get(connection), self._servers.get(server, server)

    def on_frame(self, frame: RawFrame) -> None:
        """Note that the sender of a frame is alive.

        Order: after the body has shown the sender. Frames that waited for missing packets may come
        late, with the time at which they were on the wire.
        """
        if frame.is_request:
            waiting = frame.server, frame.time, frame.request
            self._pending[frame.connection, frame.correlation_id] = waiting
            if len(self._pending) > RAFT_PENDING_COUNT_MAX:
                self._pending.popitem(last=False)
            sender = self._clients.get(frame.connection)
            if sender is not None:
                self._sign_of_life(sender, frame.time)
                self._waits_for[sender] = frame.server
            return
        client = self._clients.get(frame.connection)
        if client is not None and self._waits_for.get(client) == frame.server:
            # The node had nothing to send before this answer.
            del self._waits_for[client]
            self._last_seen[client] = max(frame.time, self._last_seen.get(client, frame.time))
        server = self._servers.get(frame.server)
        if server is not None:
            self._sign_of_life(server, frame.time)
        self._pending.pop((frame.connection, frame.correlation_id), None)

    def finish(self, end: float, leaders: Sequence[tuple[float, NodeId]] = ()) -> None:
        """Complete the silences at the last frame, and keep what of them was recorded.

        `leaders` are known, each with the time from which it led. A node that has a new leader
        speaks to that one, and is not heard unless what they say is recorded. A leader speaks to
        those that ask it, and is not silent where none of them is recorded or they are silent, too.
        """
        for node, last in list(self._last_seen.items()):
            if end - last > SILENCE_S:
                self._note_silence(node, last, None)
        pairs, hosts = self._ways()
        users: dict[NodeId | None, set[NodeId]] = defaultdict(set)
        for connection, client in self._clients.items():
            users[self._servers.get(connection.rpartition("-")[2])].add(client)

        def is_heard_by(silence: Silence, leader: NodeId, time: float) -> bool:
            if silence.node == leader:
                return self._is_asked(silence, users[leader], end)
            ends = product(hosts[silence.node], hosts[leader])
            return bool(users[leader]) and any(
                self.recordings.shows((min(pair), max(pair)), time) for pair in ends
            )

        found = []
        for each in self.silences:
            if not self._is_waiting(each):
                earlier = [known for known in leaders if known[0] <= each.start]
                later = [known for known in leaders if known[0] > each.start - _ON_THE_WAY_S]
                if earlier and max(earlier, key=itemgetter(0))[1] == each.node:
                    later.append((each.start, each.node))
                unheard = (time for time, who in later if not is_heard_by(each, who, time))
                last = max(each.start, min(unheard, default=end))
                if self._is_recorded(each, min(last, end), pairs[each.node]):
                    found.append(each)
        self.silences = found
        self.silences.sort(key=lambda each: each.start)
        for silence in self.silences:
            first, last = silence.start - _ON_THE_WAY_S, silence.until - _ON_THE_WAY_S
            silence.unanswered = sum(
                first <= sent <= last and self._servers.get(server) == silence.node
                for server, sent, facts in self._pending.values()
                if facts is None or facts.lost is None
            )

    def _is_asked(self, silence: Silence, users: set[NodeId], end: float) -> bool:
        """Return whether a request waited for a node, or one that uses its listener was heard."""
        until = end if silence.end is None else silence.end
        if silence.asked is not None and until - silence.asked > SILENCE_S:
            return True
        silent = {
            each.node for each in self.silences
            if each.start < silence.start + SILENCE_S and (each.end or end) > until - _BACK_S
        }
        return not users <= silent

    def _ways(self) -> tuple[dict[NodeId, set[HostPair]], dict[NodeId, set[str]]]:
        """Return the hosts between which each node was heard, and those that are its own."""
        pairs: dict[NodeId, set[HostPair]] = defaultdict(set)
        hosts: dict[NodeId, set[str]] = defaultdict(set)
        for connection, client in self._clients.items():
            start, _, end = connection.rpartition("-")
            for node, address in ((client, start), (self._servers.get(end), end)):
                if node is not None:
                    pairs[node].add(host_pair(connection))
                    hosts[node].add(address.rpartition(":")[0])
        return pairs, hosts

    def _is_recorded(self, silence: Silence, end: float, pairs: Iterable[HostPair]) -> bool:
        """Limit a silence to what was recorded of it; return whether enough of it was.

        It counts as long as all hosts are recorded between which the node was heard before.
        """
        start, recordings = silence.start, self.recordings
        shown = [pair for pair in pairs if recordings.shows(pair, start)]
        if not shown:
            return False
        stop = end
        if silence.end is not None and silence.end <= end:
            # Where the node is heard again there is a packet: a pause before it is waited through.
            stop = silence.end + _MOMENT_S
        until = min(recordings.until(start, stop, pair) for pair in shown)
        if silence.end is not None and until < silence.end:
            silence.end = None
        silence.until = until if silence.end is None else silence.end
        pauses = [recordings.pauses(start, silence.until, pair) for pair in shown]
        silence.without_packets = max(sum(b - a for a, b in each) for each in pauses)
        return silence.until - start - silence.without_packets > SILENCE_S

    def _sign_of_life(self, node: NodeId, time: float) -> None:
        last = self._last_seen.get(node)
        since, count = self._heard.get(node, (time, 0))
        if last is not None and time < last:
            self._interrupt_silence(node, time)
            self._heard[node] = since, count + 1
            return
        if last is not None and time - last > SILENCE_S:
            self._note_silence(node, last, time)
            since, count = time, 0
        self._heard[node] = since, count + 1
        self._last_seen[node] = time

    def _interrupt_silence(self, node: NodeId, time: float) -> None:
        """Split a silence in two at a frame of the node that was held back and came late."""
        for index, each in enumerate(self.silences):
            if each.node == node and each.end is not None and each.start < time < each.end:
                parts = replace(each, end=time), replace(each, start=time)
                is_long = [p.end is None or p.end - p.start > SILENCE_S for p in parts]
                self.silences[index : index + 1] = compress(parts, is_long)
                return

    def _note_silence(self, node: NodeId, start: float, end: float | None) -> None:
        since, count = self._heard.get(node, (start, 0))
        if start - since < _HEARD_S or count < _HEARD_COUNT:
            return
        waits_for = self._waits_for.get(node)
        server = None if waits_for is None else self._servers.get(waits_for)
        first = start - _ON_THE_WAY_S
        recent = takewhile(lambda each: each[1] > first, reversed(self._pending.values()))
        asked = min((sent for at, sent, _ in recent if self._servers.get(at) == node), default=None)
        if len(self.silences) < RAFT_EVENT_COUNT_MAX:
            self.silences.append(Silence(node, start, end, waits_for=server, asked=asked))

    def _is_waiting(self, silence: Silence) -> bool:
        """Return whether a node was silent only because it waited for another silent node."""
        if silence.waits_for is None or silence.end is None:
            return False
        return any(
            each.node == silence.waits_for
            and each.waits_for != silence.node
            and each.start < silence.end
            and (each.end is None or each.end > silence.start)
            for each in self.silences
        )


_SECOND_NS = 1_000_000_000

# Ends within this time are one event: a process that stops closes all its connections at once.
_TOGETHER_S = 1.0

# Replicas use a connection at least every half second. After this pause it is idle.
_IDLE_S = 30.0

_LAST = 1 << 32


@dataclass(slots=True)
class _Group:
    """Connections that one node ends within a short time."""

    time: float
    is_reset: bool
    peers: set[NodeId] = field(default_factory=set)
    count: int = 0


class Endings:
    """Gathers the ends of connections between nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._groups: dict[NodeId, list[_Group]] = {}
        self._count = 0
        # Connection -> time of its last frame about the quorum.
        self._used: dict[str, float] = {}

    def on_use(self, frame: RawFrame) -> None:
        """Note a frame about the quorum."""
        self._used[frame.connection] = frame.time

    def on_ending(self, ending: Ending) -> None:
        """Add the end of a connection.

        Order: after the frames before it, which show the nodes at both ends.
        """
        time = ending.time_ns / _SECOND_NS
        used = self._used.pop(ending.connection, None)
        is_idle = used is None or time - used > _IDLE_S
        client, server = self._nodes.ends(ending.connection)
        if client is None or client == server or (is_idle and not ending.is_reset):
            return
        if self._count >= RAFT_EVENT_COUNT_MAX:
            return
        node, peer = (client, server) if ending.is_by_client else (server, client)
        groups = self._groups.setdefault(node, [])
        if not groups or time - groups[-1].time > _TOGETHER_S:
            groups.append(_Group(time, ending.is_reset))
            self._count += 1
        groups[-1].peers.add(peer)
        groups[-1].count += 1
        groups[-1].is_reset |= ending.is_reset

    def events(self) -> Iterator[RaftEvent]:
        """Yield an event for each group of connections that a node ended at once."""
        for node, groups in self._groups.items():
            for group in groups:
                peers = sorted(group.peers, key=_order)
                count = "its connection" if group.count == 1 else f"{group.count} connections"
                verb = "resets" if group.is_reset else "closes"
                details = {"peers": peers, "count": group.count, "isReset": group.is_reset}
                text = f"{verb} {count} with {ids_text(peers)}"
                yield RaftEvent(group.time, "disconnect", text, None, node, details)


def _order(node: NodeId) -> tuple[int, str]:
    return (node, "") if isinstance(node, int) else (_LAST, node)
