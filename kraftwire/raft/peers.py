"""Which peers can be asked now: one request each at a time, and a pause after a failure.

Shape: peers are known by the id of their `Destination`, bootstrap servers included. Each is ready,
awaiting an answer, or backing off; a peer never heard of is ready.

Source: Kafka's `RequestManager`; R-NET-4, R-NET-6, R-RESP-9, R-LOOP-2.
"""

from __future__ import annotations

__all__ = ["Peers"]


class _Peer:
    """The request in flight (-1 for none) and since when, and how often in a row it failed."""

    __slots__ = ("failures", "is_settled", "request_id", "since_ms")

    def __init__(self) -> None:
        self.request_id = -1
        self.since_ms = 0
        self.failures = 0
        self.is_settled = True


class Peers:
    """The state of the connection to every peer, for the present role."""

    __slots__ = ("_backing_off", "_max_ms", "_owners", "_peers", "_timeout_ms", "_wait_ms")

    def __init__(
        self,
        retry_backoff_ms: int,
        retry_backoff_max_ms: int,
        request_timeout_ms: int | None = None,
    ) -> None:
        """Begin with everybody ready.

        Units: the pause after a failure, doubled for each further one in a row up to the maximum,
        as KIP-595 has it (R-NET-4 knows one value only: then both are the same). With a time-out a
        request is given up after so long even if nobody reports that it failed.
        """
        self._wait_ms = retry_backoff_ms
        self._max_ms = max(retry_backoff_ms, retry_backoff_max_ms)
        self._timeout_ms = request_timeout_ms
        self._peers: dict[int, _Peer] = {}
        self._owners: dict[int, _Peer] = {}
        self._backing_off: dict[int, int] = {}

    def is_ready(self, peer_id: int, now_ms: int) -> bool:
        """Whether a request may be sent."""
        peer = self._peers.get(peer_id)
        if peer is None:
            return True
        if peer.request_id >= 0:
            return self._is_overdue(peer, now_ms)
        until = self._backing_off.get(peer_id)
        return until is None or now_ms >= until

    def any_in_flight(self, now_ms: int) -> bool:
        """Whether any answer is awaited (R-FET-2)."""
        if not self._owners:
            return False
        return any(not self._is_overdue(peer, now_ms) for peer in self._owners.values())

    def sent(self, peer_id: int, request_id: int, now_ms: int) -> None:
        """Note a request; one sent before is not awaited any more."""
        peer = self._peers.get(peer_id)
        if peer is None:
            peer = self._peers[peer_id] = _Peer()
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
        if peer.is_settled:
            peer.failures = 0
        peer.request_id = request_id
        peer.since_ms = now_ms
        self._owners[request_id] = peer

    def answered(self, request_id: int) -> bool:
        """Note an answer; returns whether it is the current one, else it must be dropped.

        Order: `failed` comes after this, if the answer turns out to be a failure.
        """
        peer = self._owners.pop(request_id, None)
        if peer is None:
            return False
        peer.request_id = -1
        peer.is_settled = True
        return True

    def failed(self, peer_id: int, now_ms: int) -> None:
        """Leave a peer alone for a while."""
        peer = self._peers.get(peer_id)
        if peer is None:
            peer = self._peers[peer_id] = _Peer()
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
            peer.request_id = -1
        # Doubling stops long before the number could grow large.
        wait = min(self._wait_ms << min(peer.failures, 16), self._max_ms)
        peer.failures += 1
        peer.is_settled = False
        self._backing_off[peer_id] = now_ms + wait

    def reset(self) -> None:
        """Forget requests and failures: a new role begins with everybody ready (R-NET-6)."""
        self._peers.clear()
        self._owners.clear()
        self._backing_off.clear()

    def next_due_ms(self, now_ms: int) -> int | None:
        """When a peer becomes ready next without an answer; None if none will."""
        if not self._backing_off and self._timeout_ms is None:
            return None
        times: list[int] = []
        if self._backing_off:
            self._backing_off = {
                peer_id: until for peer_id, until in self._backing_off.items() if until > now_ms
            }
            times += self._backing_off.values()
        if self._timeout_ms is not None:
            ends = (peer.since_ms + self._timeout_ms for peer in self._owners.values())
            times += (end for end in ends if end > now_ms)
        return min(times, default=None)

    def _is_overdue(self, peer: _Peer, now_ms: int) -> bool:
        return self._timeout_ms is not None and now_ms - peer.since_ms >= self._timeout_ms
