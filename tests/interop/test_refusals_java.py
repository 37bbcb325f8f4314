"""Where errors of whole requests stand in responses, compared with Kafka's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kraftwire import messages
from kraftwire.protocol.answers import Answers, answers_of
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.refusals import Error, refusal
from kraftwire.wire.message import Message
from tests.support.kafka.java import run_java_source
from tests.unit.protocol.test_refusals import ALL_VERSIONS, WITHOUT_PLACE, request_of

TIMED_OUT = Error(ErrorCode.REQUEST_TIMED_OUT)
# Kafka reads only what an authorizer could store, and no damaged records.
_VALID = {
    "resource_type": 2,
    "resource_type_filter": 2,
    "resource_pattern_type": 3,
    "pattern_type_filter": 3,
    "operation": 3,
    "permission_type": 3,
    "records": b"",
    "acks": 1,
}
# Kafka leaves the names of the users out.
_NAMELESS = {"DescribeUserScramCredentials"}


def test_errors_stand_where_kafka_puts_them() -> None:
    """In each version that Kafka reads, with the names of the same elements."""
    cases: list[tuple[int, int, Message]] = []
    for parameters in ALL_VERSIONS:
        key, version = map(int, map(str, parameters.values))
        request = request_of(key, version)
        _make_valid(request)
        cases.append((key, version, request))
    lines = [
        f"{key} {version} {TIMED_OUT.code} {request.encode(version).hex()}"
        for key, version, request in cases
    ]
    answers = run_java_source("Refusals", "\n".join(lines).encode()).decode().splitlines()
    compared = set()
    for (key, version, request), answer in zip(cases, answers, strict=True):
        if answer.startswith("!"):
            continue
        name = messages.API_NAMES[key]
        theirs, _ = messages.response_class(key).decode(bytes.fromhex(answer), version)
        ours = refusal(request, version, lambda _: TIMED_OUT, TIMED_OUT)
        assert _places(ours, version) == _places(theirs, version), f"{name} v{version}"
        compared.add((name, version))
    newest = {(name, messages.API_VERSIONS[key][1]) for key, name in messages.API_NAMES.items()}
    missing = {name for name, version in newest - compared}
    assert missing == {"LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"}
    assert {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)} <= compared & WITHOUT_PLACE


def _make_valid(value: Any) -> None:
    for name in type(value).__slots__:
        found = getattr(value, name)
        if name in _VALID and (name != "acks" or value.NAME == "ProduceRequest"):
            setattr(value, name, _VALID[name])
        for each in found if isinstance(found, list) else ():
            if hasattr(each, "__slots__"):
                _make_valid(each)


def _places(response: Message, version: int) -> set[tuple[Any, ...]]:
    """Return the errors in a response, each with the names of its element."""
    found = set(_in_elements(answers_of(response.API_KEY, version), response, ()))
    return found | {("top", getattr(response, "error_code", 0))}


def _in_elements(
    answers: Sequence[Answers], value: Any, outer: tuple[Any, ...]
) -> Iterator[tuple[Any, ...]]:
    for each in answers:
        for element in getattr(value, each.attribute) or ():
            is_named = not isinstance(value, Message) or value.NAME[:-8] not in _NAMELESS
            # A topic without a name is null or empty.
            names = [getattr(element, name) or "" for name in each.targets if is_named]
            here = (*outer, each.attribute, *names)
            if each.error:
                yield (*here, getattr(element, each.error))
            yield from _in_elements(each.inner, element, here)
