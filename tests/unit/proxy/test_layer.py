"""A proxied connection without rules: what passes, in which pieces, and how it ends."""

from __future__ import annotations

import pytest

from kraftwire.messages.api_versions_response import ApiVersion
from kraftwire.messages.produce_request import PartitionProduceData, TopicProduceData
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.events import Close, End, Say, Send, Side
from kraftwire.wire.frame import frame
from tests.support.proxy.layers import layer, request, response
from tests.support.proxy.playbook import (
    CLIENT_BROKEN,
    CLIENT_ENDED,
    UPSTREAM_ENDED,
    Playbook,
    client,
    of_client,
    of_upstream,
    to_client,
    to_upstream,
    upstream,
)

ASKED = request("ListGroups", 4, 7)
ANSWERED = response("ListGroups", 4, 7)


def test_requests_and_responses_pass_as_they_are() -> None:
    """Byte for byte, in the pieces in which they came."""
    assert (
        Playbook(layer())
        >> client(ASKED) << to_upstream(ASKED)
        >> upstream(ANSWERED[:9]) << to_client(ANSWERED[:9])
        >> upstream(ANSWERED[9:]) << to_client(ANSWERED[9:])
    )  # fmt: skip


def test_frames_that_come_together_pass_together() -> None:
    """An object for each frame would cost more than the frame."""
    asked = b"".join(request("ListGroups", 4, number) for number in range(20))
    answered = b"".join(response("ListGroups", 4, number) for number in range(20))
    assert (
        Playbook(layer())
        >> client(asked) << to_upstream(asked)
        >> upstream(answered) << to_client(answered)
    )  # fmt: skip


@pytest.mark.parametrize("step", [1, 2, 3, 5, 13, 40])
def test_pieces_of_any_size_pass_in_full(step: int) -> None:
    """Metadata is held until it is whole, the others flow; nothing is lost between the two."""
    asked = [request("ListGroups", 4, 1), request("Metadata", 1, 2), request("Produce", 9, 3)]
    answered = [response("ListGroups", 4, 1), response("Metadata", 1, 2), response("Produce", 9, 3)]
    tested = layer()
    for side, frames in ((Side.CLIENT, asked), (Side.UPSTREAM, answered)):
        whole, passed = b"".join(frames), b""
        for start in range(0, len(whole), step):
            event = (client if side is Side.CLIENT else upstream)(whole[start : start + step])
            for command in tested.handle(event, 0.0):
                assert isinstance(command, Send)
                assert command.side is not side
                passed += command.data
        assert passed == whole
    assert tested.is_idle


def test_a_long_frame_is_never_held() -> None:
    """100 MB in pieces: each goes on as the object that it came in."""
    size = 100_000_000
    head = request("Produce", 9, 1, acks=1)
    piece = bytes(1_000_000)
    tested = layer()
    tested.handle(client(size.to_bytes(4, "big") + head[4:]), 0.0)
    left = size - len(head) + 4
    while left:
        part = piece[: min(left, len(piece))]
        (command,) = tested.handle(client(part), 0.0)
        assert isinstance(command, Send)
        assert command.data is part
        left -= len(part)
    answered = response("Produce", 9, 1)
    assert Playbook(tested) >> upstream(answered) << to_client(answered)
    assert tested.is_idle


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 12])
def test_a_produce_without_acks_has_no_answer(version: int) -> None:
    """The next response belongs to the request after it, and is read for its addresses."""
    topics = [TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"abc")])]
    unanswered = request("Produce", version, 1, acks=0, topic_data=topics)
    asked = request("FindCoordinator", 0, 2, key="g")
    plain = response("FindCoordinator", 0, 2, node_id=5, host="b", port=9092)
    rewritten = response("FindCoordinator", 0, 2, node_id=5, host="proxy.test", port=20_005)
    assert (
        Playbook(layer())
        >> client(unanswered + asked) << to_upstream(unanswered + asked)
        >> upstream(plain) << to_client(rewritten)
    )  # fmt: skip


