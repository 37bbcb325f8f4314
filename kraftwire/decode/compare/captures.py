"""Two captures of the same traffic: frames that only one of them has, and the first that differs.

Owns what makes two frames the same: their connection, direction and correlation id, in order. Only
digests of frames are kept, so memory depends on their number alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from kraftwire import messages
from kraftwire.decode.compare.difference import Comparison, Difference
from kraftwire.decode.framing.frames import Frame
from kraftwire.decode.pairing.conversations import Capture
from kraftwire.decode.tls.keylog import KeyLog

__all__ = ["compare_captures"]

_DIGEST_SIZE = 12
_SHOWN_MAX = 3


@dataclass(slots=True)
class _Line:
    """A direction of a connection: correlation id and how often it came -> digest and words."""

    frames: dict[tuple[int | None, int], tuple[bytes, str]] = field(default_factory=dict)
    times: dict[int | None, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, frame: Frame) -> None:
        """Take the next frame."""
        number = frame.correlation_id
        name = "token"
        if frame.api_key is not None:
            name = f"{messages.API_NAMES.get(frame.api_key, frame.api_key)} v{frame.api_version}"
        digest = b"" if frame.missing else blake2b(frame.data, digest_size=_DIGEST_SIZE).digest()
        words = f"{name} {frame.direction} {number}, {frame.size} bytes"
        self.frames[number, self.times[number]] = digest, words
        self.times[number] += 1


def compare_captures(first: Path, second: Path, keys: KeyLog | None = None) -> Comparison:
    """Compare two captures. Raises: StorageError if one of them cannot be read."""
    made = Comparison("frames")
    sides = [_read(path, keys, made.problems.append) for path in (first, second)]
    for connection in sorted({*sides[0], *sides[1]}):
        made.subjects += 1
        one, other = sides[0].get(connection), sides[1].get(connection)
        if one is None or other is None:
            which = "first" if other is None else "second"
            count = len((one or other or _Line()).frames)
            text = f"only in the {which}, {count:,} frames"
            details = {"onlyIn": which, "frames": count}
            made.differences.append(Difference(connection, "onlyIn", text, details))
        else:
            _compare(connection, one, other, made)
    return made


def _read(path: Path, keys: KeyLog | None, tell: Callable[[str], None]) -> dict[str, _Line]:
    """The frames of a capture by connection and direction."""
    found: dict[str, _Line] = {}
    capture = Capture(str(path), keys=keys)
    for frame in capture:
        found.setdefault(f"{frame.connection} {frame.direction}s", _Line()).add(frame)
    if capture.health.is_damaged:
        tell(f"{path}: {capture.health.problem}")
    return found


def _compare(subject: str, one: _Line, other: _Line, into: Comparison) -> None:
    changed = []
    for key, (digest, words) in one.frames.items():
        if key in other.frames:
            into.compared += 1
            # Of a frame with missing bytes nobody knows what it was.
            if digest and other.frames[key][0] and digest != other.frames[key][0]:
                changed.append((words, other.frames[key][1]))
    if changed:
        words, others = changed[0]
        text = f"{words}: the first frame that differs"
        if words != others:
            text += f"; in the second {others}"
        if len(changed) > 1:
            text += f"; {len(changed) - 1:,} more differ"
        details = {"first": words, "second": others, "count": len(changed)}
        into.differences.append(Difference(subject, "frame", text, details))
    for which, mine, theirs in (("first", one, other), ("second", other, one)):
        lone = [words for key, (_, words) in mine.frames.items() if key not in theirs.frames]
        if lone:
            shown = "; ".join(lone[:_SHOWN_MAX])
            more = f"; {len(lone) - _SHOWN_MAX:,} more" if len(lone) > _SHOWN_MAX else ""
            text = f"{len(lone):,} frames only in the {which}: {shown}{more}"
            details = {"onlyIn": which, "count": len(lone), "frames": lone[:_SHOWN_MAX]}
            into.differences.append(Difference(subject, "frames", text, details))
