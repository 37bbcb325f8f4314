"""Frames for tests of renderers: every message in every version, sound and damaged."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kraftwire import messages
from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.body.records import Settings
from kraftwire.protocol.versions import request_header_version, response_header_version
from tests.support.vectors import Vector, vectors

__all__ = ["damaged", "decoded", "of_vector", "rpc_vectors"]

_CORRELATION = (77).to_bytes(4, "big")
_CLIENT = b"\x00\x06tester"


def rpc_vectors() -> Iterator[Vector]:
    """The golden messages that are requests and responses."""
    for name, found in vectors().items():
        if messages.find(name).facts().kind in ("request", "response"):
            yield from found


def of_vector(vector: Vector, data: bytes | None = None) -> Frame:
    """A frame that holds a message, or other bytes in its place."""
    facts = messages.find(vector.name).facts()
    key, version, is_request = facts.api_key, vector.version, facts.kind == "request"
    if is_request:
        header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + _CORRELATION
        header_version = request_header_version(key, version)
        header += (b"", _CLIENT, _CLIENT + b"\x00")[header_version]
    else:
        header = _CORRELATION + bytes(response_header_version(key, version))
    frame = Frame()
    frame.file = frame.end_file = "made.pcap"
    frame.position = frame.end_position = 24
    frame.connection, frame.kind = "10.0.0.1:50000-10.0.0.2:9092", "rpc"
    frame.direction = "request" if is_request else "response"
    frame.data = header + (vector.data if data is None else data)
    frame.size, frame.time_ns = len(frame.data), 1_000_000_000
    frame.api_key, frame.api_version, frame.correlation_id = key, version, 77
    frame.request = Request(key, version, 77, "tester")
    frame.missing, frame.findings, frame.latency_ms = (), (), None
    return frame


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Bytes, some of which are changed, missing, or added."""
    out = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(out) + 1)
        match chance.randrange(4):
            case 0:
                out[at : at + 1] = bytes((chance.choice((0, 1, 2, 0x7F, 0x80, 0xFF)),))
            case 1:
                out[at : at + 1] = bytes((chance.randrange(256),))
            case 2:
                del out[at : at + chance.randint(1, 4)]
            case _:
                out[at:at] = chance.randbytes(chance.randint(1, 3))
    return bytes(out)


def decoded(frame: Frame) -> DecodedFrame:
    """The view of a frame by the decoder that explains."""
    return FrameDecoder(Settings()).decode(frame)
