"""A name that controls terminals, in every place that a peer or a file determines."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

from kraftwire import messages
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.records.builder import BatchHeader, build_columns
from kraftwire.records.metadata import encode_metadata
from kraftwire.wire.facts import FieldFacts, StructFacts
from kraftwire.wire.frame import frame
from kraftwire.wire.message import Message
from tests.support.captures.builder import Session, pcap_of

# Clears the screen, sets the title, rings the bell, forges a line, reverses text, hides text.
NAME = (
    "a\x1b[2J\x1b]0;t\x07\r\nb\tc\x00\x08\x7f\x85\x9b31m"
    "\u200b\u200f\u202e\u2066\u2028\ufeff\U000e0041d"
)

# What a terminal must never be sent; ends of lines are ours, and tabs where a table has them.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]"
)
# A line that begins inside the name was forged by it.
_FORGED = re.compile(r"^b(?:\t|\\u0009)c", re.MULTILINE)


def assert_harmless(output: str, *, has_tabs: bool = False) -> None:
    """Nothing in an output controls a terminal or begins a line by itself."""
    found = _OBEYED.search(output)
    assert found is None, ascii(output[max(0, found.start() - 80) : found.end() + 20])
    assert has_tabs or "\t" not in output
    assert not _FORGED.search(output)


def filled(cls: type[Message], version: int) -> Message:
    """A message whose every text is the name, and whose arrays have one element."""
    made: Message = cls.from_json(_struct(cls.facts().root, version), version)
    return made


def _struct(facts: StructFacts, version: int) -> dict[str, Any]:
    return {
        field.name: _value(field, version) for field in facts.fields if version in field.versions
    }


def _value(field: FieldFacts, version: int) -> Any:
    element = _element(field, version)
    return [element] if field.is_array else element


def _element(field: FieldFacts, version: int) -> Any:
    if field.struct is not None:
        return _struct(field.struct, version)
    if field.type == "string":
        return NAME
    if field.type == "bytes":
        return base64.b64encode(NAME.encode()).decode()
    if field.type == "records":
        return base64.b64encode(metadata_batch()).decode()
    if field.type == "uuid":
        return "AAAAAAAAAAAAAAAAAAAAAQ"
    return field.type == "bool" or 1


def metadata_batch() -> bytes:
    """A batch with every metadata record, each of whose texts is the name."""
    values = []
    for name in messages.METADATA_RECORDS.values():
        cls = messages.find(name)
        values.append(encode_metadata(filled(cls, cls.VERSIONS.high), cls.VERSIONS.high))
    count = len(values)
    headers = [((NAME, NAME.encode()),)] * count
    return build_columns(
        [1_700_000_000_000] * count, [NAME.encode()] * count, values, headers=headers,
        header=BatchHeader(base_offset=0, partition_leader_epoch=1),
    )  # fmt: skip


def in_properties() -> str:
    """The name as properties files and JSON escape it, without what Java's files cannot hold."""
    return "".join(f"\\u{ord(each):04x}" for each in NAME if 0 < ord(each) < 0x10000)


def capture(path: Path) -> Path:
    """A capture with a request and a response of every API, with that name in every text."""
    session = Session().open()
    for number, key in enumerate(messages.API_NAMES, 1):
        version = messages.API_VERSIONS[key][1]
        head = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=number, client_id=NAME
        )
        message = filled(messages.request_class(key), version)
        session.client(frame(encode_request(head, message)))
        answered = filled(messages.response_class(key), version)
        reply = ResponseHeader(correlation_id=number)
        session.server(frame(encode_response(reply, answered, version)))
    # Something that cannot be decoded, for the findings.
    session.client(frame(encode_request(head, message)[:-3])).server(b"\0\0\0\x06\0\0\xff\xffab")
    path.write_bytes(pcap_of(session.close().segments))
    return path


def log_folder(parent: Path) -> Path:
    """A log directory of that name, with batches, states and files that are damaged."""
    safe = NAME.replace("\0", "").replace("/", "")
    folder = parent / f"{safe}-0"
    folder.mkdir()
    batch = metadata_batch()
    (folder / "00000000000000000000.log").write_bytes(batch + NAME.encode() * 9 + batch)
    (folder / f"{safe}.log").write_bytes(batch[:-3])
    escaped = in_properties()
    (folder / "meta.properties").write_text(
        f"version=1\ncluster.id={escaped}\nnode.id=1\n{escaped}=x\n"
    )
    (folder / "quorum-state").write_text(f'{{"data_version":1,"leaderId":"{escaped}"}}')
    (folder / "partition.metadata").write_text(f"version: 0\n{safe}: {safe}\n")
    (folder / "leader-epoch-checkpoint").write_text(f"0\n1\n{safe} {safe}\n")
    (folder / "recovery-point-offset-checkpoint").write_text("0\n1\na\x1b[2J\x7f\x85\u202e 1 2\n")
    (folder / f"x{safe}").write_bytes(NAME.encode())
    return folder
