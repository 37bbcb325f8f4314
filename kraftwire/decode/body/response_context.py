"""What earlier frames reveal about later ones: SASL mechanisms, protocol types, embedded requests.

A `Memory` keeps what lasts. This module keeps what requests reveal about their responses; of
requests that are never answered it forgets the oldest first.
"""

from __future__ import annotations

from typing import Any

from kraftwire.decode.body.bodies import Payload
from kraftwire.decode.body.capture_context import Memory, note
from kraftwire.decode.body.payload_view import FrameContext
from kraftwire.errors import WireError
from kraftwire.limits import CONTEXTS_MAX
from kraftwire.protocol.headers import peek_request

__all__ = ["TELLING", "ResponseContexts", "needs_learning"]

_JOIN_GROUP = 11
_SYNC_GROUP = 14
_SASL_HANDSHAKE = 17
_API_VERSIONS = 18
_SASL_AUTHENTICATE = 36
_ENVELOPE = 58

# Metadata, CreateTopics, DeleteTopics and DescribeTopicPartitions carry the names of topics.
_TOPICS = frozenset({3, 19, 20, 75})
TELLING = _TOPICS | {
    _JOIN_GROUP, _SYNC_GROUP, _SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE, _ENVELOPE,
}  # fmt: skip

_NO_CONTEXT = FrameContext()


def names_topics(api_key: int) -> bool:
    """Whether responses of an API carry names of topics; its requests explain nothing."""
    return api_key in _TOPICS


def needs_learning(api_key: int | None) -> bool:
    """Whether frames of an API reveal something about others, or depend on others."""
    return api_key in TELLING


class ResponseContexts:
    """Learns from frames, in order of completion; `memory` is what lasts."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._waiting: dict[tuple[str, int], FrameContext] = {}

    def of_request(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a request, and note what it reveals about its response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return FrameContext(mechanism=self.memory.mechanisms.get(connection))
        context = self._context_of(connection, payload.api_key, payload.body)
        if context is not _NO_CONTEXT and payload.header is not None:
            if len(self._waiting) >= CONTEXTS_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[connection, payload.header.correlation_id] = context
        return context

    def of_response(self, connection: str, payload: Payload) -> FrameContext:
        """Return the context of a response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return FrameContext(mechanism=self.memory.mechanisms.get(connection))
        if payload.body is not None:
            if payload.api_key in _TOPICS:
                self.memory.topics.learn(payload.body, payload.body_version)
            elif payload.api_key == _API_VERSIONS:
                self.memory.note_server(connection, payload.body)
        if not self._waiting or payload.header is None:
            return _NO_CONTEXT
        return self._waiting.pop((connection, payload.header.correlation_id), _NO_CONTEXT)

    def mechanism(self, connection: str) -> str | None:
        """The SASL mechanism that a connection has agreed on."""
        return self.memory.mechanisms.get(connection)

    def _context_of(self, connection: str, api_key: int | None, body: Any) -> FrameContext:
        if body is None:
            return _NO_CONTEXT
        if api_key == _SASL_HANDSHAKE:
            note(self.memory.mechanisms, connection, body.mechanism)
        elif api_key == _API_VERSIONS:
            self.memory.note_client(connection, body)
        elif api_key == _JOIN_GROUP:
            note(self.memory.protocol_types, body.group_id, body.protocol_type)
            return FrameContext(protocol_type=body.protocol_type)
        elif api_key == _SYNC_GROUP:
            return FrameContext(protocol_type=self.memory.protocol_types.get(body.group_id))
        elif api_key == _ENVELOPE:
            try:
                return FrameContext(embedded_api=peek_request(body.request_data))
            except WireError:
                return _NO_CONTEXT
        return _NO_CONTEXT
