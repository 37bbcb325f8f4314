"""Two captures of the same traffic: frames that only one of them has, and the first that differs.

Owns what makes two frames the same: their connection, direction and correlation id, in order. Only
digests of frames are kept, and no more of them than the size of the capture allows.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from kraftwire import messages
from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Frame
from kraftwire.capture.limits import COMPARED_BYTES_FREE, COMPARED_BYTES_RATIO
from kraftwire.capture.tls.keylog import KeyLog
from kraftwire.decode.text import count_text
from kraftwire.inspect.compare.difference import Comparison, Difference

__all__ = ["compare_captures"]

_SHOWN_MAX = 3

# The memory that is kept for a frame, and for a direction of a connection by itself.
_FRAME_BYTES = 200
_LINE_BYTES = 800

# Digest, API key, version and size of a frame. No key is as low as that of a token.
_FACTS = struct.Struct(">12shhi")
_DIGEST_SIZE = 12
_TOKEN = -(2**15)
_UNKNOWN = bytes(_DIGEST_SIZE)

# Correlation id, and how often it has come before.
_Key = int | None | tuple[int | None, int]


@dataclass(slots=True)
class _Line:
    """The frames of one direction of a connection, by correlation id.

    `times` counts those whose id has come before.
    """

    frames: dict[_Key, bytes] = field(default_factory=dict)
    times: dict[int | None, int] = field(default_factory=dict)

    def add(self, frame: Frame) -> None:
        """Add the next frame."""
        number = frame.correlation_id
        key: _Key = number
        if number in self.frames:
            count = self.times[number] = self.times.get(number, 0) + 1
            key = number, count
        digest = _UNKNOWN
        if not frame.missing:
            digest = blake2b(frame.data, digest_size=_DIGEST_SIZE).digest()
        api = _TOKEN if frame.api_key is None else frame.api_key
        self.frames[key] = _FACTS.pack(digest, api, frame.api_version or 0, frame.size)


def _words(subject: str, key: _Key, facts: bytes) -> str:
    """Describe a frame in words."""
    _, api, version, size = _FACTS.unpack(facts)
    name = "token" if api == _TOKEN else f"{messages.API_NAMES.get(api, api)} v{version}"
    number = key[0] if isinstance(key, tuple) else key
    return f"{name} {subject.rpartition(' ')[2].removesuffix('s')} {number}, {size} bytes"


def compare_captures(first: Path, second: Path, keys: KeyLog | None = None) -> Comparison:
    """Compare two captures. Raises: StorageError if one of them cannot be read."""
    made = Comparison("frames")
    sides = [_read(path, keys, made.note) for path in (first, second)]
    for connection in sorted({*sides[0], *sides[1]}):
        made.subjects += 1
        one, other = sides[0].get(connection), sides[1].get(connection)
        if one is None or other is None:
            which = "first" if other is None else "second"
            count = len((one or other or _Line()).frames)
            text = f"only in the {which}, {count_text(count, 'frame')}"
            details = {"onlyIn": which, "frames": count}
            made.differences.append(Difference(connection, "onlyIn", text, details))
        else:
            _compare(connection, one, other, made)
    return made


def _read(path: Path, keys: KeyLog | None, tell: Callable[[str], None]) -> dict[str, _Line]:
    """The frames of a capture by connection and direction."""
    found: dict[str, _Line] = {}
    capture = Capture(str(path), keys=keys)
    room = COMPARED_BYTES_FREE + COMPARED_BYTES_RATIO * path.stat().st_size
    for frame in capture:
        subject = f"{frame.connection} {frame.direction}s"
        line = found.get(subject)
        if line is None:
            line = found[subject] = _Line()
            room -= _LINE_BYTES
        line.add(frame)
        room -= _FRAME_BYTES
        if room < 0:
            tell(f"{path}: too many frames for so small a file, the rest is not compared")
            capture.close()
            break
    if capture.health.is_damaged:
        tell(f"{path}: {capture.health.problem}")
    return found


def _compare(subject: str, one: _Line, other: _Line, into: Comparison) -> None:
    changed = []
    for key, facts in one.frames.items():
        others_facts = other.frames.get(key)
        if others_facts is None:
            continue
        digests = facts[:_DIGEST_SIZE], others_facts[:_DIGEST_SIZE]
        if _UNKNOWN in digests:
            # The content of a frame with missing bytes is unknown.
            into.incomplete += 1
            continue
        into.compared += 1
        if digests[0] != digests[1]:
            changed.append(key)
    if changed:
        key = changed[0]
        words, others = (_words(subject, key, each.frames[key]) for each in (one, other))
        text = f"{words}: the first frame that differs"
        if words != others:
            text += f"; in the second {others}"
        if len(changed) > 1:
            text += f"; {len(changed) - 1:,} more differ"
        details = {"first": words, "second": others, "count": len(changed)}
        into.differences.append(Difference(subject, "frame", text, details))
    for which, mine, theirs in (("first", one, other), ("second", other, one)):
        lone = [key for key in mine.frames if key not in theirs.frames]
        if lone:
            first = [_words(subject, key, mine.frames[key]) for key in lone[:_SHOWN_MAX]]
            shown = "; ".join(first)
            more = f"; {len(lone) - _SHOWN_MAX:,} more" if len(lone) > _SHOWN_MAX else ""
            text = f"{count_text(len(lone), 'frame')} only in the {which}: {shown}{more}"
            details = {"onlyIn": which, "count": len(lone), "frames": first}
            into.differences.append(Difference(subject, "frames", text, details))
