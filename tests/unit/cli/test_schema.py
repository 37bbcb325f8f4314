"""`kraftwire schema`: lists, layouts and histories, for people and for programs."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from kraftwire import messages
from kraftwire.cli.main import main
from kraftwire.cli.schema.changes import changes_between
from kraftwire.cli.schema.layout import LayoutPart, layout
from kraftwire.cli.tables import show, table
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.wire.reader import Annotation, annotate
from tests.support.messages.vectors import vectors


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints."""
    assert main(["schema", *arguments]) == 0
    return capsys.readouterr().out


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What the command prints for programs."""
    return json.loads(text(capsys, *arguments, "--json"))


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line on standard error."""
    assert main(["schema", *arguments]) == 2
    return capsys.readouterr().err


def test_every_message_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Requests and responses stand for both sides as one API."""
    words = text(capsys).split()
    for name in messages.names():
        api = name.removesuffix("Request").removesuffix("Response")
        is_api = messages.find(name).KIND in ("request", "response")
        assert words.count(api if is_api else name) >= 1, name
    assert sorted(row["name"] for row in data(capsys)) == sorted(messages.names())


def test_the_list_can_be_narrowed_to_a_kind(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader of a metadata log wants its 28 records, not 200 lines."""
    names = [row["name"] for row in data(capsys, "--kind", "header")]
    assert names == ["RequestHeader", "ResponseHeader"]
    assert "VoteResponse" in text(capsys, "--kind", "response")
    assert "VoteRequest" not in text(capsys, "--kind", "response")


def test_record_types_of_different_logs_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """Type 0 means something else in each of five logs."""
    listed = text(capsys)
    sections = listed.split("\n\n")
    homes = {section.splitlines()[0]: section for section in sections}
    assert "RegisterBrokerRecord" in homes["Metadata records"]
    remote = homes["Records of the remote log's metadata topic"]
    assert "RemoteLogSegmentMetadataRecord" in remote
    assert "TransactionLogKey" in homes["Records of the transaction coordinator"]
    assert "ShareSnapshotValue" in homes["Records of the share coordinator"]
    assert "OffsetCommitKey" in homes["Records of the group coordinator"]


