"""Bodies whose meaning depends on an earlier frame of their connection or capture."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli.main import main
from kraftwire.decode.body.secrets import REDACTED
from kraftwire.decode.jsonl import JsonLines
from kraftwire.decode.options import FilterOptions, Options
from kraftwire.errors import UsageError
from kraftwire.inspect.run.inputs import Inputs
from kraftwire.inspect.run.run import Run
from kraftwire.messages.fetch_response import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kraftwire.messages.offset_commit_key import OffsetCommitKey
from kraftwire.messages.offset_commit_value import OffsetCommitValue
from kraftwire.records.builder import build_batch
from kraftwire.records.messages import coordinator_key, coordinator_value
from kraftwire.records.record import Record
from tests.support.captures.builder import Session, frame, pcap_of
from tests.support.captures.decoded import decode
from tests.support.captures.payloads import request, response

TOPIC_ID = bytes(range(16))
TOKEN = b"\0alice\0hunter-two"


def _capture(folder: Path, session: Session) -> Path:
    path = folder / "made.pcap"
    path.write_bytes(pcap_of(session.segments))
    return path


def _ask(session: Session, name: str, version: int, body: Any, answer: Any, *, id: int) -> None:
    session.client(frame(request(name, version, body, id)))
    session.server(frame(response(name, version, answer, id)))


def _token_session() -> Session:
    session = Session().open()
    mechanisms = {"errorCode": 0, "mechanisms": ["PLAIN"]}
    _ask(session, "SaslHandshake", 0, {"mechanism": "PLAIN"}, mechanisms, id=1)
    session.client(frame(TOKEN)).server(frame(b""))
    _ask(session, "ApiVersions", 0, {}, {"errorCode": 0, "apiKeys": []}, id=2)
    return session


def test_a_bare_token_is_explained_and_hidden(tmp_path: Path) -> None:
    """Old clients send passwords outside any request."""
    path = _capture(tmp_path, _token_session())
    decoded = decode(path)
    token = decoded.lines[2]
    assert (token["apiKey"], token["header"], token["body"]) == (None, None, None)
    assert token["nested"]["token"] == {
        "mechanism": "PLAIN",
        "authorizationId": "",
        "username": "alice",
        "password": REDACTED,
        "bytes": REDACTED,
    }
    assert [each["id"] for each in token["findings"]] == ["sasl-token"]
    assert decoded.totals.exit_code == 0
    assert b"hunter" in decode(path, show_secrets=True).text


@pytest.mark.parametrize(
    "command",
    ["decode", "decode -v", "decode --bytes", "stats", "decode --json", "records", "story groups"],
)
def test_no_output_shows_a_bare_token(
    command: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The same in every format."""
    assert main([*command.split(), str(_capture(tmp_path, _token_session()))]) == 0
    out, err = capfdbinary.readouterr()
    for form in (b"hunter", b"68 75 6e 74", b"68756e74", b"aHVudGVy", b"h1bnRlc"):
        assert form not in out + err


def test_a_topics_id_stands_for_the_name_in_an_earlier_frame(tmp_path: Path) -> None:
    """Without it records of internal topics would be bytes in every newer Fetch."""
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=42)
    record = Record(0, 0, coordinator_key(key), coordinator_value(value, 3))
    partition = PartitionData(records=build_batch([record]))
    fetched = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[partition])]
    )
    returned = MetadataResponse(
        topics=[MetadataResponseTopic(name="__consumer_offsets", topic_id=TOPIC_ID)]
    )
    requested = {"topics": [], "allowAutoTopicCreation": False}
    requested["includeTopicAuthorizedOperations"] = False
    session = Session().open()
    _ask(session, "Metadata", 12, requested, returned, id=1)
    session.client(frame(request("Fetch", 13, _fetch(), 2)))
    session.server(frame(response("Fetch", 13, fetched, 2)))
    path = _capture(tmp_path, session)
    line = decode(path).lines[3]
    (batch,) = line["body"]["responses"][0]["partitions"][0]["records"]
    decoded = batch["records"][0]["decoded"]
    assert decoded["type"] == "OffsetCommit"
    assert decoded["data"]["value"]["offset"] == 42
    by_name = decode(path, options=FilterOptions(topic=("__consumer_*",), api=("Fetch",))).lines
    assert [each["frame"] for each in by_name] == [3]


def _fetch() -> dict[str, Any]:
    return {
        "maxWaitMs": 0,
        "minBytes": 0,
        "maxBytes": 0,
        "isolationLevel": 0,
        "sessionId": 0,
        "sessionEpoch": 0,
        "topics": [],
        "forgottenTopicsData": [],
        "rackId": "",
        "replicaId": -1,
    }


