"""How a request is refused: whole, or the parts of it that a rule selects.

Fetch is special: the requests of a session do not list their partitions. While a rule selects parts
of Fetch, sessions are declined, which Kafka may do at any time (KIP-227): a request of one is
answered with FETCH_SESSION_ID_NOT_FOUND, so that the client lists everything in its next one, and
such a full request is passed on without its wish for a session.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

from kraftwire.faults.fault import Drop, Fault
from kraftwire.faults.selectors import Selector
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.produce_request import ProduceRequest
from kraftwire.protocol.answers import answers_of
from kraftwire.protocol.entities import TopicName, request_level
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.partial_refusals import PartialRefusal
from kraftwire.protocol.refusals import Error, is_at_top, refusal
from kraftwire.wire.message import Message

TEXT = "refused by a rule"
"""The message of an error, where a response has a field for it."""

# What Kafka says of a partition, a topic or another element, never of a request with many of them.
OF_ELEMENTS = frozenset(
    {
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.SNAPSHOT_NOT_FOUND,
        ErrorCode.POSITION_OUT_OF_RANGE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE,
        ErrorCode.INELIGIBLE_REPLICA,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


@dataclass(frozen=True, slots=True)
class Refused:
    """What is refused of a request: all, with an `answer`; or a part, and the rest is passed on.

    Without an answer a producer that expects none learns it from the end of its connection.
    """

    answer: Message | None = None
    part: PartialRefusal | None = None
    drop: Drop | None = None

    @property
    def passed(self) -> Message | None:
        """What is carried out."""
        return None if self.part is None else self.part.passed


def refuse(
    request: Message, version: int, fault: Fault, selector: Selector, topic_name: TopicName
) -> Refused | None:
    """Refuse what a selector selects of a request; None if the response has no place for it.

    Without names in the selector that is all of it, as an error that is about elements in each.
    """
    if fault.error is None:
        return None
    error = Error(fault.error, TEXT)
    found = None
    if fault.is_whole:
        found = _whole(request, version, error)
    else:
        found = _selected(request, version, error, selector, topic_name)
    if found is None or not (isinstance(request, ProduceRequest) and request.acks == 0):
        return found
    return Refused(drop="before") if found.part is None else Refused(None, found.part, "after")


def _selected(
    request: Message, version: int, error: Error, selector: Selector, topic_name: TopicName
) -> Refused | None:
    is_about_elements = error.code in OF_ELEMENTS and bool(answers_of(request.API_KEY, version))
    root = request_level(request.API_KEY, version).own_context(request, {}, topic_name)
    found = None
    if selector.decide(root) and not is_about_elements:
        found = _whole(request, version, error)
    if found is not None:
        return found
    part = PartialRefusal(
        request, version, selector.decide, error, topic_name, is_innermost=is_about_elements
    )
    if part.refuses_nothing:
        return _whole(request, version, error)
    if part.passed is None:
        return Refused(part.refused)
    _answer_at_once(part)
    return Refused(part=part)


def has_place(api_key: int, version: int) -> bool:
    """Return whether a response can carry an error at all."""
    return is_at_top(api_key, version) or any(
        each.has_errors for each in answers_of(api_key, version)
    )


def _whole(request: Message, version: int, error: Error) -> Refused | None:
    answer = refusal(request, version, lambda _: error, error)
    answers = answers_of(request.API_KEY, version)
    has_error = is_at_top(request.API_KEY, version) or any(
        getattr(answer, each.attribute) for each in answers
    )
    return Refused(answer) if has_error else None


def _answer_at_once(part: PartialRefusal) -> None:
    """Keep a server from waiting for records: an error is sent at once."""
    passed: Any = part.passed
    if hasattr(passed, "max_wait_ms"):
        part.passed = passed = copy(passed)
        passed.max_wait_ms = 0


def list_partitions(request: Message) -> Message | None:
    """Return a request that lists all that it is about: this one, unless it is for a session.

    A full Fetch then opens no session, and ends the one that it is of. None for one that is within
    a session.
    """
    if not isinstance(request, FetchRequest) or request.session_epoch < 0:
        return request
    if request.session_epoch > 0:
        return None
    declining = copy(request)
    declining.session_epoch = -1
    return declining


def without_session() -> FetchResponse:
    """Return the answer that makes a client list all partitions in its next request."""
    return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
