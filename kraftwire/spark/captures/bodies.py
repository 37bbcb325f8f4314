"""Decodes frames once for all tables: body, findings and record batches.

Owns the choice between bodies of ordinary frames, which have no findings, and the full decoder,
which keeps state and diagnoses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kraftwire.capture.framing.frames import RawFrame
from kraftwire.decode.body.context import Memory
from kraftwire.decode.body.frame import Frame, FrameDecoder
from kraftwire.decode.body.hidden_bytes import hidden_ranges
from kraftwire.decode.body.ordinary import RECORDS, OrdinaryBody
from kraftwire.decode.body.records import RecordsForm, Settings
from kraftwire.decode.body.scan import RecordsField
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


class TableFrame(Frame):
    """A frame, and what tables alone say about it.

    `fields` are the body's fields with record batches; a frame without them was not read yet.
    """

    __slots__ = ("fields",)

    fields: Sequence[FieldRecords]

    @property
    def is_read(self) -> bool:
        """Whether the body was read."""
        return hasattr(self, "fields")

    @property
    def finding_cells(self) -> list[FindingCells]:
        """The findings, as structs."""
        if self.ordinary is not None:
            return []
        show = not self.hides_bytes
        return [
            (each.id, each.offset, each.path, each.text(show_bytes=show)) for each in self.findings
        ]

    @property
    def shown_bytes(self) -> bytes | None:
        """Header and body of the frame without records and secrets; None if bytes are missing."""
        if self.missing:
            return None
        if self.fields:
            return _without_records(self)
        data: bytes = self.data
        if self.ordinary is None:
            for start, end in hidden_ranges(self):
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

    def read(self, frame: RawFrame, ordinary: OrdinaryBody | None) -> TableFrame:
        """Read the next frame; `ordinary` is what `ordinary_body` returns for it."""
        assert isinstance(frame, TableFrame)
        if ordinary is not None:
            body = ordinary[0]
            version = frame.api_version or 0
            found = self._without_problems(body, version) if body.NAME in RECORDS else ()
            if found is not None:
                self.memory.topics.learn(body, version)
                frame.decoder, frame.ordinary, frame.fields = self._decoder, ordinary, found
                return frame
        self._decoder.decode(frame)
        frame.fields = () if frame.body is None else self._fields(frame.body, frame.body_version)
        return frame

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


def _body_start(frame: TableFrame) -> int:
    """Return where the body begins in a frame; records are removed only from responses."""
    if frame.ordinary is None:
        return frame.payload.header_end
    # The header of a frame from the fast path has no tagged fields.
    api = frame.api_key or 0, frame.api_version or 0
    return 5 if response_header_version(*api) else 4


def _without_records(frame: TableFrame) -> bytes | None:
    """Return the same message with empty records."""
    start, body = _body_start(frame), frame.body
    if body is None:
        return None
    held = [getattr(field.where.holder, field.where.attribute) for field in frame.fields]
    try:
        for field in frame.fields:
            setattr(field.where.holder, field.where.attribute, b"")
        return frame.data[:start] + body.encode(frame.body_version)
    except WireError:
        return None
    finally:
        for field, data in zip(frame.fields, held, strict=True):
            setattr(field.where.holder, field.where.attribute, data)
