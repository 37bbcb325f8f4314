"""Frames come some at a time, and none of them waits for bytes that are not read yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kraftwire import engine
from kraftwire.capture.capture import Capture
from tests.support.captures.builder import Session, pcap_of, request, response
from tests.support.captures.decoded import GOLDEN, golden


@pytest.mark.parametrize("name", GOLDEN)
def test_lists_have_the_same_frames(name: str) -> None:
    """None of the lists is empty, and some are long."""
    path = str(golden(name))
    lists = list(Capture(path).lists())
    alone = [(each.connection, each.position, each.size) for each in Capture(path)]
    assert [(f.connection, f.position, f.size) for each in lists for f in each] == alone
    assert all(lists)
    assert max(map(len, lists)) > 1


def test_a_frame_does_not_wait_for_more_bytes() -> None:
    """Of each piece that has a whole frame, the frame is there before the next piece is read."""
    session = Session().open()
    for number in range(20):
        session.client(request(number)).server(response(number, bytes(9)))
    whole = pcap_of(session.segments)
    given: list[int] = []

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(whole), 100):
            given.append(at + 100)
            yield whole[at : at + 100]

    for frames in Capture(pieces(), name="piped").lists():
        for frame in frames:
            assert given[-1] - 100 < frame.end_position <= given[-1]


def test_a_long_frame_waits_for_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the engine, which takes all of a piece at once, one long frame is held at a time."""
    monkeypatch.setattr(engine, "core", None)
    session = Session().open()
    for number in range(4):
        session.client(request(number)).server(response(number, bytes(100_000)))
    lists = list(Capture([pcap_of(session.segments)], name="long").lists())
    assert max(sum(each.size for each in frames) for frames in lists) < 200_000