@pytest.mark.parametrize("word", ["Vote", "vote", "52", "VOTE"])
def test_an_api_stands_for_both_sides(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By name in any case, or by the number that a capture shows."""
    assert [side["name"] for side in data(capsys, word)] == ["VoteRequest", "VoteResponse"]


def test_a_retired_name_still_finds_its_messages(capsys: pytest.CaptureFixture[str]) -> None:
    """Old documents and captures use it."""
    names = [side["name"] for side in data(capsys, "ListClientMetricsResources")]
    assert names == ["ListClientMetricsResourcesRequest", "ListClientMetricsResourcesResponse"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["Fetsh"], "there is no message or API 'Fetsh'; did you mean Fetch"),
        (["9999"], "there is no API with key 9999"),
        (["VoteRequest", "99"], f"VoteRequest has versions {VoteRequest.VERSIONS}, not 99"),
        (["VoteRequest", "0..99"], f"VoteRequest has versions {VoteRequest.VERSIONS}, not 99"),
        (["VoteRequest", "2..1"], "2..1 is not ascending; put the older version first"),
        (["VoteRequest", "2..2"], "2..2 is not ascending"),
        (["VoteRequest", "new"], "'new' is neither a version nor a range such as 12..17"),
        (["VoteRequest", "-1"], "No such option"),
        (["VoteRequest", "--kind", "request"], "--kind is for the list of messages"),
    ],
)
def test_what_does_not_exist_is_reported_in_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line suggests the nearest existing name, if there is one."""
    assert line in refusal(capsys, *arguments)


def test_changes_are_described_for_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    """This matters to anyone who upgrades a client."""
    told = text(capsys, "Fetch", "12..17")
    request, response = told.split("\n\n")
    assert request.splitlines()[:4] == [
        "FetchRequest, from version 12 to 17",
        "  13  removes Topics[].Topic (string)",
        "      adds Topics[].TopicId (uuid): Id of the topic, in place of its name",
        "      removes ForgottenTopicsData[].Topic (string)",
    ]
    assert "  14  same layout as 13" in request
    assert "adds ReplicaState (struct with ReplicaId int32, ReplicaEpoch int64; tag 1)" in request
    assert "adds NodeEndpoints (array of NodeEndpoint with NodeId int32, Host string" in response


@pytest.mark.parametrize("given", ["12..17", "12-17"])
def test_a_range_can_be_written_in_two_ways(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Schema files use the dash."""
    side = data(capsys, "FetchRequest", given)
    assert (side["from"], side["to"]) == (12, 17)
    assert [step["version"] for step in side["versions"]] == [13, 14, 15, 16, 17]


def test_an_open_range_ends_at_the_known_versions(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody remembers the newest version."""
    facts = messages.find("FetchRequest").facts()
    newest = data(capsys, "FetchRequest", "16..")
    assert (newest["from"], newest["to"]) == (16, facts.versions.high)
    oldest = data(capsys, "FetchRequest", "..4")
    assert (oldest["from"], oldest["to"]) == (0, 4)


def test_changes_for_programs_name_kind_and_path(capsys: pytest.CaptureFixture[str]) -> None:
    """Paths are those of the JSON form."""
    (step,) = data(capsys, "VoteRequest", "1..2")["versions"]
    (change,) = step["changes"]
    assert change["kind"] == "added"
    assert change["path"] == "topics[].partitions[].preVote"
    assert change["type"] == "bool"


@pytest.mark.parametrize(
    ("name", "old", "new", "kind", "words"),
    [
        ("FetchRequest", 11, 12, "flexible", "becomes flexible"),
        ("MetadataRequest", 0, 1, "nullable", "Topics may be null"),
        ("RequestHeader", 0, 1, "added", "adds ClientId (string; may be null)"),
        ("LeaveGroupRequest", 2, 3, "removed", "removes MemberId (string)"),
    ],
)
def test_every_kind_of_change_has_words(
    name: str, old: int, new: int, kind: str, words: str
) -> None:
    """Each is a change that a peer of the other version would fail on."""
    changes = changes_between(messages.find(name).facts(), old, new)
    assert any(change.kind == kind and change.words.startswith(words) for change in changes)


def test_only_a_step_without_changes_keeps_the_layout() -> None:
    """Words and bytes have to agree: no change, same layout; a change, another layout."""
    for name in messages.names():
        facts = messages.find(name).facts()
        for version in range(facts.versions.low + 1, facts.versions.high + 1):
            is_same = _shape(layout(facts, version)) == _shape(layout(facts, version - 1))
            assert is_same == (not changes_between(facts, version - 1, version)), (name, version)


def _shape(parts: list[LayoutPart]) -> list[Any]:
    return [(part.path, part.wire, part.tag, _shape(part.children)) for part in parts]


def test_a_layout_shows_offsets_as_far_as_they_are_fixed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From the start of the message, or with a plus from the start of the array's element."""
    lines = text(capsys, "VoteRequest", "2").splitlines()
    assert lines[0] == "VoteRequest: request of Vote, API key 52"
    assert lines[2] == "version 2, flexible, at least 7 bytes"
    columns = [line.split()[:4] for line in lines]
    assert ["0", "1+", "ClusterId", "compact"] in columns
    assert ["4", "VoterId", "int32", "Voter"] in columns
    assert ["+12", "16", "ReplicaDirectoryId", "uuid"] in columns
    assert ["+56", "1", "PreVote", "bool"] in columns
    assert "compact array: count + 1 as unsigned varint (0 for null), then the elements" in lines


def test_a_layout_without_lengths_is_all_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    """In a header of fixed size every offset is known."""
    told = text(capsys, "RequestHeader", "0")
    assert "version 0, not flexible, 8 bytes" in told
    fields = data(capsys, "RequestHeader", "0")["fields"]
    assert [field["offset"] for field in fields] == [0, 2, 4]
    assert "varint" not in told


def test_tagged_fields_follow_the_struct_with_their_tags(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """People look up where they are and when they are left out."""
    told = text(capsys, "FetchResponse", "12")
    assert "tag 0: EpochEndOffset" in told
    assert "(left out if all at default)" in told
    fields = data(capsys, "FetchRequest", "17")["fields"]
    section = fields[-1]
    assert (section["name"], section["path"]) == ("tagged fields", "tagged fields")
    assert [(part["name"], part["tag"]) for part in section["fields"]] == [
        ("clusterId", 0),
        ("replicaState", 1),
    ]


@pytest.mark.parametrize(
    "name",
    ["FetchResponse", "VoteRequest", "DescribeTopicPartitionsResponse", "RequestHeader",
     "LeaderAndIsrRequest", "ProducerSnapshot", "UpdateMetadataRequest"],
)  # fmt: skip
def test_layouts_agree_with_what_is_read(name: str) -> None:
    """Offsets and sizes of the table are those of real bytes."""
    for vector in vectors()[name]:
        facts = messages.find(name).facts()
        tree, _ = annotate(facts, vector.data, vector.version)
        _compare(layout(facts, vector.version), tree, tree.start, tree.start)


def _compare(parts: list[LayoutPart], node: Annotation, message: int, element: int) -> None:
    by_name = {child.name: child for child in node.children}
    for part in parts:
        if part.facts is None:
            _compare(part.children, node, message, element)
        elif found := by_name.get(part.facts.name):
            size = found.end - found.start
            assert size == part.size if part.is_fixed else size >= part.size, part.path
            if part.offset is not None:
                base = element if part.is_relative else message
                assert found.start == base + part.offset, part.path
            for inner in found.children if part.children and part.facts.is_array else ():
                if inner.name.startswith("["):
                    _compare(part.children, inner, message, inner.start)
        else:
            assert part.tag is not None, part.path


def test_the_overview_shows_versions_notes_and_history(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One page from which a request can be written."""
    lines = text(capsys, "VoteRequest").splitlines()
    assert lines[2] == f"versions {VoteRequest.VERSIONS}, flexible 0+, listeners controller"
    voter = next(line for line in lines if line.startswith("VoterId"))
    assert "int32" in voter
    assert "1+" in voter
    assert "default -1, ignorable" in voter
    assert f"VoteRequest, from version 0 to {VoteRequest.VERSIONS.high}" in lines
    assert any(line.strip().startswith("2  adds Topics[].Partitions[].PreVote") for line in lines)


def test_the_overview_for_programs_holds_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    """A generator for another language can start from it."""
    (vote,) = [side for side in data(capsys, "Vote") if side["kind"] == "request"]
    assert vote["versions"] == str(VoteRequest.VERSIONS)
    (topics,) = [field for field in vote["fields"] if field["name"] == "topics"]
    assert (topics["type"], len(topics["fields"])) == ("[]TopicData", 2)
    directory = topics["fields"][1]["fields"][3]
    assert directory["name"] == "replicaDirectoryId"
    assert directory["default"] == "AAAAAAAAAAAAAAAAAAAAAA"
    assert directory["isIgnorable"] is True
    assert [step["version"] for step in vote["history"]][:2] == [1, 2]


@pytest.mark.slow
def test_every_message_has_an_overview_and_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    """No schema holds anything that cannot be shown, as text or as JSON."""
    for name in messages.names():
        facts = messages.find(name).facts()
        for versions in ([], [str(facts.versions.low)], [str(facts.versions.high)]):
            assert facts.name in text(capsys, name, *versions)
            shown = data(capsys, name, *versions)
            assert shown["name"] == name


def test_defaults_are_written_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    """They are not in Python's spelling."""
    every = "".join(text(capsys, name) for name in messages.names())
    assert "default null" in every
    for word in ("None", "b''", "False", "True,"):
        notes = [line for line in every.splitlines() if f"default {word}" in line]
        assert not notes


def test_descriptions_wrap_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Piped output stays one line for each row, so that grep finds it whole."""
    rows = [("0", "Name", "a description that is far too long for a narrow terminal to show")]
    assert len(table(("key", "name", "about"), rows)) == 2
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    lines = table(("key", "name", "about"), rows)
    assert len(lines) > 2
    assert all(len(line) <= 60 for line in lines[1:])
    assert lines[2].startswith(" " * len("key  name  "))


class _Terminal(io.StringIO):
    """Standard output that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("no_color", "is_coloured"), [(None, True), ("1", False)])
def test_colour_is_for_terminals_that_want_it(
    no_color: str | None, is_coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR means that it does not."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    show(["\x1b[1mbold\x1b[0m"])
    assert ("\x1b[1m" in terminal.getvalue()) == is_coloured
