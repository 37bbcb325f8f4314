"""What a node shows about itself: log lines and a capture of its own traffic."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from kraftwire.capture.capture import Capture
from kraftwire.capture.framing.frames import Ending
from kraftwire.cli.main import main
from kraftwire.errors import UsageError
from kraftwire.log.files import LocalFiles
from kraftwire.log.snapshots.store import SnapshotStore
from kraftwire.messages.api_versions_request import ApiVersionsRequest
from kraftwire.messages.api_versions_response import ApiVersionsResponse
from kraftwire.messages.request_header import RequestHeader
from kraftwire.messages.response_header import ResponseHeader
from kraftwire.node.capture import CaptureFile
from kraftwire.node.logs import LOGGER, RateLimit, log, quote, set_up
from kraftwire.protocol.payloads import encode_request, encode_response
from kraftwire.raft.effects import Note
from kraftwire.wire.frame import frame
from tests.support.nodes.fake_core import FakeCore, World, make, run
from tests.support.suite.autojump import autojump


@pytest.fixture
def loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the loggers afterwards."""
    levels = []
    for logger in (LOGGER, logging.getLogger("kraftwire.log")):
        monkeypatch.setattr(logger, "handlers", logger.handlers)
        monkeypatch.setattr(logger, "propagate", logger.propagate)
        levels.append((logger, logger.level))
    yield
    for logger, level in levels:
        logger.setLevel(level)


@pytest.mark.usefixtures("loggers")
def test_a_log_line_names_time_level_node_event_and_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """People follow elections with grep."""
    set_up("info", 3)
    log("info", "role", old="follower", new="prospective", reason="no leader heard")
    log("debug", "not shown")
    (line,) = capsys.readouterr().err.splitlines()
    moment, rest = line.split(" ", 1)
    assert moment[10] == "T"
    assert moment.endswith("Z")
    facts = 'old=follower new=prospective reason="no leader heard"'
    assert rest == f"level=info node=3 event=role {facts}"


@pytest.mark.usefixtures("loggers")
def test_what_is_repaired_on_disk_is_logged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged snapshot is removed at startup, and the log has an error about it."""
    (tmp_path / "00000000000000000007-0000000001.checkpoint").write_bytes(b"x")
    (tmp_path / "00000000000000000009-0000000001.checkpoint.part").write_bytes(b"x")
    set_up("info", 3)
    SnapshotStore(LocalFiles(), str(tmp_path)).settle(0)
    leftover, damaged = (line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines())
    assert leftover.startswith('level=info node=3 event=storage text="')
    assert "leftover of a crash removed" in leftover
    assert damaged.startswith('level=error node=3 event=storage text="')
    assert "removed, because the log can do without it" in damaged


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain-word_1.x:/@", "plain-word_1.x:/@"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "x"', '"say \\"x\\""'),
        ("line\nlevel=error", '"line\\nlevel=error"'),
        ("\x1b[31m", '"\\x1b[31m"'),
        (17, "17"),
    ],
)
def test_a_value_cannot_forge_a_log_line(value: object, text: str) -> None:
    """What a peer sends may end up in a line, but never as one."""
    assert quote(value) == text


def test_lines_that_peers_provoke_are_limited_by_kind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kind of noise must not hide another."""
    monkeypatch.setattr(LOGGER, "propagate", True)
    now = [0.0]
    limit = RateLimit(lambda: now[0])
    with caplog.at_level(logging.WARNING, LOGGER.name):
        for second in range(25):
            now[0] = float(second)
            limit.log("a", "noise")
            limit.log("b", "other")
    events = [record.getMessage() for record in caplog.records]
    assert events.count("noise") == events.count("other") == 3
    assert caplog.records[-1].__dict__["fields"] == {"held_back": 9}


@autojump
async def test_what_the_core_notes_keeps_its_level_and_is_limited_by_its_kind(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """An error among warnings is overlooked; a text with a number differs each time.
    """
    notes = [
        *(Note("error", f"{number} bytes are damaged", "damage") for number in range(50)),
        *(Note("warning", "bytes of the same kind of line", key) for key in ("one", "other")),
        Note("warning", "bytes of the same kind of line", "one"),
        *(Note("info", f"line {number}", "info") for number in range(3)),
    ]
    driver = make(FakeCore(lambda _: list(notes)), World())
    with caplog.at_level(logging.INFO, LOGGER.name):
        driver.append_nowait([b""], 1, lambda _: None)
        await run(driver, nursery)
    found = [(record.levelname, record.__dict__["fields"]["text"]) for record in caplog.records]
    assert found == [
        ("ERROR", "0 bytes are damaged"),
        *[("WARNING", "bytes of the same kind of line")] * 2,
        *(("INFO", f"line {number}") for number in range(3)),
    ]


def exchange() -> tuple[bytes, bytes]:
    """A request and its answer as frames."""
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=9)
    message = ApiVersionsRequest(client_software_name="kraftwire", client_software_version="1")
    answer = encode_response(ResponseHeader(correlation_id=9), ApiVersionsResponse(), 3)
    return frame(encode_request(header, message)), frame(answer)


@pytest.mark.trio
@pytest.mark.parametrize("by_peer", [True, False])
@pytest.mark.parametrize("accepted", [True, False])
async def test_a_capture_of_a_nodes_own_traffic_is_read_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], accepted: bool, by_peer: bool
) -> None:
    """Without privileges or a sniffer, the node records what it sends and receives."""
    path = tmp_path / "own.pcapng"
    (listening,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listening.socket.getsockname()[1]
    client = await trio.open_tcp_stream("127.0.0.1", port)
    server = await listening.accept()
    capture = CaptureFile(str(path))
    tap = capture.tap(server if accepted else client, accepted)
    assert tap is not None
    asked, answered = exchange()
    first, second = (tap.received, tap.sent) if accepted else (tap.sent, tap.received)
    first(asked)
    second(answered)
    tap.closed(by_peer=by_peer)
    capture.close()
    for stream in (client, server, listening):
        await stream.aclose()

    assert main(["decode", str(path), "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["direction"], line["apiName"]) for line in lines] == [
        ("request", "ApiVersions"),
        ("response", "ApiVersions"),
    ]
    assert lines[0]["connection"].endswith(f"-127.0.0.1:{port}")
    assert lines[0]["findings"] == []
    endings: list[Ending] = []
    list(Capture(str(path), on_ending=endings.append))
    assert [each.is_by_client for each in endings] == [accepted == by_peer]


def test_a_capture_file_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    """An error at the start is better than an empty capture afterwards."""
    with pytest.raises(UsageError, match=r"kraftwire\.capture\.file="):
        CaptureFile(str(tmp_path / "missing" / "own.pcapng"))


def test_a_capture_on_a_full_disk_ends_without_harm(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording must not disturb the node."""
    monkeypatch.setattr(LOGGER, "propagate", True)
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no full device")
    capture = CaptureFile(str(full))
    capture.write(b"more")
    assert [record.getMessage() for record in caplog.records] == ["capture-ended"]
