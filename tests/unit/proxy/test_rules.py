"""Rules carried out on a proxied connection: what is passed on, what is answered, and when."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRule, FaultRules
from kraftwire.messages.metadata_response import MetadataResponseTopic
from kraftwire.messages.produce_request import PartitionProduceData, TopicProduceData
from kraftwire.messages.produce_response import PartitionProduceResponse, TopicProduceResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.protocol.payloads import decode_request, decode_response
from kraftwire.proxy.events import Close, Resumed, Send, Side, WakeAt
from tests.support.proxy.layers import layer, request, response
from tests.support.proxy.playbook import (
    CLIENT_ENDED,
    At,
    Playbook,
    client,
    of_client,
    of_upstream,
    to_client,
    to_upstream,
    upstream,
)

ASKED = [request("ListGroups", 4, number) for number in range(4)]
ANSWERED = [response("ListGroups", 4, number) for number in range(4)]
OTHER = request("FindCoordinator", 1, 9, key="g")


def ruled(**row: Any) -> tuple[FaultRules, FaultRule]:
    """Rules with one rule for ListGroups, unless the row has another API."""
    rules = FaultRules()
    return rules, rules.add(new_rule({"api": "ListGroups", **row}), 0.0)


def test_a_refused_request_is_not_passed_on() -> None:
    """Its answer has the correlation id of the request."""
    rules, rule = ruled(refuse="COORDINATOR_NOT_AVAILABLE")
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (
        Playbook(layer(rules))
        >> client(ASKED[1]) << to_client(response("ListGroups", 4, 1, error_code=code))
    )  # fmt: skip
    assert rule.count == 1


def test_a_refusal_waits_for_the_responses_before_it() -> None:
    """Responses come in the order of the requests, whoever makes them."""
    rules, _ = ruled(refuse="COORDINATOR_NOT_AVAILABLE", every=2)
    refused = response("ListGroups", 4, 1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0] + ASKED[1] + ASKED[2])
        << to_upstream(ASKED[0]) << to_upstream(ASKED[2])
        >> upstream(ANSWERED[0][:6])
        >> upstream(ANSWERED[0][6:] + ANSWERED[2])
        << to_client(ANSWERED[0]) << to_client(refused) << to_client(ANSWERED[2])
    )  # fmt: skip


def test_a_refusal_waits_for_a_response_that_is_passing() -> None:
    """Bytes of two responses never mix."""
    rules, _ = ruled(refuse="COORDINATOR_NOT_AVAILABLE", every=2)
    refused = response("ListGroups", 4, 1, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0]) << to_upstream(ASKED[0])
        >> upstream(ANSWERED[0][:9]) << to_client(ANSWERED[0][:9])
        >> client(ASKED[1])
        >> upstream(ANSWERED[0][9:]) << to_client(ANSWERED[0][9:]) << to_client(refused)
    )  # fmt: skip


def _produce(*topics: str, acks: int = -1, correlation_id: int = 1) -> bytes:
    data = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(records=b"abc")])
        for name in topics
    ]
    return request("Produce", 9, correlation_id, acks=acks, topic_data=data)


def _produced(**codes: int) -> bytes:
    topics = [
        TopicProduceResponse(
            name=name, partition_responses=[PartitionProduceResponse(error_code=code)]
        )
        for name, code in codes.items()
    ]
    return response("Produce", 9, 1, responses=topics)


def test_a_part_of_a_request_is_refused() -> None:
    """The other part is carried out, and the answer has both."""
    rules, _ = ruled(api="Produce", refuse="NOT_LEADER_OR_FOLLOWER", topic="b")
    tested = layer(rules)
    (passed,) = tested.handle(client(_produce("a", "b")), 0.0)
    assert passed == to_upstream(_produce("a"))
    (sent,) = tested.handle(upstream(_produced(a=0)), 0.0)
    assert isinstance(sent, Send)
    found: Any = decode_response(bytes(sent.data[4:]), 0, 9)[1]
    codes = {one.name: one.partition_responses[0].error_code for one in found.responses}
    assert codes == {"a": 0, "b": ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_topics_are_known_by_id_after_metadata() -> None:
    """Rules name topics, newer requests only ids."""
    topic_id = bytes(range(16))
    rules, rule = ruled(api="Produce", refuse="NOT_LEADER_OR_FOLLOWER", topic="b", versions="13+")
    tested = layer(rules)
    data = [TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData()])]
    asked = request("Produce", 13, 1, acks=1, topic_data=data)
    assert tested.handle(client(asked), 0.0) == [to_upstream(asked)]
    tested.handle(upstream(response("Produce", 13, 1)), 0.0)
    tested.handle(client(request("Metadata", 13, 2)), 0.0)
    topics = [MetadataResponseTopic(name="b", topic_id=topic_id)]
    tested.handle(upstream(response("Metadata", 13, 2, topics=topics)), 0.0)
    (sent,) = tested.handle(client(asked), 0.0)
    assert isinstance(sent, Send)
    assert sent.side is Side.CLIENT
    assert rule.count == 1


def test_a_response_that_is_held_keeps_back_those_behind_it() -> None:
    """They come when the rule is removed; meanwhile the node is not read."""
    rules, rule = ruled(hold=True, times=1)
    tested = layer(rules)
    book = (
        Playbook(tested)
        >> client(ASKED[0] + OTHER) << to_upstream(ASKED[0] + OTHER)
        >> upstream(ANSWERED[0])
    )  # fmt: skip
    assert book
    assert not tested.takes(Side.UPSTREAM)
    assert book >> Resumed()
    rule.remove()
    assert book >> Resumed() << to_client(ANSWERED[0])
    assert tested.takes(Side.UPSTREAM)


def test_an_undecided_request_is_passed_on_when_its_rule_ends() -> None:
    """And those behind it, which had to wait."""
    rules, rule = ruled(hold=True, undecided=True, times=1)
    tested = layer(rules)
    book = Playbook(tested) >> client(ASKED[0] + OTHER)
    assert book
    assert not tested.takes(Side.CLIENT)
    rule.remove()
    assert book >> Resumed() << to_upstream(ASKED[0]) << to_upstream(OTHER)
    assert tested.takes(Side.CLIENT)


def test_a_delay_begins_when_the_response_is_there() -> None:
    """The layer says when it has to be looked at again."""
    rules, _ = ruled(delay=2.5)
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0]) << to_upstream(ASKED[0])
        >> At(10.0)
        >> upstream(ANSWERED[0]) << WakeAt(12.5)
        >> At(12.4) << WakeAt(12.5)
        >> At(12.5) << to_client(ANSWERED[0])
    )  # fmt: skip


def test_a_response_is_falsified() -> None:
    """Whatever else is in it stays."""
    rules, _ = ruled(falsify=lambda answer: setattr(answer, "error_code", 14))
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0]) << to_upstream(ASKED[0])
        >> upstream(ANSWERED[0]) << to_client(response("ListGroups", 4, 0, error_code=14))
    )  # fmt: skip


def test_a_function_that_fails_ends_the_connection() -> None:
    """With a line for who wrote it."""

    def fail(_: object) -> None:
        raise KeyError("oops")

    rules, _ = ruled(falsify=fail)
    tested = layer(rules)
    tested.handle(client(ASKED[0]), 0.0)
    said, closed = tested.handle(upstream(ANSWERED[0]), 0.0)
    assert "KeyError('oops')" in str(said)
    assert closed == Close()


def test_a_connection_is_dropped_before_or_after_the_request() -> None:
    """Before: the node never sees it. After: it is done, and the answer is lost."""
    rules, rule = ruled(drop="before")
    assert Playbook(layer(rules)) >> client(ASKED[0]) << Close()
    assert rule.count == 1
    rules, _ = ruled(drop="after")
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0]) << to_upstream(ASKED[0])
        >> upstream(ANSWERED[0]) << Close()
    )  # fmt: skip


def test_a_request_without_response_is_dropped_after_it_was_passed_on() -> None:
    """There is no answer to wait for."""
    rules, _ = ruled(api="Produce", drop="after")
    asked = _produce("a", acks=0)
    book = Playbook(layer(rules)) >> client(asked[:30])
    assert book >> client(asked[30:]) << to_upstream(asked) << Close()


@pytest.mark.parametrize("direction", ["both", "to_server", "to_client"])
def test_nothing_comes_out_of_a_black_hole(direction: str) -> None:
    """The connection stays until the client ends it."""
    rules, rule = ruled(black_hole=direction, times=1)
    tested = layer(rules)
    tested.handle(client(OTHER), 0.0)
    asked = ASKED[0] + ASKED[1]
    passed = asked if direction == "to_client" else b""
    sent = tested.handle(client(asked), 0.0)
    assert b"".join(bytes(one.data) for one in sent if isinstance(one, Send)) == passed
    rule.remove()
    answered = response("FindCoordinator", 1, 9, node_id=-1, port=-1)
    came = [to_client(answered)] if direction == "to_server" else []
    assert tested.handle(upstream(answered), 0.0) == came
    assert tested.handle(CLIENT_ENDED, 0.0) == [Close()]


def test_a_response_is_sent_slowly() -> None:
    """A tenth of a second's bytes at a time; the next response comes after it."""
    rules, _ = ruled(throttle=100, times=1)
    tested = layer(rules)
    answered = ANSWERED[0]
    assert len(answered) == 17
    assert (
        Playbook(tested)
        >> client(ASKED[0] + ASKED[1]) << to_upstream(ASKED[0] + ASKED[1])
        >> upstream(answered + ANSWERED[1]) << to_client(answered[:10]) << WakeAt(0.1)
        >> At(0.1) << to_client(answered[10:]) << to_client(ANSWERED[1])
    )  # fmt: skip
    assert tested.is_idle