def test_an_answer_in_version_0_is_read_in_a_capture(tmp_path: Path) -> None:
    """A newer client gets this from an older server, before it asks again."""
    session = Session().open()
    requested = {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}
    session.client(frame(request("ApiVersions", 4, requested, 1)))
    answer = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]}
    session.server(frame(response("ApiVersions", 0, answer, 1)))
    decoded = decode(_capture(tmp_path, session))
    line = decoded.lines[1]
    assert (line["apiVersion"], line["body"], line["remaining"]) == (4, answer, 0)
    assert [each["id"] for each in line["findings"]] == ["api-versions-v0"]
    assert decoded.totals.exit_code == 0


def test_a_client_newer_than_the_schemas_is_read_in_a_capture(tmp_path: Path) -> None:
    """It begins with a version that the server lacks as well, and continues with an older one."""
    session = Session().open()
    requested = {"clientSoftwareName": "x", "clientSoftwareVersion": "1"}
    unreleased = {**requested, "clusterId": "id", "nodeId": 1}
    newer = bytearray(request("ApiVersions", 5, unreleased, 1))
    newer[3] = 6
    session.client(frame(bytes(newer[:-1]) + b"\x03more\x00\x00\x00\x01\x00"))
    answer = {"errorCode": 35, "apiKeys": [{"apiKey": 18, "minVersion": 0, "maxVersion": 3}]}
    session.server(frame(response("ApiVersions", 0, answer, 1)))
    session.client(frame(request("ApiVersions", 3, requested, 2)))
    decoded = decode(_capture(tmp_path, session))
    assert [line["body"] for line in decoded.lines] == [unreleased, answer, requested]
    assert [line["apiVersion"] for line in decoded.lines] == [6, 6, 3]
    assert decoded.totals.exit_code == 0


def test_a_newer_version_is_partial(tmp_path: Path) -> None:
    """Its layout is assumed, and the exit code says so."""
    session = Session().open()
    session.client(frame(request("ApiVersions", 0, {}, 1)))
    session.server(frame(response("ApiVersions", 0, {"errorCode": 0, "apiKeys": []}, 1)))
    # Kafka has removed this API, so it gets no other version.
    newer = bytearray(request("ControlledShutdown", 3, {"brokerId": 1, "brokerEpoch": 2}, 2))
    newer[3] = 9
    session.client(frame(bytes(newer) + b"\x01"))
    decoded = decode(_capture(tmp_path, session))
    line = decoded.lines[2]
    assert (line["apiVersion"], line["remaining"]) == (9, 1)
    assert line["body"]["brokerId"] == 1
    assert [each["id"] for each in line["findings"]] == ["unknown-version", "trailing-bytes"]
    assert decoded.totals.exit_code == 3


def _heartbeat() -> dict[str, Any]:
    return {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None}


def test_a_frame_that_the_end_of_the_capture_cuts_is_not_a_failure(tmp_path: Path) -> None:
    """Stopping a capture always cuts something."""
    session = Session().open()
    _ask(session, "ApiVersions", 0, {}, {"errorCode": 0, "apiKeys": []}, id=1)
    session.client(frame(request("Heartbeat", 4, _heartbeat(), 2))[:-3])
    decoded = decode(_capture(tmp_path, session))
    line = decoded.lines[2]
    ids = [each["id"] for each in line["findings"]]
    assert ids == ["cut-by-capture-end", "incomplete"]
    assert line["body"] == {"groupId": "g", "generationId": 1}
    assert line["findings"][1]["path"] == "memberId"
    assert line["size"] == line["remaining"] + line["findings"][1]["offset"]
    assert decoded.totals.exit_code == 0


def test_a_segment_is_followed(tmp_path: Path) -> None:
    """New batches become lines until the caller has enough."""
    path = tmp_path / "00000000000000000000.log"
    batches = [build_batch([Record(n, 0, None, b"x")]) for n in range(3)]
    path.write_bytes(batches[0])
    out = io.BytesIO()
    run = Run(Options(), JsonLines(out, is_live=True))
    more = iter(batches[1:])

    def wait() -> bool:
        batch = next(more, None)
        if batch is None:
            return False
        with path.open("ab") as file:
            file.write(batch)
        return True

    Inputs(run, pytest.fail).follow([str(path)], wait)
    run.finish()
    lines = out.getvalue().splitlines()
    assert [json.loads(line)["baseOffset"] for line in lines] == [0, 1, 2]
    with pytest.raises(UsageError, match="only one"):
        Inputs(run, pytest.fail).follow(["a", "b"], wait)
