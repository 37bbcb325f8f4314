"""Decodes frames once for all tables: body, findings and record batches.

Owns the choice between bodies of ordinary frames, which have no findings, and the full decoder,
which keeps state and diagnoses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.findings import Finding
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.ordinary import RECORDS, OrdinaryBody
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.body.scan import RecordsField, error_codes
from kraftwire.errors import WireError
from kraftwire.protocol.versions import response_header_version
from kraftwire.records.messages import FAMILIES
from kraftwire.spark.captures.batches import (
    FieldRecords,
    fields_of,
    is_plain,
    read_records,
)

# Id, offset, path and text of a finding.
FindingCells = tuple[str, int | None, str, str]


class FrameBody:
    """A frame with its body and what tables say about it.

    `body` is None where it could not be decoded as a whole; `fields` are its fields with record
    batches. `decoded` is None for an ordinary frame, which has nothing but a body.
    `may_have_errors` is false if no error code in it is set.
    """

    __slots__ = ("body", "decoded", "fields", "frame", "may_have_errors", "version")

    def __init__(
        self,
        frame: RawFrame,
        body: Any,
        version: int,
        fields: Sequence[FieldRecords],
        decoded: Frame | None = None,
        *,
        may_have_errors: bool = True,
    ) -> None:
        self.frame = frame
        self.body = body
        self.version = version
        self.fields = fields
        self.decoded = decoded
        self.may_have_errors = may_have_errors

    @property
    def remaining(self) -> int:
        """The number of announced bytes that no field accounts for."""
        return 0 if self.decoded is None else self.decoded.remaining

    @property
    def findings(self) -> Sequence[Finding]:
        """What was found in the frame."""
        return () if self.decoded is None else self.decoded.findings

    @property
    def error_codes(self) -> list[int]:
        """The error codes in a response other than 0, each once."""
        if self.decoded is not None:
            return self.decoded.error_codes
        return error_codes(self.body, self.version) if self.may_have_errors else []

    @property
    def finding_cells(self) -> list[FindingCells]:
        """The findings, as structs."""
        if self.decoded is None:
            return []
        show = not self.decoded.hides_bytes
        return [
            (each.id, each.offset, each.path, each.text(show_bytes=show)) for each in self.findings
        ]

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


class BodyReader:
    """Reads the bodies of frames in order, and keeps what later frames need.

    `wants_batches` is false where no table needs the batches of users.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        # The batch header is enough for users' records; Kafka's own are decoded elsewhere. Nor do
        # tables report that Kafka would have encoded a body differently: the check costs as much as
        # decoding, and the difference is harmless.
        self._decoder = FrameDecoder(Settings(RecordsForm("summary"), is_brief=True), memory)
        self.wants_batches = True
        self.memory = self._decoder.memory
        self.topic_name = self.memory.topics.name

    def __getstate__(self) -> FrameDecoder:
        """Return what another process needs."""
        return self._decoder

    def __setstate__(self, decoder: FrameDecoder) -> None:
        BodyReader.__init__(self, decoder.memory)
        self._decoder = decoder

    def read(self, frame: RawFrame, ordinary: OrdinaryBody | None) -> FrameBody:
        """Read the next frame; `ordinary` is what `ordinary_body` returns for it."""
        if ordinary is not None:
            body, may_have_errors = ordinary
            version = frame.api_version or 0
            found = self._without_problems(body, version) if body.NAME in RECORDS else ()
            if found is not None:
                self.memory.topics.learn(body, version)
                return FrameBody(frame, body, version, found, may_have_errors=may_have_errors)
        decoded = self._decoder.decode(frame)
        fields = () if decoded.body is None else self._fields(decoded.body, decoded.body_version)
        return FrameBody(frame, decoded.body, decoded.body_version, fields, decoded)

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


def _body_start(read: FrameBody) -> int:
    """Return where the body begins in a frame; records are removed only from responses."""
    if read.decoded is not None:
        return read.decoded.payload.header_end
    # The header of a frame from the fast path has no tagged fields.
    api = read.frame.api_key or 0, read.frame.api_version or 0
    return 5 if response_header_version(*api) else 4


def _without_records(read: FrameBody) -> bytes | None:
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
