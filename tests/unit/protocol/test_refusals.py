"""Where errors stand in responses, for every API and version: by the schemas, and in parts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftwire import messages
from kraftwire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.protocol.answers import Answers, answers_of
from kraftwire.protocol.entities import PARTITION, TOPIC, Context, contexts
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.partial_refusals import Decide, PartialRefusal
from kraftwire.protocol.refusals import SUCCESS, Error, refusal
from kraftwire.wire.facts import StructFacts
from kraftwire.wire.message import Message
from tests.support.messages.random_messages import random_message

TIMED_OUT = Error(ErrorCode.REQUEST_TIMED_OUT)
ALL_VERSIONS = [
    pytest.param(key, version, id=f"{name} v{version}")
    for key, name in messages.API_NAMES.items()
    for version in range(messages.API_VERSIONS[key][0], messages.API_VERSIONS[key][1] + 1)
]
PARTED = [each for each in ALL_VERSIONS if answers_of(*each.values)]
# Places of errors that are never those of a refusal.
_OTHER_ERRORS = {"acknowledgeErrorCode", "topicConfigErrorCode"}
# Versions whose response has no place for an error.
WITHOUT_PLACE = {("DescribeLogDirs", version) for version in range(3)}


def errors(facts: StructFacts, value: Any, version: int) -> Iterator[int]:
    """Yield all error codes in a message, found by the names of fields in the schema."""
    for field in facts.fields:
        if version not in field.versions:
            continue
        found = getattr(value, field.attribute)
        if field.is_error_code and field.name not in _OTHER_ERRORS:
            yield found
        elif field.struct is not None and found is not None:
            for each in found if field.is_array else (found,):
                yield from errors(field.struct, each, version)


def request_of(key: int, version: int, seed: int = 0) -> Message:
    """Return a random request, with elements in all arrays."""
    source = random.Random(f"{key}/{version}/{seed}")
    while True:
        made = random_message(
            messages.request_class(key), version, source, letters=["a", "b", "c", "d"]
        )
        if all(_has_elements(made, path) for path in _paths(key, version)):
            return made


def _paths(key: int, version: int) -> list[tuple[str, ...]]:
    """Return the ways to the innermost arrays whose elements are answered."""
    found: list[tuple[Answers, tuple[str, ...]]] = [(each, ()) for each in answers_of(key, version)]
    paths = []
    while found:
        answers, path = found.pop()
        path = (*path, *answers.routes[0].path)
        paths.append(path)
        found += [(each, path) for each in answers.inner]
    return paths


def _has_elements(value: Any, path: tuple[str, ...]) -> bool:
    elements = getattr(value, path[0])
    return bool(elements) and (
        len(path) == 1 or all(_has_elements(each, path[1:]) for each in elements)
    )


@pytest.mark.parametrize(("key", "version"), ALL_VERSIONS)
def test_an_error_of_the_whole_request_has_a_place(key: int, version: int) -> None:
    """In what is sent: at the top, or in each element; nothing else that can be missed."""
    response = refusal(request_of(key, version), version, lambda _: TIMED_OUT, TIMED_OUT)
    sent, _ = type(response).decode(response.encode(version), version)
    found = list(errors(sent.facts().root, sent, version))
    if (messages.API_NAMES[key], version) in WITHOUT_PLACE:
        assert found == []
    else:
        assert TIMED_OUT.code in found
        is_at_top = any(
            each.name == "errorCode" and version in each.versions
            for each in sent.facts().root.fields
        )
        assert is_at_top or set(found) == {TIMED_OUT.code}


def flat(response: Message, version: int) -> Counter[tuple[Any, ...]]:
    """Return the errors in the elements of a response, each with all that names its element."""
    return Counter(_flat(response.facts().root, response, version, None))


def _flat(
    facts: StructFacts, value: Any, version: int, outer: tuple[Any, ...] | None
) -> Iterator[Any]:
    fields = [each for each in facts.fields if version in each.versions]
    codes = [each for each in fields if each.is_error_code and each.name not in _OTHER_ERRORS]
    scalars = [each for each in fields if each.struct is None and not each.is_array]
    plain = [each.attribute for each in scalars if not each.is_error_code]
    names = [getattr(value, name) for name in plain if name != "error_message"]
    here = () if outer is None else (*outer, *names)
    if outer is not None:
        yield from ((*here, getattr(value, each.attribute)) for each in codes)
    for field in fields:
        if field.struct is not None and field.is_array:
            for each in getattr(value, field.attribute) or ():
                yield from _flat(field.struct, each, version, here)


def shuffled(response: Any, version: int) -> Message:
    """Return a response whose elements are in another order, where names say which is which."""
    for answers in answers_of(response.API_KEY, version):
        elements = getattr(response, answers.attribute)
        if answers.targets:
            random.Random(version).shuffle(elements)
    copied: Message = response
    return copied


def carried_out(request: Message, version: int) -> Message:
    """Return the response of a server that succeeds with every element."""
    return refusal(request, version, lambda _: SUCCESS)


def _freeze(context: Context) -> frozenset[Any]:
    return frozenset(context.items())


@pytest.mark.parametrize(("key", "version"), PARTED)
def test_a_part_is_refused_and_the_rest_carried_out(key: int, version: int) -> None:
    """Every second thing that the request names; what is passed on lacks it, the answer has all."""
    request = request_of(key, version)
    before = request.encode(version)
    names = list(dict.fromkeys(map(_freeze, contexts(request, version, bytes.hex))))[1:]
    refused = {each for number, each in enumerate(names) if number % 2}
    innermost = {each for each in refused if not any(each < other for other in names)}

    def decide(context: Context) -> bool | None:
        found = _freeze(context)
        return found in innermost if not any(found < other for other in innermost) else None

    part = _check_parts(request, version, decide)
    assert request.encode(version) == before
    placed = sum(count for each, count in flat(part.refused, version).items() if each[-1])
    left = set(map(_freeze, contexts(part.passed, version, bytes.hex))) if part.passed else set()
    if messages.API_NAMES[key] not in ("ShareFetch", "CreateTopics"):
        # Topics are created whole, not their partitions.
        assert not left & innermost
        assert placed >= len(innermost)


def _check_parts(request: Message, version: int, decide: Decide) -> PartialRefusal:
    whole = flat(carried_out(request, version), version)
    part = PartialRefusal(request, version, decide, TIMED_OUT, bytes.hex)
    if part.passed is None:
        joined = part.refused
    else:
        part.passed.encode(version)
        carried = carried_out(part.passed, version)
        joined = part.join(shuffled(carried, version))
    joined.encode(version)
    found = flat(joined, version)
    # No element is lost or made up, and an error is one that was decided.
    assert Counter(each[:-1] for each in found) == Counter(each[:-1] for each in whole)
    assert {each[-1] for each in found} <= {0, TIMED_OUT.code}
    return part


@pytest.mark.parametrize(("key", "version"), PARTED)
def test_all_parts_are_refused(key: int, version: int) -> None:
    """Then nothing is passed on but what has more to it, and no element succeeds."""
    request = request_of(key, version)
    part = PartialRefusal(request, version, lambda _: True, TIMED_OUT, bytes.hex)
    has_more = messages.API_NAMES[key] in ("Metadata", "ShareFetch", "ShareAcknowledge")
    joined: Any = part.refused
    if has_more and part.passed is not None:
        joined = part.join(carried_out(part.passed, version))
    assert (part.passed is None) is not has_more
    joined.encode(version)
    found = flat(joined, version)
    assert {each[-1] for each in found} == {TIMED_OUT.code}


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_refused_is_not_passed_on_and_comes_back_in_order(data: st.DataObject) -> None:
    """Topics and partitions of Fetch, any of them refused, the rest answered in any order."""
    topics = data.draw(
        st.dictionaries(
            st.sampled_from("abcdef"), st.sets(st.integers(0, 5), min_size=1), min_size=1
        )
    )
    listed = [(name, index) for name, indexes in topics.items() for index in sorted(indexes)]
    chosen = data.draw(st.sets(st.sampled_from(listed)))
    request = FetchRequest(
        topics=[
            FetchTopic(topic=name, partitions=[FetchPartition(partition=i) for i in sorted(found)])
            for name, found in topics.items()
        ]
    )

    def decide(context: Context) -> bool | None:
        if PARTITION not in context:
            return None
        return (context[TOPIC], context[PARTITION]) in chosen

    part = PartialRefusal(request, 12, decide, TIMED_OUT, bytes.hex)
    left = [each for each in listed if each not in chosen]
    passed: Any = part.passed
    if not left:
        assert passed is None
        joined: Any = part.refused
    else:
        assert [(t.topic, p.partition) for t in passed.topics for p in t.partitions] == left
        carried: Any = carried_out(passed, 12)
        carried.responses = data.draw(st.permutations(carried.responses))
        joined = part.join(carried)
    found = [
        (t.topic, p.partition_index, p.error_code) for t in joined.responses for p in t.partitions
    ]
    assert found == [(*each, TIMED_OUT.code if each in chosen else 0) for each in listed]


def _is_topic(name: str) -> Decide:
    return lambda context: context[TOPIC] == name if TOPIC in context else None


def test_topics_that_nobody_listed_are_refused_in_the_answer() -> None:
    """Metadata of all topics; the brokers come from the server, as always."""
    part = PartialRefusal(
        MetadataRequest(topics=None), 12, _is_topic("b"), TIMED_OUT, lambda _: None
    )
    assert part.passed is not None
    answer = MetadataResponse(
        topics=[MetadataResponseTopic(name=name, topic_id=bytes([1]) * 16) for name in "abc"]
    )
    joined: Any = part.join(answer)
    found = [(each.name, each.error_code, each.topic_id[0]) for each in joined.topics]
    assert found == [("a", 0, 1), ("b", 7, 1), ("c", 0, 1)]


def test_brokers_are_asked_for_when_no_topic_is_left() -> None:
    """A client passes over Metadata without brokers; in version 0 no topics would be all.

    librdkafka took an answer of version 0 without brokers for a bad message.
    """
    request = MetadataRequest(topics=[MetadataRequestTopic(name="b")])
    passed: list[Any] = [
        PartialRefusal(request, version, _is_topic("b"), TIMED_OUT, bytes.hex).passed
        for version in (0, 1)
    ]
    assert passed[0] is request
    assert passed[1].topics == []


def test_a_user_that_is_named_twice_is_answered_once() -> None:
    """Deletions and upsertions are two arrays, and one in the response."""
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name="a"), ScramCredentialDeletion(name="b")],
        upsertions=[ScramCredentialUpsertion(name="a")],
    )
    response: Any = refusal(request, 0, lambda _: TIMED_OUT, TIMED_OUT)
    assert [each.user for each in response.results] == ["a", "b"]
