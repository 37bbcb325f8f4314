"""`kraftwire message`: every line is answered, in order, whatever it holds."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import tracemalloc
from typing import Any

import pytest

from kraftwire.cli import message as command
from kraftwire.cli.main import main
from kraftwire.messages.vote_request import VoteRequest
from tests.support.messages.vectors import canonical, vectors

START = "import sys; from kraftwire.cli.main import main; sys.exit(main())"
EMPTY_VOTE = {"clusterId": None, "topics": []}


def ask(action: str, *lines: Any) -> list[dict[str, Any]]:
    """The answers to lines, which are bytes, text, or objects to write as JSON."""
    raw = [_raw(line) for line in lines]
    target = io.BytesIO()
    command.translate(action, io.BytesIO(b"\n".join(raw) + b"\n"), target)
    answers = target.getvalue().splitlines()
    assert len(answers) == len(lines)
    return [json.loads(answer, parse_constant=pytest.fail) for answer in answers]


def _raw(line: Any) -> bytes:
    if isinstance(line, bytes):
        return line
    return (line if isinstance(line, str) else json.dumps(line)).encode()


def vote(**changes: Any) -> dict[str, Any]:
    """A line that encodes, with changes; None removes a key."""
    line = {"name": "VoteRequest", "version": 0, "json": EMPTY_VOTE} | changes
    return {key: value for key, value in line.items() if value is not ...}


def test_every_vector_decodes_to_kafkas_json() -> None:
    """The line has what Kafka's converter prints, for every message and version."""
    every = [vector for found in vectors().values() for vector in found]
    lines = [{"name": v.name, "version": v.version, "hex": v.data.hex()} for v in every]
    for vector, reply in zip(every, ask("decode", *lines), strict=True):
        assert list(reply) == ["name", "version", "json", "rest"]
        assert (reply["name"], reply["version"]) == (vector.name, vector.version)
        assert canonical(reply["json"]) == canonical(vector.printed), vector
        assert reply["rest"] == 0


def test_every_vector_encodes_to_kafkas_bytes() -> None:
    """Given what Kafka's converter prints, or the same with tagged defaults spelled out."""
    every = [vector for found in vectors().values() for vector in found]
    lines = [{"name": v.name, "version": v.version, "json": v.given} for v in every]
    for vector, reply in zip(every, ask("encode", *lines), strict=True):
        expected = {"name": vector.name, "version": vector.version, "hex": vector.data.hex()}
        assert reply == expected, vector
        assert list(reply) == ["name", "version", "hex"]


def test_answers_can_be_given_back() -> None:
    """Keys that an action does not need are ignored, so the two can be piped together."""
    (decoded,) = ask("decode", {"name": "VoteRequest", "version": 0, "hex": "000100"})
    (encoded,) = ask("encode", decoded)
    assert encoded == {"name": "VoteRequest", "version": 0, "hex": "000100"}
    assert ask("decode", encoded) == [decoded]


def test_bytes_after_the_message_are_counted() -> None:
    """A frame with a trailing byte is legal, and users should see it."""
    (reply,) = ask("decode", {"name": "VoteRequest", "version": 0, "hex": "000100FFfe"})
    assert reply == {"name": "VoteRequest", "version": 0, "json": EMPTY_VOTE, "rest": 2}


def test_records_are_base64_both_ways() -> None:
    """Kafka's converter loses them; in a capture they matter most."""
    batches = base64.b64encode(b"record batches").decode()
    partition = {"index": 0, "records": batches}
    topic = {"name": "t", "partitionData": [partition]}
    body = {"transactionalId": None, "acks": -1, "timeoutMs": 1, "topicData": [topic]}
    (encoded,) = ask("encode", {"name": "ProduceRequest", "version": 9, "json": body})
    assert b"record batches".hex() in encoded["hex"]
    assert ask("decode", encoded)[0]["json"] == body


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("", "the line is empty"),
        ("   ", "the line is empty"),
        ("hello", "Expecting value at column 1"),
        ("[1,", "column 5"),
        ('{"name": "VoteRequest",', "not JSON"),
        ('{"name": "VoteRequest"} x', "Extra data"),
        (b"\xff\xfe{}", "not UTF-8 at byte 0"),
        (b'{"name": "\xc3"}', "not UTF-8 at byte 10"),
        ('{"version": NaN}', "NaN is not allowed"),
        ('{"version": -Infinity}', "-Infinity is not allowed"),
        ('{"version": ' + "9" * 5000 + "}", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"json": ' + '{"a":' * 20_000, "nested too deeply"),
    ],
)
def test_a_line_that_is_not_json_has_neither_name_nor_version(line: Any, error: str) -> None:
    """There is nothing to repeat; the error says what is wrong with the line."""
    (reply,) = ask("decode", line)
    assert list(reply) == ["name", "version", "error"]
    assert (reply["name"], reply["version"]) == (None, None)
    assert error in reply["error"]


