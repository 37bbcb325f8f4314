"""SEC-TERMINAL: names that control terminals, in every output of every command."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kraftwire import messages
from kraftwire.cli.main import main
from kraftwire.cli.quorum.watch import Sample, quorum_view
from kraftwire.client import QuorumInfo, ReplicaInfo
from kraftwire.decode.body.context import Memory
from kraftwire.decode.options import Options
from kraftwire.inspect.bytes import BytesWriter
from kraftwire.inspect.lines.line import LineWriter
from kraftwire.inspect.run.inputs import Inputs
from kraftwire.inspect.run.run import Run
from kraftwire.inspect.stats.writer import StatsWriter
from kraftwire.inspect.stories.raft import RaftWriter
from kraftwire.inspect.tree import TreeWriter
from kraftwire.messages.describe_cluster_response import DescribeClusterResponse
from kraftwire.messages.describe_quorum_response import DescribeQuorumResponse
from kraftwire.node import logs
from kraftwire.printable import printable, printable_lines, printable_painted
from tests.hostile.hostile_names import (
    NAME,
    assert_harmless,
    capture,
    filled,
    in_properties,
    log_folder,
)
from tests.support.nodes.fake_node import (
    DESCRIBE_CLUSTER,
    DESCRIBE_QUORUM,
    FakeNode,
    controllers,
    quorum_state,
)

OUTPUTS = (
    ("decode",),
    ("decode", "--show-secrets",),
    ("decode", "-v",),
    ("decode", "-vv", "--show-secrets"),
    ("decode", "--bytes",),
    ("decode", "-v", "--bytes", "--show-secrets"),
    ("stats",),
    ("stats", "--json"),
    ("story", "raft",),
    ("story", "raft", "--json"),
    ("records",),
    ("records", "--json"),
    ("decode", "-t", "relative", "-o", "time,connection,client,api,error,facts"),
    ("records", "--template", "%t %k %s %h"),
    ("story", "groups",),
    ("story", "groups", "--json"),
    ("story", "transactions",),
    ("story", "transactions", "--json"),
    ("story", "topics",),
    ("story", "topics", "--json"),
    ("story", "clients",),
    ("story", "clients", "--json"),
    ("decode", "--format", "jsonl"),
    ("decode", "--format", "jsonl", "--show-secrets"),
    ("decode", "--format", "jsonl", "--records", "summary"),
)
# Those of tables on a terminal are drawn by a library.
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


def _harmless(capfd: pytest.CaptureFixture[str], *, has_tabs: bool = False) -> str:
    out, err = capfd.readouterr()
    assert_harmless(out, has_tabs=has_tabs)
    assert_harmless(err)
    assert out or err
    return out + err


def test_controls_are_escaped_as_in_json() -> None:
    """One form for text and JSON; everything else stays as it is."""
    plain = 'Löwe "漢字" 😀 \\ ~'
    assert printable(plain) == plain
    assert json.loads(f'"{printable(NAME)}"') == NAME
    assert printable_lines(["a", "b\nc"]) == "a\nb\\u000ac\n"
    assert printable_lines([]) == ""
    assert printable_painted(f"\x1b[31m{printable(NAME)}\x1b[0m").endswith("d\x1b[0m")
    assert printable_painted("\x1b[31mx\x1b[2J") == "\x1b[31mx\\u001b[2J"
    assert printable("\udcff\ud800") == "\\udcff\\ud800"


@pytest.mark.parametrize("arguments", OUTPUTS, ids=" ".join)
def test_no_name_of_a_peer_or_a_file_reaches_a_terminal(
    arguments: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The person who reads a capture is not the one who produced it."""
    paths = [capture(tmp_path / f"{NAME[:9]}.pcap"), log_folder(tmp_path)]
    main([*arguments, *map(str, paths)])
    text = _harmless(capfd)
    assert "\\u001b" in text


@pytest.mark.parametrize(
    ("writer", "choices"),
    [
        (LineWriter, ("topics", "is_coloured")),
        (TreeWriter, ("topics", "is_coloured", "is_full")),
        (BytesWriter, ("topics", "is_coloured", "is_full")),
        (StatsWriter, ()),
        (RaftWriter, ()),
    ],
    ids=str,
)
def test_colours_of_a_terminal_are_the_only_escapes(
    writer: Any, choices: tuple[str, ...], tmp_path: Path
) -> None:
    """With colour, escape sequences are written on purpose, and no others."""
    memory, options = Memory(), Options()
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    topics = options.settings(memory).topics
    every = {"topics": topics, "is_coloured": True, "is_full": True}
    sink = writer(stream, **{name: every[name] for name in choices})
    run = Run(options, sink, memory)
    paths = [capture(tmp_path / "a.pcap"), log_folder(tmp_path)]
    Inputs(run, lambda _: None, "auto", None).read(tuple(map(str, paths)))
    run.finish()
    assert_harmless(_COLOURS.sub("", stream.getvalue()))
    assert len(stream.getvalue()) > 200


def test_files_of_any_name_can_be_decoded(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Names that are not UTF-8 ended in a traceback."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x9b2J")
    Path(path).write_bytes(b"nothing known")
    assert main(["decode", path, path + "not there"]) == 1
    assert "\\udcff" in _harmless(capfd)


