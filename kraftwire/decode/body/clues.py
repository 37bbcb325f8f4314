"""What earlier frames tell about later ones: SASL mechanisms, protocol types, embedded requests.

Holds a few words for each connection and each request that waits for its response; requests that
are never answered are forgotten, oldest first.
"""

from __future__ import annotations

from typing import Any

from kraftwire.decode.body.bodies import Payload
from kraftwire.decode.body.view import Clue
from kraftwire.errors import WireError
from kraftwire.limits import CLUES_MAX
from kraftwire.protocol.headers import peek_request

__all__ = ["Clues", "needs_learning"]

_JOIN_GROUP = 11
_SYNC_GROUP = 14
_SASL_HANDSHAKE = 17
_SASL_AUTHENTICATE = 36
_ENVELOPE = 58

# Metadata, CreateTopics, DeleteTopics and DescribeTopicPartitions tell the names of topics.
_TELLING = frozenset(
    {_JOIN_GROUP, _SYNC_GROUP, _SASL_HANDSHAKE, _SASL_AUTHENTICATE, _ENVELOPE, 3, 19, 20, 75}
)

_NO_CLUE = Clue()


def needs_learning(api_key: int | None) -> bool:
    """Whether frames of an API tell something, or need to be told something."""
    return api_key in _TELLING


class Clues:
    """The memory of a run; frames are told in order of completion."""

    def __init__(self) -> None:
        self._mechanisms: dict[str, str] = {}
        self._protocol_types: dict[str, str] = {}
        self._waiting: dict[tuple[str, int], Clue] = {}

    def of_request(self, connection: str, payload: Payload) -> Clue:
        """The clue to a request; notes what it tells about its response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return Clue(mechanism=self._mechanisms.get(connection))
        clue = self._told_by(connection, payload.api_key, payload.body)
        if clue is not _NO_CLUE and payload.header is not None:
            if len(self._waiting) >= CLUES_MAX:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[connection, payload.header.correlation_id] = clue
        return clue

    def of_response(self, connection: str, payload: Payload) -> Clue:
        """The clue to a response."""
        if payload.api_key == _SASL_AUTHENTICATE:
            return Clue(mechanism=self._mechanisms.get(connection))
        if not self._waiting or payload.header is None:
            return _NO_CLUE
        return self._waiting.pop((connection, payload.header.correlation_id), _NO_CLUE)

    def mechanism(self, connection: str) -> str | None:
        """The SASL mechanism that a connection has agreed on."""
        return self._mechanisms.get(connection)

    def _told_by(self, connection: str, api_key: int | None, body: Any) -> Clue:
        if body is None:
            return _NO_CLUE
        if api_key == _SASL_HANDSHAKE:
            self._note(self._mechanisms, connection, body.mechanism)
        elif api_key == _JOIN_GROUP:
            self._note(self._protocol_types, body.group_id, body.protocol_type)
            return Clue(protocol_type=body.protocol_type)
        elif api_key == _SYNC_GROUP:
            return Clue(protocol_type=self._protocol_types.get(body.group_id))
        elif api_key == _ENVELOPE:
            try:
                return Clue(embedded_api=peek_request(body.request_data))
            except WireError:
                return _NO_CLUE
        return _NO_CLUE

    @staticmethod
    def _note(table: dict[str, str], key: str, value: str) -> None:
        if len(table) >= CLUES_MAX and key not in table:
            del table[next(iter(table))]
        table[key] = value