@pytest.mark.parametrize("line", ["[1]", '"text"', "5", "null", "true", "[]"])
def test_a_line_must_be_an_object(line: str) -> None:
    """Anything else is JSON, but has no name and no version."""
    (reply,) = ask("encode", line)
    assert (reply["name"], reply["version"]) == (None, None)
    assert reply["error"].startswith("a line must be a JSON object, found ")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": ...}, "the key 'name' is missing"),
        ({"version": ...}, "the key 'version' is missing"),
        ({"json": ...}, "the key 'json' is missing"),
        ({"name": 5}, "'name' must be a message's name, found 5"),
        ({"name": None}, "'name' must be a message's name, found null"),
        ({"name": "VoteReqest"}, "there is no message 'VoteReqest'; did you mean VoteRequest"),
        ({"name": ""}, "there is no message ''"),
        ({"name": "x" * 10_000}, "found a string of 10000 characters"),
        ({"name": "messages"}, "there is no message 'messages'"),
        ({"version": True}, "'version' must be an integer, found true"),
        ({"version": 0.0}, "'version' must be an integer, found 0.0"),
        ({"version": "0"}, "'version' must be an integer, found \"0\""),
        ({"version": None}, "'version' must be an integer, found null"),
        ({"version": 99}, f"VoteRequest has versions {VoteRequest.VERSIONS}, not 99"),
        ({"version": -1}, f"VoteRequest has versions {VoteRequest.VERSIONS}, not -1"),
        ({"version": 10**30}, f"VoteRequest has versions {VoteRequest.VERSIONS}, not 1000"),
        ({"json": []}, "expected a JSON object, found []"),
        ({"json": "000100"}, "expected a JSON object, found '000100'"),
        ({"json": None}, "expected a JSON object, found None"),
        ({"json": {}}, "VoteRequest v0 clusterId: the key is missing"),
        ({"json": EMPTY_VOTE | {"extra": 1}}, "extra: unknown key"),
        ({"json": EMPTY_VOTE | {"topics": [{}]}}, "topics[0].topicName: the key is missing"),
        ({"json": EMPTY_VOTE | {"clusterId": "\ud800"}}, "expected UTF-8 text"),
        ({"json": EMPTY_VOTE | {"clusterId": "x" * 40_000}}, "string of 40000 bytes"),
        ({"json": EMPTY_VOTE | {"clusterId": 1}}, "clusterId: wrong type (expected a string"),
    ],
)
def test_a_bad_line_to_encode_says_what_is_wrong(changes: dict[str, Any], error: str) -> None:
    """It also repeats the given name and version, so that the line can be found."""
    line = vote(**changes)
    (reply,) = ask("encode", line)
    assert list(reply) == ["name", "version", "error"]
    assert (reply["name"], reply["version"]) == (line.get("name"), line.get("version"))
    assert error in reply["error"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (..., "the key 'hex' is missing"),
        (5, "'hex' must be a string, found 5"),
        (None, "'hex' must be a string, found null"),
        (["00"], "'hex' must be a string, found an array"),
        ("000", "'hex' has 3 digits, two are needed for each byte"),
        ("00 0100", "'hex' has ' ' at position 2"),
        ("0001zz", "'hex' has 'z' at position 4"),
        ("0x00", "'hex' has 'x' at position 1"),
        ("é0", "'hex' has 'é' at position 0"),
        ("\ud800", "'hex' has '\\ud800' at position 0"),
        ("", "VoteRequest v0 clusterId at offset 0"),
        ("0002", "VoteRequest v0 topics"),
        ("00ffffffff0f", "topics at offset 1: an array of 4294967294 elements"),
    ],
)
def test_a_bad_line_to_decode_says_what_is_wrong(text: Any, error: str) -> None:
    """Wrong digits are distinguished from wrong bytes, which are reported by field and offset."""
    (reply,) = ask("decode", vote(hex=text, json=...))
    assert (reply["name"], reply["version"]) == ("VoteRequest", 0)
    assert error in reply["error"]


@pytest.mark.parametrize("given", ["[1, 2]", '{"a": 1}', "1e999", "-1e999"])
def test_an_answer_is_always_json(given: str) -> None:
    """Numbers that JSON cannot express, and whole structures, are not repeated."""
    (reply,) = ask("decode", f'{{"name": {given}, "version": {given}, "hex": ""}}')
    assert (reply["name"], reply["version"]) == (None, None)
    assert "'name' must be a message's name" in reply["error"]


