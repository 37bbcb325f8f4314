"""The body of a frame and its findings, decoded once for all tables.

Owns the choice between the fast path (whole frames of known layouts with valid batches) and the
decoder that keeps state and explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.capture_context import Memory
from kraftwire.decode.body.findings import Finding
from kraftwire.decode.body.frame import DecodedFrame, FrameDecoder
from kraftwire.decode.body.quick import quick_body
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.body.scan import unknown_tags
from kraftwire.records.decoded import family_of_topic
from kraftwire.spark.captures.batches import FieldRecords, fields_of, is_plain, read_records
from kraftwire.spark.captures.templates import Templates

__all__ = ["Bodies", "Greetings", "Read"]

_API_VERSIONS = 18
_GREETINGS_MAX = 1024

# Tables do not report that Kafka would have encoded a body differently: the check costs as much as
# decoding, and the difference is harmless.
_NOT_TOLD = "not-canonical"


@dataclass(slots=True)
class Read:
    """A frame that was read.

    `body` is None where it could not be decoded as a whole. `fields` are its fields of
    record batches, `show_bytes` whether its bytes may appear in a table. `memo` is shared by
    frames that differ in offsets alone.
    """

    frame: Frame
    body: Any
    version: int
    remaining: int
    findings: Sequence[Finding]
    fields: Sequence[FieldRecords]
    show_bytes: bool
    decoded: DecodedFrame | None
    memo: dict[str, Any] | None = None


# What every connection begins with: ApiVersions, by direction, version and bytes.
Greetings = dict[tuple[bool, int | None, bytes], Read]


class Bodies:
    """Reads the bodies of frames in order, and keeps what later frames need.

    `greetings` may be shared by all connections.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        # The batch header is enough for users' records; Kafka's own are decoded elsewhere.
        self._decoder = FrameDecoder(Settings(RecordsForm("summary")), memory)
        self._templates = Templates()
        # What callers work out of frames with one pattern; names of topics may be part of it.
        self._memos: dict[Any, dict[str, Any]] = {}
        self.greetings: Greetings = {}
        self.topic_name = self._decoder.memory.topics.name

    def __getstate__(self) -> FrameDecoder:
        """Return what another process needs; it learns templates again."""
        return self._decoder

    def __setstate__(self, decoder: FrameDecoder) -> None:
        Bodies.__init__(self, decoder.memory)
        self._decoder = decoder

    def read(self, frame: Frame) -> Read:
        """The next frame."""
        version = frame.api_version or 0
        found = self._templates.find(frame)
        if found is not None:
            return Read(frame, found[0], version, 0, (), (), True, None, found[1].memo)
        read = self.read_plainly(frame)
        if read is None:
            return self._read_slowly(frame)
        self._templates.learn(frame, read.body, version)
        return read

    def memo(self, pattern: Any) -> dict[str, Any]:
        """Return what is the same for all frames of a pattern on this connection."""
        return self._memos.setdefault(pattern, {})

    def read_plainly(self, frame: Frame) -> Read | None:
        """Read a frame without findings or effect on later ones; None for any other frame."""
        version = frame.api_version or 0
        body = quick_body(frame)
        if body is None:
            return None
        fields = self._fields(body, version)
        if not all(map(is_plain, fields)) or unknown_tags(body, version):
            return None
        return Read(frame, body, version, 0, (), fields, True, None)

    def _read_slowly(self, frame: Frame) -> Read:
        if frame.api_key != _API_VERSIONS or frame.findings or frame.missing or not frame.request:
            return self._read_anew(frame)
        # The bytes differ only in the correlation id.
        at = 4 if frame.direction == "request" else 0
        data = frame.data
        key = at == 4, frame.api_version, data[:at] + data[at + 4 :]
        known = self.greetings.get(key)
        if known is not None and len(data) == frame.size:
            return replace(known, frame=frame)
        read = self._read_anew(frame)
        if len(data) == frame.size and len(self.greetings) < _GREETINGS_MAX:
            self.greetings[key] = read
        return read

    def _read_anew(self, frame: Frame) -> Read:
        self._memos.clear()
        decoded = self._decoder.decode(frame)
        body, version = decoded.body, decoded.body_version
        findings = [each for each in decoded.findings if each.id != _NOT_TOLD]
        fields = self._fields(body, version) if body is not None else ()
        show = not decoded.is_token and not decoded.view.hides_bytes
        return Read(frame, body, version, decoded.remaining, findings, fields, show, decoded)

    def _fields(self, body: Any, version: int) -> list[FieldRecords]:
        found = []
        for where in fields_of(body, version):
            data = getattr(where.holder, where.attribute)
            topic = self.topic_name(where.topic, where.topic_id)
            family = family_of_topic(topic) if topic else None
            found.append(read_records(where, data, topic, family))
        return found
