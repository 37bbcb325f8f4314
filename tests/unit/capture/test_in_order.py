"""What the engine makes of packets in order is what the loop over all packets makes of them."""

from __future__ import annotations

import lzma
import random

import pytest

from kraftwire import engine
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import FrameQueue
from kraftwire.capture.framing.health import Health
from tests.engine.captures import FORMS, damaged, same_frames
from tests.fuzz.outcome import seed
from tests.support.captures.decoded import GOLDEN, golden

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

_ROUNDS = 60


@pytest.mark.parametrize("name", GOLDEN)
def test_both_engines_agree_on_captures(name: str) -> None:
    """In one piece, and in pieces that end anywhere."""
    data = lzma.decompress(golden(name).read_bytes())
    *seen, _ = same_frames(data)
    cuts = sorted(random.Random(seed()).sample(range(len(data)), 30))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert same_frames(*pieces)[:-1] == seen


def test_both_engines_agree_ondamaged_captures() -> None:
    """Packets that are lost, repeated, in another order, cut or changed."""
    source = random.Random(seed())
    for _ in range(_ROUNDS):
        same_frames(damaged(source))


@pytest.mark.parametrize("form", FORMS)
def test_both_engines_agree_on_other_links_and_formats(form: str) -> None:
    """They find as many frames as in the recording itself, which is Ethernet, IPv4 and pcap."""
    data = lzma.decompress(golden("quorum").read_bytes())
    usual = same_frames(data)
    other = same_frames(FORMS[form](data))
    assert len(other) == len(usual)
    assert [each[5] for each in other[:-2]] == [each[5] for each in usual[:-2]]


@pytest.mark.parametrize("form", FORMS)
def test_packets_in_order_are_taken_by_the_engine(form: str) -> None:
    """On every usual link and in both formats, most packets never come to Python's loop."""
    data = FORMS[form](lzma.decompress(golden("quorum").read_bytes()))
    before = engine.name()
    try:
        engine.use(engine.C)
        capture = Capture(iter([data]), name="x.pcap")
        assert list(capture)
    finally:
        engine.use(before)
    taken = capture._in_order.payload
    assert taken > capture.health.bytes.payload * 9 // 10


def test_the_engine_refuses_classes_without_its_attributes() -> None:
    """It works on the attributes of these classes, at the places where they are."""
    queue = FrameQueue(Health())
    with pytest.raises(TypeError, match="expected 7 classes"):
        engine.core.InOrder((), {}, queue, [], 1, 1)
    with pytest.raises((TypeError, AttributeError), match=r"fast_seq"):
        engine.core.InOrder((int,) * 7, {}, queue, [], 1, 1)
