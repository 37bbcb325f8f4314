"""Record batches inside bodies: every field of type `records` as a list of batches.

Owns finding these fields, the family of their records (by topic name or id) and what is wrong with
them. A slice of a snapshot may begin and end inside a batch, and a Fetch response may end in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.findings import Finding, finding_of
from kraftwire.decode.body.scan import RecordsField, records_fields
from kraftwire.decode.body.secrets import redact_batch
from kraftwire.decode.limits import JSON_ROW_BYTES_MIN, JSON_ROWS_FREE, FrameBudget
from kraftwire.errors import WireError
from kraftwire.limits import FINDING_HEX_BYTES
from kraftwire.records.json_form import Detail, RecordError, batch_to_json, weight_of
from kraftwire.records.limits import BombError
from kraftwire.records.messages import family_of_topic
from kraftwire.records.reader import Batch, BatchReader
from kraftwire.wire.message import Message

_UNALIGNED = "unalignedRecords"
METADATA = "metadata"
_CRC_PATH = "crc"


@dataclass(frozen=True, slots=True)
class RecordsForm:
    """How records are shown."""

    detail: Detail = "full"
    show_secrets: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run for records, and the names of topics learned so far.

    `frame_budget` is None where nothing is cut for display, as for programs. With `is_brief`, for
    lines, neither records inside batches nor the exact form of bodies (finding `not-canonical`) are
    checked.
    """

    records: RecordsForm = field(default_factory=RecordsForm)
    topics: TopicNames = field(default_factory=TopicNames)
    frame_budget: FrameBudget | None = None
    is_brief: bool = False

    @property
    def show_secrets(self) -> bool:
        """Whether secrets are shown."""
        return self.records.show_secrets


@dataclass(slots=True)
class FieldBatches:
    """The batches of one field.

    `batches` is None for a null field. Positions of batches and offsets of findings count
    from the field's first byte of data. `file` is the name that batches carry.
    """

    where: RecordsField
    topic: str | None
    file: str | None
    batches: list[dict[str, Any]] | None
    findings: list[Finding] = field(default_factory=list)

    @property
    def family(self) -> str | None:
        """The family of the records, None if they are users' or the topic is not known."""
        return None if self.topic is None else family_of_topic(self.topic)

    @property
    def is_metadata(self) -> bool:
        """Whether these are records of the metadata log, which may hold secrets."""
        return self.family == METADATA


def batches_in(
    message: Message, version: int, settings: Settings, file: str | None
) -> list[FieldBatches]:
    """The batches of every field of type records in a message."""
    found = []
    fields = records_fields(message, version)
    holders = [getattr(where.holder, where.attribute) for where in fields]
    size = sum(len(data) for data in holders if data)
    rows_left = JSON_ROWS_FREE + size // JSON_ROW_BYTES_MIN
    for where, data in zip(fields, holders, strict=True):
        topic = settings.topics.name(where.topic, where.topic_id)
        result = FieldBatches(where, topic, file, None if data is None else [])
        if data:
            rows_left = read_into(result, data, settings.records, rows_left)
        found.append(result)
    return found


def json_with_batches(
    body: Message, version: int, batches: list[FieldBatches]
) -> dict[str, Any]:
    """The JSON form of a body, with batches where the records are."""
    held = [getattr(each.where.holder, each.where.attribute) for each in batches]
    try:
        # The bytes of records are shown as batches; there is no use in turning them to base64.
        for each in batches:
            setattr(each.where.holder, each.where.attribute, b"")
        json = body.to_json(version)
    finally:
        for each, data in zip(batches, held, strict=True):
            setattr(each.where.holder, each.where.attribute, data)
    for each in batches:
        holder: Any = json
        for step in each.where.steps:
            holder = holder[step]
        holder[each.where.name] = each.batches
    return json


def read_into(
    result: FieldBatches,
    data: bytes | memoryview,
    form: RecordsForm,
    rows_left: int = JSON_ROWS_FREE,
) -> int:
    """Read the batches of a field from its bytes, and what is wrong with them.

    Up to `rows_left` records get their JSON form at once; returns how many rows are left.
    """
    family = result.family
    batches = result.batches = []
    for batch in _walk(result, data, form):
        detail = form.detail
        if detail == "summary" and family is None and not batch.is_control:
            # A summary shows what Kafka wrote. Of users' records the batch has count and size,
            # and sizes of single ones would be most of the output.
            detail = "none"
        json, problems = batch_to_json(batch, family=family, records=detail, rows_max=rows_left)
        if isinstance(json["records"], list):
            rows_left -= sum(map(weight_of, json["records"]))
        for problem in problems:
            rest = data[batch.position : batch.position + FINDING_HEX_BYTES]
            _note(result, problem, rest, form)
        if not form.show_secrets:
            redact_batch(json, is_metadata=family == METADATA)
        batches.append({"file": result.file, **json})
    return rows_left


def _walk(
    result: FieldBatches, data: bytes | memoryview, form: RecordsForm
) -> Iterator[Batch]:
    """The batches in the data; bytes between, before or after them become findings."""
    is_unaligned = result.where.name == _UNALIGNED
    reader = BatchReader(data)
    while True:
        try:
            yield from reader
            break
        except WireError as error:
            start = reader.position
            size = reader.resume()
            rest = data[start : start + FINDING_HEX_BYTES]
            if is_unaligned and start == 0:
                detail = f"the slice begins with {size} bytes of a batch in an earlier one"
                _add(result, Finding("batch-unaligned", start, "", detail), rest, form)
            else:
                problem = WireError(
                    f"{error.problem}, {size} bytes are skipped",
                    offset=start,
                    expected=error.expected,
                    found=error.found,
                )
                _note(result, problem, rest, form)
    if reader.remaining:
        rest = data[reader.position : reader.position + FINDING_HEX_BYTES]
        id = "batch-unaligned" if is_unaligned else "batch-cut"
        detail = f"the last {reader.remaining} bytes are the beginning of a batch"
        _add(result, Finding(id, reader.position, "", detail), rest, form)


def _note(
    result: FieldBatches, problem: WireError, rest: bytes | memoryview, form: RecordsForm
) -> None:
    if problem.path == _CRC_PATH:
        id = "batch-crc"
    elif isinstance(problem, BombError):
        id = "batch-bomb"
    elif isinstance(problem, RecordError):
        id = "record-undecoded"
    else:
        id = "batch-damaged"
    _add(result, finding_of(problem, id), rest, form)


def _add(
    result: FieldBatches, finding: Finding, rest: bytes | memoryview, form: RecordsForm
) -> None:
    """Keep a finding; bytes of the metadata log, or of an unknown one, may be secrets."""
    path = f"{result.where.path}[{len(result.batches or ())}]"
    if finding.path:
        path = f"{path}.{finding.path}"
    is_open = form.show_secrets or not (result.topic is None or result.is_metadata)
    shown = bytes(rest) if is_open else b""
    result.findings.append(Finding(finding.id, finding.offset, path, finding.detail, shown))