@pytest.mark.parametrize(
    ("row", "passed", "sent"),
    [
        ({"refuse": "COORDINATOR_NOT_AVAILABLE"}, False, None),
        ({"drop": "before"}, False, None),
        ({"drop": "after"}, True, None),
        ({"black_hole": "both"}, False, None),
        ({"black_hole": "to_client"}, True, None),
        ({"hold": True}, True, None),
        ({"hold": True, "undecided": True}, False, None),
        ({"delay": 9}, True, None),
        ({"hang_up_at": 5}, True, ANSWERED[0][:5]),
    ],
)
def test_a_capture_has_what_is_not_passed_on(
    row: dict[str, Any], passed: bool, sent: bytes | None
) -> None:
    """Each request as it came, and each response as soon as it came, whatever is done with them."""
    rules, _ = ruled(**row)
    tested = layer(rules, records=True)
    commands = tested.handle(client(ASKED[0]), 0.0)
    assert of_client(ASKED[0]) in commands
    assert (to_upstream(ASKED[0]) in commands) == passed
    commands = tested.handle(upstream(ANSWERED[0]), 0.0) if passed else []
    assert (of_upstream(ANSWERED[0]) in commands) == passed
    assert [one.data for one in commands if isinstance(one, Send)] == ([sent] if sent else [])


