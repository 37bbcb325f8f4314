"""One connection to another node: whatever the other side answers."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.errors import ApiError
from kraftwire.messages.fetch_request import FetchRequest
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.node.link import LinkDown
from kraftwire.protocol.error_codes import ErrorCode
from tests.support.nodes.far_side import FarSide, request, start
from tests.support.suite.autojump import autojump

HOSTILE = {
    "nothing": b"",
    "text": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a negative length": struct.pack(">i", -5),
    "an endless frame": struct.pack(">i", 0x7FFFFFFF),
    "an empty frame": struct.pack(">i", 0),
    "another correlation id": struct.pack(">iih", 6, 4711, 0),
    "a cut answer": struct.pack(">iih", 6, 0, 0),
    "an error code": struct.pack(">iihi", 10, 0, 42, 0),
    "an unknown error code": struct.pack(">iihi", 10, 0, 999, 0),
    "no APIs at all": struct.pack(">iihi", 10, 0, 35, 0),
    "an array of two billion": struct.pack(">iihbbbbb", 11, 0, 0, -1, -1, -1, -1, 7),
}


@autojump
@pytest.mark.parametrize("kind", HOSTILE)
async def test_a_hostile_answer_is_a_failed_request(nursery: trio.Nursery, kind: str) -> None:
    """No answer of a peer, whatever its bytes, may end a node or make it spin."""
    far = FarSide(nursery)

    async def hostile(stream: Any) -> None:
        await stream.receive_some(1000)
        with trio.move_on_after(10):
            await stream.send_all(HOSTILE[kind])
            await stream.receive_some(1000)
        await stream.aclose()

    far.serve = hostile
    peers, answers = await start(far, nursery)
    peers.send(request(1))
    await trio.sleep(3)
    assert answers.events == [(1, ErrorCode.BROKER_NOT_AVAILABLE)]
    far.serve = far._serve
    peers.send(request(2))
    await trio.sleep(3)
    assert answers.events[1:] == [(2, "VoteResponse")]


@autojump
async def test_an_answer_that_cannot_be_read_is_counted(nursery: trio.Nursery) -> None:
    """The counter distinguishes a broken peer from a slow network."""
    far = FarSide(nursery)

    async def bad_answer(stream: Any) -> None:
        await stream.receive_some(1000)
        await stream.send_all(struct.pack(">iih", 6, 0, 0))
        await stream.receive_some(1000)

    far.serve = bad_answer
    link = far.link()
    link.retarget("peer", 1)
    with pytest.raises(LinkDown):
        await link.exchange(VoteRequest())
    assert far.stats.bad_answers == 1


@autojump
async def test_an_unsupported_api_is_an_error_of_its_own(nursery: trio.Nursery) -> None:
    """A node that forwards a request must tell its client why it failed."""
    far = FarSide(nursery)
    link = far.link()
    link.retarget("peer", 1)
    with pytest.raises(ApiError) as caught:
        await link.exchange(FetchRequest())
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
    link.close()


@autojump
@pytest.mark.parametrize(("asked", "sent"), [(None, 1), (0, 0), (1, 1), (2, 1)])
async def test_a_request_goes_in_no_version_above_that_of_who_asked(
    nursery: trio.Nursery, asked: int | None, sent: int
) -> None:
    """While nodes are upgraded one after the other, a client may know more than the leader."""
    far = FarSide(nursery)
    far.versions[52] = (0, 1)
    link = far.link()
    link.retarget("peer", 1)
    await link.exchange(VoteRequest(), version_max=asked)
    assert far.requests == [("VoteRequest", sent)]
    link.close()
