"""Requests per peer: one in flight each, and a pause after a failure.

Peers are identified by the key of their `Destination`, bootstrap servers included. Each is ready,
awaiting an answer, or backing off; an unknown peer is ready.

Source: Kafka's `RequestManager`; R-NET-4, R-NET-6, R-RESP-9, R-LOOP-2.
"""

from __future__ import annotations

from kraftwire.raft.voters import ReplicaKey


class _Peer:
    """The request in flight (-1 for none), and the number of consecutive failures."""

    __slots__ = ("failures", "is_settled", "request_id")

    def __init__(self) -> None:
        self.request_id = -1
        self.failures = 0
        self.is_settled = True


class Peers:
    """The state of the connection to every peer, for the current role."""

    __slots__ = ("_backing_off", "_due_ms", "_max_ms", "_owners", "_peers", "_wait_ms")

    def __init__(self, retry_backoff_ms: int, retry_backoff_max_ms: int) -> None:
        """Begin with all peers ready.

        Units: milliseconds of the pause after a failure, doubled for each further consecutive one
        up to the maximum, as KIP-595 specifies (R-NET-4 has a single value: then both are equal).
        """
        self._wait_ms = retry_backoff_ms
        self._max_ms = max(retry_backoff_ms, retry_backoff_max_ms)
        self._peers: dict[ReplicaKey, _Peer] = {}
        self._owners: dict[int, _Peer] = {}
        self._backing_off: dict[ReplicaKey, int] = {}
        # When the first of these pauses ends, None without any.
        self._due_ms: int | None = None

    def is_ready(self, key: ReplicaKey, now_ms: int) -> bool:
        """Return whether a request may be sent."""
        peer = self._peers.get(key)
        if peer is None:
            return True
        if peer.request_id >= 0:
            return False
        until = self._backing_off.get(key)
        return until is None or now_ms >= until

    def any_in_flight(self) -> bool:
        """Return whether any answer is awaited (R-FET-2)."""
        return bool(self._owners)

    def sent(self, key: ReplicaKey, request_id: int) -> None:
        """Record a request; an earlier one is no longer awaited."""
        peer = self._peer(key)
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
        if peer.is_settled:
            peer.failures = 0
        peer.request_id = request_id
        self._owners[request_id] = peer

    def answered(self, request_id: int) -> bool:
        """Record an answer; returns whether it is the awaited one, else it must be dropped.

        Order: `failed` comes after this, if the answer turns out to be a failure.
        """
        peer = self._owners.pop(request_id, None)
        if peer is None:
            return False
        peer.request_id = -1
        peer.is_settled = True
        return True

    def failed(self, key: ReplicaKey, now_ms: int) -> None:
        """Back off from a peer."""
        peer = self._peer(key)
        if peer.request_id >= 0:
            del self._owners[peer.request_id]
            peer.request_id = -1
        # Cap the exponent: the maximum is reached long before.
        wait = min(self._wait_ms << min(peer.failures, 16), self._max_ms)
        peer.failures += 1
        peer.is_settled = False
        self._backing_off[key] = now_ms + wait
        self._due_ms = min(self._backing_off.values())

    def failures(self, key: ReplicaKey) -> int:
        """Return the number of consecutive failed requests to a peer."""
        peer = self._peers.get(key)
        return peer.failures if peer is not None and not peer.is_settled else 0

    def reset(self) -> None:
        """Forget requests and failures: a new role begins with all peers ready (R-NET-6)."""
        self._peers.clear()
        self._owners.clear()
        self._backing_off.clear()
        self._due_ms = None

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next back-off ends; None if no peer is backing off."""
        due = self._due_ms
        if due is not None and due <= now_ms:
            waiting = {key: until for key, until in self._backing_off.items() if until > now_ms}
            self._backing_off = waiting
            due = self._due_ms = min(waiting.values(), default=None)
        return due

    def _peer(self, key: ReplicaKey) -> _Peer:
        peer = self._peers.get(key)
        if peer is None:
            peer = self._peers[key] = _Peer()
        return peer