@pytest.mark.parametrize("byte", [0, 1, 9, 1000])
def test_a_connection_ends_within_a_response(byte: int) -> None:
    """After so many bytes of it, or with it if it is shorter."""
    rules, _ = ruled(hang_up_at=byte)
    book = Playbook(layer(rules)) >> client(ASKED[0]) << to_upstream(ASKED[0])
    book = book >> upstream(ANSWERED[0] + ANSWERED[1])
    assert (book << to_client(ANSWERED[0][:byte]) << Close()) if byte else (book << Close())


def test_a_response_that_is_read_is_cut_too() -> None:
    """Metadata is rewritten before."""
    rules, _ = ruled(api="Metadata", hang_up_at=5)
    tested = layer(rules)
    tested.handle(client(request("Metadata", 1, 1)), 0.0)
    answered = response("Metadata", 1, 1)
    assert tested.handle(upstream(answered), 0.0) == [to_client(answered[:5]), Close()]


def test_a_script_treats_requests_one_after_the_other() -> None:
    """An error, nothing, an end; what comes later passes."""
    rules, _ = ruled(script=["NOT_COORDINATOR", "NONE", {"delay": 1}])
    refused = response("ListGroups", 4, 0, error_code=ErrorCode.NOT_COORDINATOR)
    assert (
        Playbook(layer(rules))
        >> client(ASKED[0]) << to_client(refused)
        >> client(ASKED[1]) << to_upstream(ASKED[1])
        >> upstream(ANSWERED[1]) << to_client(ANSWERED[1])
        >> client(ASKED[2]) << to_upstream(ASKED[2])
        >> upstream(ANSWERED[2]) << WakeAt(1.0)
        >> At(1.0) << to_client(ANSWERED[2])
        >> client(ASKED[3]) << to_upstream(ASKED[3])
    )  # fmt: skip


def test_a_rule_is_for_one_node_and_one_client() -> None:
    """The bootstrap listener leads to no node in particular."""
    rules, rule = ruled(drop="before", node=3, client_id="me*")
    other = request("ListGroups", 4, 0, client_id="you")
    assert Playbook(layer(rules)) >> client(ASKED[0]) << to_upstream(ASKED[0])
    assert Playbook(layer(rules, node=4)) >> client(ASKED[0]) << to_upstream(ASKED[0])
    assert Playbook(layer(rules, node=3)) >> client(other) << to_upstream(other)
    assert rule.count == 0
    assert Playbook(layer(rules, node=3)) >> client(ASKED[0]) << Close()


def test_a_long_request_that_only_its_head_concerns_still_streams() -> None:
    """A delay needs nothing of the body."""
    rules, rule = ruled(api="Produce", delay=1)
    asked = _produce("a")
    assert (
        Playbook(layer(rules))
        >> client(asked[:25]) << to_upstream(asked[:25])
        >> client(asked[25:]) << to_upstream(asked[25:])
    )  # fmt: skip
    assert rule.count == 1
    assert decode_request(asked[4:])[0].client_id == "me"
