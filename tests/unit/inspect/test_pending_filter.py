"""Frames that wait for a filter come to the stories in their order, and in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftwire.capture.framing.frames import Ending, RawFrame
from kraftwire.cli.main import main
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.decode.filters.frames import FrameFilter
from kraftwire.decode.options import FilterOptions
from kraftwire.decode.sinks import Sink
from kraftwire.inspect.run import pending as held_module
from kraftwire.inspect.run.pending import PendingInOrder
from kraftwire.messages.heartbeat_request import HeartbeatRequest
from kraftwire.messages.heartbeat_response import HeartbeatResponse
from tests.support.captures.frames import FrameMaker

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "captures"


def _output(capsys: pytest.CaptureFixture[str], name: str, command: str, *options: str) -> str:
    main([*command.split(), str(GOLDEN / name), "-q", *options])
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["story raft", "story groups", "story transactions", "story topics", "stats"]
)
@pytest.mark.parametrize("name", ["quorum.pcap.xz", "groups.pcapng.xz"])
def test_a_filter_that_lets_everything_pass_changes_nothing(
    capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    """A request counts when it was sent, also where its response decides about it."""
    assert _output(capsys, name, command, "--since", "+0") == _output(capsys, name, command)


def test_a_filter_invents_no_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """Frames that are not wanted still show that a node is alive."""
    name = "kraft_quorum.pcapng.xz"
    whole = _silences(_output(capsys, name, "story raft"))
    assert whole
    assert _silences(_output(capsys, name, "story raft", "--since", "+0")) == whole
    few = _silences(_output(capsys, name, "story raft", "--api", "Vote,Fetch"))
    assert {node for node, _ in few} <= {node for node, _ in whole}
    assert len(few) <= len(whole)


def _silences(text: str) -> list[tuple[str, str]]:
    """Node and length of each silence; who was the leader depends on what is shown."""
    parts = [line.partition(" falls silent ") for line in text.splitlines()]
    nodes = [(head.partition("node ")[2][:2], tail) for head, there, tail in parts if there]
    return [(node, tail.partition(" (")[0]) for node, tail in nodes]


class _Order(Sink):
    """Notes what comes: frames by number, not wanted ones with a minus sign."""

    def __init__(self) -> None:
        self.came: list[str] = []

    def show(self, decoded: Frame) -> None:
        self.came.append(f"{decoded.frame}")

    def unwanted(self, decoded: Frame, /) -> None:
        self.came.append(f"-{decoded.frame}")

    def ending(self, ending: Ending) -> None:
        self.came.append(ending.connection)


def _two_clients() -> list[RawFrame]:
    """A request that waits while another client asks and is answered."""
    slow, fast = FrameMaker(), FrameMaker("10.0.0.3:50000-10.0.0.2:9092")
    first = slow.request(HeartbeatRequest(group_id="red", member_id="m"), 3)
    second = fast.request(HeartbeatRequest(group_id="blue", member_id="m"), 3)
    third = fast.response(HeartbeatResponse())
    return [first, second, third, slow.response(HeartbeatResponse())]


def _held(sink: _Order, **options: tuple[str, ...]) -> PendingInOrder:
    filters = FilterOptions(**options)  # type: ignore[arg-type]
    return PendingInOrder(FrameFilter(filters), sink.show, sink)


@pytest.mark.parametrize(
    ("group", "came"),
    [
        ("*", ["0", "1", "2", "end", "3"]),
        ("red", ["0", "-1", "-2", "end", "3"]),
        ("blue", ["-0", "1", "2", "end", "-3"]),
    ],
)
def test_frames_after_a_request_wait_with_it(group: str, came: list[str]) -> None:
    """So do ends of connections."""
    sink, decoder = _Order(), FrameDecoder(Settings())
    held = _held(sink, group=(group,))
    for frame in _two_clients():
        if frame.connection.startswith("10.0.0.1") and not frame.is_request:
            assert sink.came == []
            held.ending(Ending("end", frame.time_ns, True, False))
        held.frame(decoder.decode(frame))
    held.finish()
    assert sink.came == came


def test_a_request_without_an_answer_holds_nothing_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If too much waits, the first request is judged alone; its answer may still come."""
    monkeypatch.setattr(held_module, "PENDING_BYTES_MAX", 5000)
    sink, decoder = _Order(), FrameDecoder(Settings())
    held = _held(sink, group=("blue",))
    frames = _two_clients()
    for frame in frames[:3]:
        held.frame(decoder.decode(frame))
    assert sink.came == ["-0", "1", "2"]
    held.frame(decoder.decode(frames[3]))
    held.finish()
    assert sink.came == ["-0", "1", "2", "-3"]


def test_the_rest_is_judged_at_the_end() -> None:
    """A request may have no answer."""
    sink, decoder = _Order(), FrameDecoder(Settings())
    held = _held(sink, group=("red",))
    for frame in _two_clients()[:3]:
        held.frame(decoder.decode(frame))
    held.finish()
    assert sink.came == ["0", "-1", "-2"]
