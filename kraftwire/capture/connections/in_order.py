"""The engine's loop over the packets that hold the next bytes of a known direction."""

from __future__ import annotations

from collections import deque
from typing import Any

from kraftwire import engine
from kraftwire.capture.connections.frame_queue import FrameBudget, FrameQueue
from kraftwire.capture.connections.kafka_connection import KafkaConnection
from kraftwire.capture.framing.frames import Frame, Request
from kraftwire.capture.framing.health import ByteCounts
from kraftwire.capture.framing.reader import FrameReader
from kraftwire.capture.framing.requests import RequestReader
from kraftwire.capture.framing.responses import ResponseReader
from kraftwire.capture.packets.packet import PacketValues
from kraftwire.capture.tcp.streams import Flow
from kraftwire.limits import COUNTED_FRAME_SIZE_MIN, FRAME_SIZE_MAX

__all__ = ["in_order"]

# The classes whose attributes the engine uses, in the order of `kraftwire/engine/in_order.h`.
_CLASSES = (
    Flow, FrameReader, RequestReader, ResponseReader, Request, Frame, FrameQueue, FrameBudget,
    KafkaConnection, ByteCounts,
)  # fmt: skip


def in_order(flows: dict[bytes, Any], queue: FrameQueue, packets: deque[PacketValues]) -> Any:
    """Return the loop, None without the engine.

    `flows` are the directions by their keys, `queue` gets their frames, and `packets` the last
    packets.
    """
    core = engine.core
    if core is None:
        return None
    limits = FRAME_SIZE_MAX, COUNTED_FRAME_SIZE_MIN
    return core.InOrder(_CLASSES, flows, queue, packets.append, *limits)
