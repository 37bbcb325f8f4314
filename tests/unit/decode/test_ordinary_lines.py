"""The fast path to the JSON line of a frame ends where the slow one does."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kraftwire import engine
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.options import Options
from kraftwire.inspect.run.inputs import Inputs
from kraftwire.inspect.run.run import Run
from tests.support.captures.builder import Session, frame, pcap_of, request, response
from tests.support.captures.decoded import GOLDEN, decode, golden
from tests.support.suite.engines import use

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

DETAILS = ("none", "summary", "full")


class _Counting(JsonLines):
    """Counts the frames that took the fast path."""

    short = 0

    def take_ordinary(self, frames: Sequence[RawFrame], number: int = 0, /) -> Iterator[bool]:
        for was_short in super().take_ordinary(frames, number):
            self.short += was_short
            yield was_short


def _lines(path: Path, *, is_short: bool, **form: Any) -> tuple[bytes, int, int]:
    """The lines of a capture, how many frames it has, and how many took the fast path."""
    out = io.BytesIO()
    options, memory = Options(**form), Memory()
    sink = _Counting(out, settings=options.settings(memory) if is_short else None)
    run = Run(options, sink, memory)
    Inputs(run, print).read([str(path)])
    run.finish()
    return out.getvalue(), run.totals.frames, sink.short


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("detail", DETAILS)
def test_lines_are_the_same_by_either_way(name: str, detail: str) -> None:
    """Frames with secrets, findings or anything nested are left to the slow path."""
    short = _lines(golden(name), is_short=True, records=detail)
    long = _lines(golden(name), is_short=False, records=detail)
    assert short[:2] == long[:2]
    assert long[2] == 0
    assert name == "sasl" or short[2] > 0.5 * short[1]


def _first(name: str, **wanted: object) -> RawFrame:
    return next(
        frame
        for frame in Capture(str(golden(name)))
        if all(getattr(frame, key) == value for key, value in wanted.items())
    )


def _both(frame: RawFrame) -> tuple[bytes, bool]:
    """The line of one frame, equal on both paths, and whether it took the short one."""
    texts = []
    was_short = []
    for is_short in (True, False):
        options, memory, out = Options(records="summary"), Memory(), io.BytesIO()
        sink = _Counting(out, settings=options.settings(memory) if is_short else None)
        Run(options, sink, memory).frames([frame])
        texts.append(out.getvalue())
        was_short.append(bool(sink.short))
    assert texts[0] == texts[1]
    assert not was_short[1]
    return texts[0], was_short[0]


def _changed(frame: RawFrame, data: bytes) -> RawFrame:
    frame.data, frame.size = data, len(data)
    return frame


def test_a_plain_frame_goes_the_short_way() -> None:
    """Otherwise the next test would prove nothing."""
    frame = _first("quorum", api_key=1, direction="request")
    assert _both(frame)[1]


def test_the_client_id_is_escaped_like_any_text() -> None:
    """The client chooses it freely."""
    frame = _first("quorum", api_key=1, direction="request")
    size = int.from_bytes(frame.data[8:10], "big")
    for raw in ("ключ".encode(), b'a"\\\n\x7f', b""):
        data = frame.data[:8] + len(raw).to_bytes(2, "big") + raw + frame.data[10 + size :]
        line, _ = _both(_changed(_first("quorum", api_key=1, direction="request"), data))
        assert b"\x7f" not in line
    null = frame.data[:8] + b"\xff\xff" + frame.data[10 + size :]
    line, _ = _both(_changed(frame, null))
    assert b'"clientId":null' in line


def _is_read_alike(session: Session, folder: Path) -> list[dict[str, Any]]:
    """The lines of a session's capture, which must be the same with both engines."""
    path = folder / "cut.pcap"
    path.write_bytes(pcap_of(session.segments))
    before, texts = engine.name(), []
    try:
        for each in engine.available():
            use(each)
            texts.append(decode(path).text)
    finally:
        use(before)
    assert texts[0] == texts[1]
    return [json.loads(line) for line in texts[0].splitlines()]


# Metadata v1: the request for all topics, and an answer without any.
_ALL_TOPICS, _METADATA = b"\xff" * 4, bytes(12)
_CLIENTS = [b"tester", "ключ".encode(), b"", None, b"a\xffb\xfe", b"\xc3"]


@pytest.mark.parametrize("client", _CLIENTS)
def test_both_engines_agree_wherever_a_segment_ends(client: bytes | None, tmp_path: Path) -> None:
    """A client id that is not UTF-8 is seen only where a segment ends inside it."""
    name = b"\xff\xff" if client is None else len(client).to_bytes(2, "big") + client
    head = b"\0\3\0\1" + (2).to_bytes(4, "big")
    second = frame(head + name + _ALL_TOPICS)
    for at in range(1, len(second)):
        session = Session().open().client(request(1, _ALL_TOPICS)).server(response(1, _METADATA))
        session.client(second[:at]).client(second[at:]).server(response(2, _METADATA))
        lines = _is_read_alike(session.close(), tmp_path)
        ids = {each["id"] for line in lines for each in line["findings"]}
        if client is None or client.decode("utf-8", "ignore").encode() == client:
            assert (len(lines), ids) == (4, set())
        elif not 14 <= at < 14 + len(client):
            assert ids == {"unmatched-response"}  # no request is recognised
        else:
            assert ids == {"header-undecoded"}


@pytest.mark.parametrize("size", [b"\xff\xfe", b"\x7f\xff", b"\x80\x00"])
def test_a_client_id_of_a_wrong_length_goes_the_long_way(size: bytes) -> None:
    """The slow reader says what is wrong."""
    frame = _first("quorum", api_key=1, direction="request")
    line, was_short = _both(_changed(frame, frame.data[:8] + size + frame.data[10:]))
    assert not was_short
    assert b'"findings":[{' in line


@pytest.mark.parametrize("direction", ["request", "response"])
def test_what_has_a_finding_goes_the_long_way(direction: str) -> None:
    """Bytes after the body, a body that is cut, and tags in the header."""
    for change in (lambda data: data + b"\0", lambda data: data[:-1], lambda data: data[:3]):
        frame = _first("quorum", api_key=1, direction=direction)
        line, was_short = _both(_changed(frame, change(frame.data)))
        assert not was_short
        assert b'"findings":[{' in line


def test_a_wrong_crc_is_found_by_either_way() -> None:
    """Headers are written as if batches were valid; the CRCs are checked before."""
    frames = (f for f in Capture(str(golden("clients"))) if f.api_key == 0)
    frame = next(each for each in frames if each.is_request and each.size > 150)
    assert _both(frame)[1]
    damaged = bytearray(frame.data)
    damaged[-8] ^= 1
    line, was_short = _both(_changed(frame, bytes(damaged)))
    assert not was_short
    assert b'"isValid":false' in line