def test_what_no_schema_knows_passes() -> None:
    """New APIs and versions, and responses to nothing."""
    unknown = frame(bytes.fromhex("03e70005") + (9).to_bytes(4, "big") + b"\0\x02me" + b"new")
    newer = bytearray(request("Metadata", 13, 10))
    newer[6:8] = (99).to_bytes(2, "big")
    answers = frame((9).to_bytes(4, "big") + b"?") + frame((10).to_bytes(4, "big") + b"?")
    surprise = frame(b"\0\0")
    assert (
        Playbook(layer())
        >> client(unknown + newer) << to_upstream(unknown + newer)
        >> upstream(answers + surprise) << to_client(answers + surprise)
    )  # fmt: skip


def test_frames_that_are_no_requests_pass() -> None:
    """The node judges them, and ends the connection."""
    short, wrong = frame(b""), frame(b"GET / HTTP/1.0\r\n\r\n")
    assert Playbook(layer()) >> client(short + wrong) << to_upstream(short + wrong)


@pytest.mark.parametrize("side", ["client", "upstream"])
def test_a_negative_length_ends_the_connection(side: str) -> None:
    """No frame can follow it."""
    event = (client if side == "client" else upstream)(b"\xff\xff\xff\xff")
    text = "a connection is ended: a frame of negative length (expected 0 or more, found -1)"
    assert Playbook(layer()) >> event << Say(text) << Close()


def test_a_frame_that_has_to_be_held_has_a_longest_size() -> None:
    """Memory is bounded by the longest frame that a server accepts."""
    asked = request("Metadata", 1, 2)
    size = (1 << 30).to_bytes(4, "big")
    found = layer()
    found.handle(client(asked), 0.0)
    (said, closed) = found.handle(upstream(size + (2).to_bytes(4, "big")), 0.0)
    assert isinstance(said, Say)
    assert "too long to be held" in said.text
    assert closed == Close()


def test_the_oldest_answer_to_api_versions_passes() -> None:
    """A node that lacks the version answers in version 0, whatever was asked."""
    asked = request("ApiVersions", 4, 1, client_software_name="a", client_software_version="1")
    keys = [ApiVersion(api_key=18, min_version=0, max_version=3)]
    code = ErrorCode.UNSUPPORTED_VERSION
    answered = response("ApiVersions", 0, 1, error_code=code, api_keys=keys)
    assert (
        Playbook(layer())
        >> client(asked) << to_upstream(asked)
        >> upstream(answered) << to_client(answered)
    )  # fmt: skip


def test_versions_whose_addresses_could_not_be_found_are_not_offered() -> None:
    """A client that chose them would learn where the nodes are; other APIs are no matter."""
    asked = request("ApiVersions", 0, 1)

    def offers(metadata: int) -> bytes:
        keys = [
            ApiVersion(api_key=3, min_version=0, max_version=metadata),
            ApiVersion(api_key=2, min_version=1, max_version=99),
        ]
        return response("ApiVersions", 0, 1, api_keys=keys)

    assert (
        Playbook(layer())
        >> client(asked) << to_upstream(asked)
        >> upstream(offers(99)) << to_client(offers(13))
    )  # fmt: skip


def test_a_client_that_ends_what_it_sends_gets_its_answers() -> None:
    """The end is passed on, and the connection ends with the last answer."""
    assert (
        Playbook(layer())
        >> client(ASKED) << to_upstream(ASKED)
        >> CLIENT_ENDED << End(Side.UPSTREAM)
        >> upstream(ANSWERED) << to_client(ANSWERED) << Close()
    )  # fmt: skip


def test_the_end_of_an_idle_client_ends_the_connection() -> None:
    """As that of the node does, and a broken stream."""
    for event in (CLIENT_ENDED, UPSTREAM_ENDED, CLIENT_BROKEN):
        assert Playbook(layer()) >> event << Close()


def test_a_capture_gets_both_sides() -> None:
    """What came from a side, and what was sent to the other."""
    assert (
        Playbook(layer(records=True))
        >> client(ASKED) << of_client(ASKED) << to_upstream(ASKED)
        >> upstream(ANSWERED) << of_upstream(ANSWERED) << to_client(ANSWERED)
    )  # fmt: skip


def test_a_client_with_too_many_requests_is_not_read() -> None:
    """It is read again once answers have come."""
    tested = layer()
    for number in range(1000):
        tested.handle(client(request("ListGroups", 4, number)), 0.0)
    assert not tested.takes(Side.CLIENT)
    assert tested.takes(Side.UPSTREAM)
    tested.handle(upstream(response("ListGroups", 4, 0)), 0.0)
    assert tested.takes(Side.CLIENT)