def test_deep_json_inside_a_line_does_not_end_the_run() -> None:
    """Deep enough to be read and too deep to be shown, at whatever depth that begins."""
    for depth in (100, 500, 900, 950, 980, 990, 1000, 5000):
        nested = "[" * depth + "]" * depth
        line = f'{{"name": "VoteRequest", "version": 0, "json": {{"clusterId": {nested}}}}}'
        assert "error" in ask("encode", line)[0]


def test_bad_lines_do_not_end_the_run() -> None:
    """One answer for each line, in order, good ones among bad ones."""
    good = {"name": "VoteRequest", "version": 0, "hex": "000100"}
    replies = ask("decode", good, "", good, b"\xff", "{}", good)
    assert ["error" in reply for reply in replies] == [False, True, False, True, True, False]


@pytest.mark.parametrize("action", ["decode", "encode"])
def test_an_error_of_the_command_before_is_passed_on(action: str) -> None:
    """In a pipe of two, the first one knows what is wrong."""
    line = {"name": "VoteRequest", "version": 0, "error": "topics: the key is missing"}
    assert command.answer(action, json.dumps(line).encode()) == line


def test_lines_end_with_a_newline_only() -> None:
    """Other characters that Python treats as line ends may be in a JSON string."""
    text = "a\u2028b\x85c"
    line = vote(json=EMPTY_VOTE | {"clusterId": text})
    raw = json.dumps(line, ensure_ascii=False).encode() + b"\r"
    (reply,) = ask("encode", raw)
    assert text.encode().hex() in reply["hex"]


def test_a_last_line_without_newline_is_a_line() -> None:
    """printf and many programs leave it out."""
    target = io.BytesIO()
    assert not command.translate("decode", io.BytesIO(b"{}\n{}"), target)
    assert target.getvalue().count(b"\n") == 2


def test_an_endless_line_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by the limit, and the next line is answered."""
    monkeypatch.setattr(command, "MESSAGE_LINE_BYTES_MAX", 100)
    long = b'{"name": "' + b"x" * 1000 + b'"}'
    replies = ask("decode", long, {"name": "VoteRequest", "version": 0, "hex": "000100"})
    assert replies[0]["error"] == "the line is longer than 100 bytes"
    assert replies[1]["rest"] == 0


def test_the_rest_of_a_line_that_is_too_long_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gigabyte without a line end takes no more than the limit, whatever the size of reads."""
    monkeypatch.setattr(command, "MESSAGE_LINE_BYTES_MAX", 300_000)
    tracemalloc.start()
    target = io.BytesIO()
    assert not command.translate("decode", _Endless(20_000_000), target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert target.getvalue().count(b"is longer than 300000 bytes") == 1
    assert peak < 2_000_000


class _Endless(io.BytesIO):
    """One line of this many bytes, made while it is read."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._left = size

    def readline(self, size: int | None = -1, /) -> bytes:
        taken = min(self._left, size if size is not None and size >= 0 else self._left)
        self._left -= taken
        return b"x" * taken


@pytest.mark.parametrize("size", [64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 300 * 1024])
def test_a_line_longer_than_one_read_is_whole(size: int) -> None:
    """It must not matter where the reads split it."""
    start, end = b'{"name": "VoteRequest", "version": 0, "hex": "000100', b'"}'
    line = start + b"0" * ((size - len(start) - len(end)) // 2 * 2) + end
    line += b" " * (size - len(line))
    first, second = ask("decode", line, line)
    assert first["rest"] == (len(line.rstrip()) - len(start) - len(end)) // 2
    assert second == first


@pytest.mark.parametrize(
    ("stdin", "code"),
    [("", 0), ('{"name":"VoteRequest","version":0,"hex":"000100"}\n', 0), ("x\n", 3), ("\n", 3)],
)
def test_the_exit_code_says_whether_every_line_was_translated(
    stdin: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script need not read the lines to know."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO()))
    assert main(["message", "decode"]) == code


def test_an_answer_comes_before_the_next_question() -> None:
    """Another program can keep it running and ask when it needs to."""
    with subprocess.Popen(
        [sys.executable, "-c", START, "message", "decode"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin
        assert program.stdout
        for rest in ("", "00", "0000"):
            line = {"name": "VoteRequest", "version": 0, "hex": "000100" + rest}
            program.stdin.write(json.dumps(line) + "\n")
            program.stdin.flush()
            assert json.loads(program.stdout.readline())["rest"] == len(rest) // 2
        program.stdin.close()
        assert program.wait() == 0
