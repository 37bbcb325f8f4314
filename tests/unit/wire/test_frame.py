"""Frames: a length and that many bytes, cut out of a stream however it arrives."""

from __future__ import annotations

import pytest

from kraftwire.errors import WireError
from kraftwire.limits import FRAME_SIZE_MAX
from kraftwire.wire.frame import FrameBuffer, frame, frame_size


def test_a_frame_is_its_length_and_its_payload() -> None:
    """The length does not count itself."""
    assert frame(b"abc") == b"\x00\x00\x00\x03abc"
    assert frame_size(frame(b"abc")) == 3
    assert frame_size(memoryview(frame(b""))) == 0


@pytest.mark.parametrize("size", [-1, -(2**31), FRAME_SIZE_MAX + 1])
def test_an_impossible_length_is_refused_before_anything_is_read(size: int) -> None:
    """Waiting for two gigabytes that never come is how a hostile peer ties up memory."""
    with pytest.raises(WireError) as caught:
        frame_size(size.to_bytes(4, "big", signed=True))
    assert caught.value.found == str(size)
    assert caught.value.expected == f"0 to {FRAME_SIZE_MAX}"


def test_frames_come_out_whole_however_the_stream_is_cut() -> None:
    """TCP keeps no boundaries: every way to cut three frames into two pieces must work."""
    payloads = [b"first", b"", b"the third one"]
    stream = b"".join(map(frame, payloads))
    for cut in range(len(stream) + 1):
        buffer = FrameBuffer()
        assert buffer.feed(stream[:cut]) + buffer.feed(stream[cut:]) == payloads
        assert buffer.pending_size == 0


def test_frames_come_out_of_single_bytes() -> None:
    """The slowest sender is legal too."""
    buffer = FrameBuffer()
    out = [done for byte in frame(b"ab") + frame(b"c") for done in buffer.feed(bytes((byte,)))]
    assert out == [b"ab", b"c"]


def test_what_is_pending_can_be_seen() -> None:
    """This distinguishes a connection that stalls inside a frame from an idle one."""
    buffer = FrameBuffer()
    assert buffer.feed(frame(b"whole") + b"\x00\x00\x00\x09half") == [b"whole"]
    assert buffer.pending_size == 8


def test_a_frame_buffer_refuses_what_its_owner_does_not_want() -> None:
    """Listeners with a smaller limit than Kafka's exist; a frame of just that size passes."""
    buffer = FrameBuffer(limit=4)
    assert buffer.feed(frame(b"four")) == [b"four"]
    with pytest.raises(WireError, match="frame length out of range"):
        buffer.feed(frame(b"fives"))
