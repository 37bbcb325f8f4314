"""Which peers can be asked now: one request each at a time, and a pause after a failure.

Peers are known by the key of their `Destination`, bootstrap servers included. Each is ready,
awaiting an answer, or backing off; a peer never heard of is ready.

Source: Kafka's `RequestManager`; R-NET-4, R-NET-6, R-RESP-9, R-LOOP-2.
"""

from __future__ import annotations

from kraftwire.raft.voters import ReplicaKey

__all__ = ["Peers"]


class _Peer:
    """The request in flight (-1 for none), and how often in a row requests failed."""

    __slots__ = ("failures", "is_settled", "request_id")

    def __init__(self) -> None:
        self.request_id = -1
        self.failures = 0
        self.is_settled = True


class Peers:
    """The state of the connection to every peer, for the present role."""

    __slots__ = ("_backing_off", "_max_ms", "_owners", "_peers", "_wait_ms")

    def __init__(self, retry_backoff_ms: int, retry_backoff_max_ms: int) -> None:
        """Begin with everybody ready.

        Units: the pause after a failure, doubled for each further one in a row up to the maximum,
        as KIP-595 has it (R-NET-4 knows one value only: then both are the same).
        """
        self._wait_ms = retry_backoff_ms
        self._max_ms = max(retry_backoff_ms, retry_backoff_max_ms)
        self._peers: dict[ReplicaKey, _Peer] = {}
        self._owners: dict[int, _Peer] = {}
        self._backing_off: dict[ReplicaKey, int] = {}

    def is_ready(self, key: ReplicaKey, now_ms: int) -> bool:
        """Whether a request may be sent."""
        peer = self._peers.get(key)
        if peer is None:
            return True
        if peer.request_id >= 0:
            return False
        until = self._backing_off.get(key)
        return until is None or now_ms >= until

    def any_in_flight(self) -> bool:
        """Whether any answer is awaited (R-FET-2)."""
        return bool(self._owners)

    def sent(self, key: ReplicaKey, request_id: int) -> None:
        """Note a request; one sent before is not awaited any more."""
        peer = self._peer(key)
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
        if peer.is_settled:
            peer.failures = 0
        peer.request_id = request_id
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

    def failed(self, key: ReplicaKey, now_ms: int) -> None:
        """Leave a peer alone for a while."""
        peer = self._peer(key)
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
            peer.request_id = -1
        # Doubling stops long before the number could grow large.
        wait = min(self._wait_ms << min(peer.failures, 16), self._max_ms)
        peer.failures += 1
        peer.is_settled = False
        self._backing_off[key] = now_ms + wait

    def failures(self, key: ReplicaKey) -> int:
        """How often in a row requests to a peer have failed, up to now."""
        peer = self._peers.get(key)
        return peer.failures if peer is not None and not peer.is_settled else 0

    def reset(self) -> None:
        """Forget requests and failures: a new role begins with everybody ready (R-NET-6)."""
        self._peers.clear()
        self._owners.clear()
        self._backing_off.clear()

    def next_due_ms(self, now_ms: int) -> int | None:
        """When a peer becomes ready next without an answer; None if none will."""
        if not self._backing_off:
            return None
        due = min(self._backing_off.values())
        if due > now_ms:
            return due
        self._backing_off = {
            key: until for key, until in self._backing_off.items() if until > now_ms
        }
        return min(self._backing_off.values(), default=None)

    def _peer(self, key: ReplicaKey) -> _Peer:
        peer = self._peers.get(key)
        if peer is None:
            peer = self._peers[key] = _Peer()
        return peer
