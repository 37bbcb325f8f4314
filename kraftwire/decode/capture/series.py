"""Rotated captures: several files of one recording, in the order in which they were written."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kraftwire.decode.capture.pcap import read_packets
from kraftwire.decode.capture.source import CaptureSource
from kraftwire.decode.framing.health import Health

__all__ = ["in_time_order"]


def in_time_order(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """The paths of captures, ordered by the time of their first packet; empty ones are the last.

    Raises: StorageError if a file cannot be opened or is no capture.
    """
    return sorted((os.fspath(each) for each in paths), key=lambda path: (*_first_time(path), path))


def _first_time(path: str) -> tuple[bool, int]:
    with CaptureSource(path) as source:
        for packet in read_packets(source, Health()):
            return False, packet[0]
    return True, 0
