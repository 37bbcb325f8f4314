"""Decodes frames once for all tables: body, findings and record batches.

Owns the choice between the fast path, for frames without findings, and the decoder that keeps state
and explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.findings import Finding
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.ordinary import RECORDS, OrdinaryBody
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.body.scan import RecordsField
from kraftwire.errors import WireError
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.versions import response_header_version
from kraftwire.records.messages import FAMILIES
from kraftwire.spark.captures.batches import (
    FieldRecords,
    fields_of,
    is_plain,
    read_records,
)
from kraftwire.spark.captures.findings import finding_cells

_GREETINGS_MAX = 1024

# Tables do not report that Kafka would have encoded a body differently: the check costs as much as
# decoding, and the difference is harmless.
_LEFT_OUT = "not-canonical"


class Read:
    """A frame that was read.

    `body` is None where it could not be decoded as a whole. `fields` are its fields with record
    batches, `show_bytes` tells whether its bytes may appear in a table. Most frames have nothing
    but a body; the others are `Explained`.
    """

    __slots__ = ("body", "fields", "frame", "version")

    remaining = 0
    findings: Sequence[Finding] = ()
    show_bytes = True
    decoded: Frame | None = None

    def __init__(
        self, frame: RawFrame, body: Any, version: int, fields: Sequence[FieldRecords]
    ) -> None:
        self.frame = frame
        self.body = body
        self.version = version
        self.fields = fields

    @property
    def finding_cells(self) -> list[tuple[str, int | None, str, str]]:
        """The findings, as structs."""
        return finding_cells(self)

    @property
    def payload(self) -> bytes | None:
        """Header and body of the frame without records and secrets; None if bytes are missing."""
        frame = self.frame
        if frame.missing:
            return None
        if self.fields:
            return _without_records(self)
        data: bytes = frame.data
        if self.decoded is not None:
            for start, end in hidden_ranges(self.decoded):
                data = data[:start] + bytes(end - start) + data[end:]
        return data


class Explained(Read):
    """A frame that was read by the decoder that explains."""

    def __init__(
        self, frame: RawFrame, fields: Sequence[FieldRecords], decoded: Frame
    ) -> None:
        super().__init__(frame, decoded.body, decoded.body_version, fields)
        self.remaining = decoded.remaining
        self.findings = [each for each in decoded.findings if each.id != _LEFT_OUT]
        self.show_bytes = not decoded.hides_bytes
        self.decoded = decoded


# What every connection begins with: ApiVersions, by direction, version and bytes.
Greetings = dict[tuple[bool, int | None, bytes], Read]


class Bodies:
    """Reads the bodies of frames in order, and keeps what later frames need.

    `greetings` may be shared by all connections. `wants_batches` is false where no table needs the
    batches of users.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        # The batch header is enough for users' records; Kafka's own are decoded elsewhere.
        self._decoder = FrameDecoder(Settings(RecordsForm("summary")), memory)
        self.greetings: Greetings = {}
        self.wants_batches = True
        self.memory = self._decoder.memory
        self.topic_name = self.memory.topics.name

    def __getstate__(self) -> FrameDecoder:
        """Return what another process needs."""
        return self._decoder

    def __setstate__(self, decoder: FrameDecoder) -> None:
        Bodies.__init__(self, decoder.memory)
        self._decoder = decoder

    def read(self, frame: RawFrame, ordinary: OrdinaryBody | None) -> Read:
        """Read the next frame; `ordinary` is what `ordinary_body` returns for it."""
        if ordinary is not None:
            body, version = ordinary[0], frame.api_version or 0
            found = self._without_problems(body, version) if body.NAME in RECORDS else ()
            if found is not None:
                self.memory.topics.learn(body, version)
                return Read(frame, body, version, found)
        return self._read_slowly(frame)

    def _read_slowly(self, frame: RawFrame) -> Read:
        is_other = frame.api_key != ApiKey.API_VERSIONS
        if is_other or frame.findings or frame.missing or not frame.request:
            return self._read_anew(frame)
        # The bytes differ only in the correlation id.
        at = 4 if frame.direction == "request" else 0
        data = frame.data
        key = at == 4, frame.api_version, data[:at] + data[at + 4 :]
        known = self.greetings.get(key)
        if known is not None and len(data) == frame.size:
            again = copy(known)
            again.frame = frame
            return again
        read = self._read_anew(frame)
        if len(data) == frame.size and len(self.greetings) < _GREETINGS_MAX:
            self.greetings[key] = read
        return read

    def _read_anew(self, frame: RawFrame) -> Read:
        decoded = self._decoder.decode(frame)
        body = decoded.body
        fields = self._fields(body, decoded.body_version) if body is not None else ()
        return Explained(frame, fields, decoded)

    def _without_problems(self, body: Any, version: int) -> Sequence[FieldRecords] | None:
        """Return the record batches of a body; None if there are findings about them.

        Batches of users are left out unless they are wanted: `ordinary_body` has checked them.
        """
        found = []
        for where in fields_of(body, version, None if self.wants_batches else self._is_own):
            each = self._read_records(where)
            if not is_plain(each):
                return None
            found.append(each)
        return found

    def _is_own(self, topic: str | None, topic_id: bytes | None) -> bool:
        """Whether a topic is one of Kafka's own."""
        return self.topic_name(topic, topic_id) in FAMILIES

    def _fields(self, body: Any, version: int) -> Sequence[FieldRecords]:
        return [self._read_records(where) for where in fields_of(body, version)]

    def _read_records(self, where: RecordsField) -> FieldRecords:
        topic = self.topic_name(where.topic, where.topic_id)
        data = getattr(where.holder, where.attribute)
        return read_records(where, data, topic, FAMILIES.get(topic or ""))


def _body_start(read: Read) -> int:
    """Return where the body begins in a frame; records are removed only from responses."""
    if read.decoded is not None:
        return read.decoded.payload.header_end
    # The header of a frame from the fast path has no tagged fields.
    api = read.frame.api_key or 0, read.frame.api_version or 0
    return 5 if response_header_version(*api) else 4


def _without_records(read: Read) -> bytes | None:
    """Return the same message with empty records."""
    frame = read.frame
    start = _body_start(read)
    held = [getattr(field.where.holder, field.where.attribute) for field in read.fields]
    try:
        for field in read.fields:
            setattr(field.where.holder, field.where.attribute, b"")
        return frame.data[:start] + read.body.encode(read.version)
    except WireError:
        return None
    finally:
        for field, data in zip(read.fields, held, strict=True):
            setattr(field.where.holder, field.where.attribute, data)