@pytest.mark.parametrize("action", ["decode", "encode"])
def test_answers_of_message(
    action: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It repeats the names that it was given."""
    requests = [{"name": NAME, "version": 1, "hex": "00", "json": {}}]
    for cls in (DescribeClusterResponse, messages.find("RequestHeader")):
        version = cls.VERSIONS.high
        made = filled(cls, version)
        row = {"name": cls.NAME, "version": version}
        requests += [row | {"hex": made.encode(version).hex(), "json": made.to_json(version)}]
        requests += [row | {"hex": NAME.encode().hex(), "json": {NAME: NAME}}]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in requests)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), "utf-8"))
    assert main(["message", action]) == 3
    out = _harmless(capfd)
    assert len([json.loads(line) for line in out.splitlines()]) == len(requests)


@pytest.mark.parametrize(
    "arguments",
    [
        [NAME],
        ["schema", NAME],
        ["schema", "Vote", NAME],
        ["decode", NAME],
        ["decode", "x", f"--{NAME}"],
        ["decode", "x", "--api", NAME],
        ["decode", "x", "--since", NAME],
        ["node", "start", "--config", NAME],
        ["perf", "--config", NAME],
        ["sim", "replay", NAME],
        ["storage", "info", "--config", NAME],
        ["storage", "format", "-t", NAME, "--config", NAME],
        ["quorum", "describe", "--status", "--bootstrap-server", NAME],
        ["quorum", "describe", "--status", "--command-config", NAME, "--bootstrap-server", "a:1"],
        ["quorum", "remove-controller", "-i", "1", "-d", NAME, "--bootstrap-server", "a:1"],
        ["pipeline", "report", NAME],
        ["pipeline", "run", NAME, "--out", "x", "--api", NAME],
        ["pipeline", "run", NAME, "--out", "x", "--tag", NAME],
        ["pipeline", "tables", NAME],
    ],
    ids=lambda each: " ".join(each).split(NAME)[0],
)
def test_what_is_wrong_with_arguments(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Scripts pass names that others chose as arguments."""
    monkeypatch.chdir(tmp_path)
    cleaned = [each.replace("\0", "") for each in arguments]
    assert main(cleaned) in (1, 2, 3)
    _harmless(capfd)


def test_properties_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Errors repeat values of the file, and the output repeats its folders."""
    escaped = in_properties()
    for key in ("", "node.id=", "listeners=", "log.dirs=", "process.roles="):
        line = f"{key}{escaped}"
        config = tmp_path / "server.properties"
        sound = {
            "process.roles": "controller", "node.id": "1", "listeners": "CONTROLLER://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER", "log.dirs": str(tmp_path / "logs"),
            "controller.quorum.voters": "1@127.0.0.1:1",
        }  # fmt: skip
        config.write_text("".join(f"{k}={v}\n" for k, v in sound.items()) + line + "\n")
        main(["storage", "info", "--config", str(config)])
        _harmless(capfd)


def test_a_quorum_that_lies(capfd: pytest.CaptureFixture[str]) -> None:
    """Cluster id, endpoints and error messages are the server's words."""
    answer = filled(DescribeQuorumResponse, 2)
    assert isinstance(answer, DescribeQuorumResponse)
    with FakeNode() as node:
        lying = controllers({1: node}, 1)
        lying.cluster_id = NAME
        state = quorum_state(1)
        for each in state.nodes:
            for listener in each.listeners:
                listener.name = listener.host = NAME
        answers: list[Any] = [state, answer, filled(DescribeQuorumResponse, 2)]
        answers[1].error_code = 0
        for said in answers:
            node.answers = {DESCRIBE_CLUSTER: lambda _: lying, DESCRIBE_QUORUM: lambda _, s=said: s}
            for view in (["describe", "--status"], ["describe", "--replication"],
                         ["describe", "--json"], ["watch", "--count", "1"]):  # fmt: skip
                main(["quorum", *view, "--bootstrap-controller", node.address, "--timeout", "0.5"])
                _harmless(capfd, has_tabs="--replication" in view)


def test_the_view_of_a_quorum_that_lies() -> None:
    """On a terminal a library draws it, which passes escape sequences through."""
    replica = ReplicaInfo(1, NAME, 1, 1, 1)
    info = QuorumInfo(1, 1, 1, voters=(replica,), observers=(), endpoints={})
    stream = io.StringIO()
    view = quorum_view(Sample(1, info), NAME, [NAME], now_ms=2)
    Console(file=stream, force_terminal=True, width=200).print(view)
    assert_harmless(_COLOURS.sub("", stream.getvalue()))


def test_lines_of_a_node(capfd: pytest.CaptureFixture[str]) -> None:
    """The log of a node names peers, and messages of the storage name files."""
    logs.set_up("debug", 1)
    logs.log("info", NAME, peer=NAME, text=NAME)
    logging.getLogger("kraftwire.log").warning("repaired %s", NAME)
    text = _harmless(capfd)
    assert text.count("\n") == 2


def test_the_summary_of_a_pipeline_and_its_report(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A finding names the peer that caused it."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from kraftwire.cli.pipeline.command import _summary
    from kraftwire.cli.tables import show
    from kraftwire.spark.report.formatting import text
    from kraftwire.spark.run.pipeline import RunOutcome

    row = {"rule": NAME, "severity": "error", "node": 1, "detail": NAME, "time": 1}
    (tmp_path / "anomalies").mkdir()
    parquet.write_table(pa.Table.from_pylist([row]), tmp_path / "anomalies/0.parquet")
    show(_summary(tmp_path, RunOutcome(rows={NAME: 1})))
    assert "\\u001b" in _harmless(capfd)
    assert_harmless(text(NAME))
