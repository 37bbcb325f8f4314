"""`kraftwire decode` as a program: inputs, exit codes, and messages on standard error."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cramjam
import pytest

from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.cli.main import main
from kraftwire.inspect.run import inputs as bare
from kraftwire.inspect.run.totals import Totals, summary
from kraftwire.messages.fetch_response import FetchResponse
from kraftwire.messages.vote_request import VoteRequest
from kraftwire.records import Record, build_batch
from tests.support.captures.decoded import golden
from tests.support.captures.payloads import request, response

CLEAN, NOTHING, USAGE, PARTIAL = 0, 1, 2, 3
Captured = pytest.CaptureFixture[str]

_FETCHED = {
    "errorCode": 0, "highWatermark": 1, "lastStableOffset": 1, "logStartOffset": 0,
    "abortedTransactions": None, "preferredReadReplica": -1,
}  # fmt: skip


def _run(*arguments: str | Path) -> int:
    return main(["decode", *map(str, arguments)])


def _lines(captured: Captured) -> list[dict[str, Any]]:
    return [json.loads(line) for line in captured.readouterr().out.splitlines()]


def _unpacked(name: str, folder: Path) -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(lzma.decompress(golden(name).read_bytes()))
    return path


# -- exit codes -----------------------------------------------------------------------------------


def test_a_capture_without_damage_is_clean(capsys: Captured) -> None:
    """A trailing byte of a client is a finding, not a failure."""
    assert _run(golden("clients"), "--format", "jsonl") == CLEAN
    assert "trailing-bytes 1" in capsys.readouterr().err


def test_a_lost_packet_is_partial(tmp_path: Path, capsys: Captured) -> None:
    """Programs that rely on the output can tell that something is missing."""
    data = _unpacked("quorum", tmp_path).read_bytes()
    packets = _packets(data)
    largest = max(range(len(packets)), key=lambda n: len(packets[n]))
    path = tmp_path / "lossy.pcap"
    path.write_bytes(data[:24] + b"".join(packets[:largest] + packets[largest + 1 :]))
    assert _run(path, "--format", "jsonl") == PARTIAL
    captured = capsys.readouterr()
    assert "gap 1" in captured.err
    assert sum('"incomplete"' in line for line in captured.out.splitlines()) == 1


def _packets(data: bytes) -> list[bytes]:
    packets, at = [], 24
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        packets.append(data[at : at + 16 + size])
        at += 16 + size
    return packets


def test_a_file_of_nothing_known_is_nothing(tmp_path: Path, capsys: Captured) -> None:
    """Exit code 1 and a line that names the file."""
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    assert _run(path) == NOTHING
    assert "notes.txt: unknown-file" in capsys.readouterr().err


def test_a_folder_without_files_to_decode_is_reported(tmp_path: Path, capsys: Captured) -> None:
    """A wrong folder must not look like a right one without contents."""
    for arguments in ((tmp_path,), ("-q", tmp_path)):
        assert _run(*arguments) == NOTHING
        (line,) = capsys.readouterr().err.splitlines()
        assert line == f"kraftwire: {tmp_path}: no file in it can be decoded"


def test_a_missing_file_is_reported_and_the_others_are_decoded(capsys: Captured) -> None:
    """One wrong name in a list must not cost the rest of the run."""
    assert _run("/nowhere/at.all", golden("sasl"), "--format", "jsonl") == PARTIAL
    captured = capsys.readouterr()
    assert "/nowhere/at.all: no such file" in captured.err
    assert len(captured.out.splitlines()) == 48


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("x.pcap", "--api", "Fetsch"),
        ("x.pcap", "--error", "NO_SUCH"),
        ("x.pcap", "--since", "yesterday"),
        ("x.pcap", "--partition", "first"),
        ("x.pcap", "--connection", "localhost:http"),
        ("x.pcap", "--connection", ":65536"),
        ("x.pcap", "--connection", "10.0.0.1:"),
        ("x.pcap", "--connection", "!10.0.0.1:1-10.0.0.2:x"),
        ("x.pcap", "--connection", "9092"),
        ("x.pcap", "--connection", "fe80::1:9092"),
        ("x.pcap", "-v", "--format", "jsonl"),
        ("x.pcap", "--no-such-option"),
        ("-", "--input", "hex", "--response"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_reported_in_one_line(arguments: tuple[str, ...], capsys: Captured) -> None:
    """No traceback, exit code 2."""
    assert _run(*arguments) == USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1


@pytest.mark.parametrize("short", [("-v",), ("--bytes",)], ids=" ".join)
def test_one_more_v_cuts_nothing(short: tuple[str, ...], capsys: Captured) -> None:
    """The first -v chooses the tree; --bytes needs none to be chosen."""
    assert _run(golden("quorum"), *short) == CLEAN
    cut = capsys.readouterr().out
    assert _run(golden("quorum"), *short, "-v") == CLEAN
    full = capsys.readouterr().out
    assert " more, -v" in cut
    assert " more, -v" not in full


def test_a_wrong_api_name_comes_with_a_suggestion(capsys: Captured) -> None:
    """Most wrong names are typing errors."""
    _run("x.pcap", "--api", "Fetsch")
    assert "did you mean Fetch" in capsys.readouterr().err


# -- inputs ---------------------------------------------------------------------------------------


def _program(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tools.decode", *map(str, arguments)]
    root = Path(__file__).resolve().parents[3]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=root, check=False)


def test_a_capture_comes_through_a_pipe(tmp_path: Path) -> None:
    """As with tcpdump; compressed captures too."""
    for data in (_unpacked("sasl", tmp_path).read_bytes(), golden("sasl").read_bytes()):
        done = _program("-", "--format", "jsonl", stdin=data)
        assert done.returncode == CLEAN, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == 48
        assert lines[0]["file"] == "-"


def test_a_file_on_standard_input_is_recognised(tmp_path: Path) -> None:
    """If the bytes can be read twice, their kind is detected, as for a file."""
    path = tmp_path / "x"
    path.write_text('{"leaderId":1,"leaderEpoch":3,"votedId":-1,"data_version":1}')
    command = [sys.executable, "-m", "tools.decode", "-", "--format", "jsonl"]
    root = Path(__file__).resolve().parents[3]
    with path.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, capture_output=True, cwd=root, check=False)
    assert json.loads(done.stdout)["type"] == "quorum-state"


def test_several_captures_are_numbered_consecutively(capsys: Captured) -> None:
    """Frame numbers are those of the run."""
    _run(golden("sasl"), golden("clients"), "--format", "jsonl")
    lines = _lines(capsys)
    assert [line["frame"] for line in lines] == list(range(48 + 152))
    assert len({line["file"] for line in lines}) == 2


def test_a_folder_may_hold_captures_and_log_files(tmp_path: Path, capsys: Captured) -> None:
    """Everything of a support bundle in one run."""
    _unpacked("sasl", tmp_path)
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "quorum-state").write_text('{"leaderId":1,"leaderEpoch":3,"data_version":1}')
    _run(tmp_path, "--format", "jsonl")
    lines = _lines(capsys)
    assert len(lines) == 49
    assert lines[-1]["type"] == "quorum-state"


def test_hex_may_come_with_and_without_a_length(tmp_path: Path, capsys: Captured) -> None:
    """Hex may be copied from a log, a test or a debugger."""
    payload = request("Vote", 2, VoteRequest(cluster_id="c"), 9)
    path = tmp_path / "hex"
    framed = len(payload).to_bytes(4, "big") + payload
    path.write_text(f"# a comment\n\n{payload.hex()}\n0x{payload.hex()}\n{framed.hex(':')}\n")
    assert _run(path, "--input", "hex", "--format", "jsonl") == CLEAN
    lines = _lines(capsys)
    assert [line["correlationId"] for line in lines] == [9, 9, 9]
    assert [line["size"] for line in lines] == [len(payload)] * 3
    assert (lines[0]["time"], lines[0]["connection"]) == (None, None)


def test_a_line_that_is_not_hex_is_named_and_the_others_are_decoded(
    tmp_path: Path, capsys: Captured
) -> None:
    """The rest of the file and later files too; the exit code shows that a line was skipped."""
    payload = request("Vote", 2, VoteRequest(cluster_id="c"), 9).hex()
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_text(f"{payload}\nxyz\n{payload}\nuvw\n123\n")
    good.write_text(f"{payload}\n")
    assert _run(bad, good, "--input", "hex", "--format", "jsonl") == PARTIAL
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 3
    assert "bad: line 2 is not hexadecimal: 'xyz'\n" in captured.err
    assert "bad: 2 more lines are not hexadecimal\n" in captured.err


def test_an_endless_line_of_hex_is_skipped(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs no more memory than the limit, and the line after it is decoded."""
    monkeypatch.setattr(bare, "HEX_LINE_BYTES_MAX", 200_000)
    payload = request("Vote", 2, VoteRequest(cluster_id="c"), 9).hex()
    path = tmp_path / "hex"
    path.write_text(f"{'00' * 150_000}\n{payload}\n")
    assert _run(path, "--input", "hex", "--format", "jsonl") == PARTIAL
    captured = capsys.readouterr()
    assert [json.loads(line)["apiName"] for line in captured.out.splitlines()] == ["Vote"]
    assert "line 1 is longer than 200000 bytes" in captured.err


def test_a_stream_with_an_impossible_length_is_reported_and_the_others_are_decoded(
    tmp_path: Path, capsys: Captured
) -> None:
    """Nothing marks where the next frame would begin."""
    payload = request("Vote", 2, VoteRequest(cluster_id="c"), 9)
    framed = len(payload).to_bytes(4, "big") + payload
    bad, good = tmp_path / "bad", tmp_path / "good"
    bad.write_bytes(framed + b"\xff\xff\xff\xfe" + framed)
    good.write_bytes(framed)
    assert _run(bad, good, "--input", "frames", "--format", "jsonl") == PARTIAL
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 2
    assert f"bad at byte {len(framed)}: nothing is decoded from here on" in captured.err
    assert _run(tmp_path / "missing", good, "--input", "frames", "-q") == PARTIAL
    assert "missing: cannot read" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [0, 1, 20])
def test_a_capture_may_be_cut_anywhere(cut: int, tmp_path: Path, capsys: Captured) -> None:
    """A frame cut by the capture's end is a finding, not a failure; a cut packet is reported."""
    path = _unpacked("clients", tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - len(_packets(data)[-1]) - cut])
    assert _run(path, "--format", "jsonl") == CLEAN
    assert ("the file ends inside a packet" in capsys.readouterr().err) == bool(cut)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, cramjam.zstd.compress])
def test_a_cut_compressed_capture_is_decoded_as_far_as_it_goes(
    pack: Callable[[bytes], bytes], tmp_path: Path, capsys: Captured
) -> None:
    """What was cut off never existed, whatever the compression."""
    whole = golden("quorum").with_name("kraft_quorum.pcapng.xz").read_bytes()
    packed = bytes(pack(lzma.decompress(whole)[:1_000_000]))
    path = tmp_path / "x"
    path.write_bytes(packed[: len(packed) * 3 // 4])
    assert _run(path, "--format", "jsonl", "--records", "none") == CLEAN
    captured = capsys.readouterr()
    assert captured.out.count("\n") > 1000
    assert "the packed file is cut off" in captured.err


def test_a_damaged_capture_is_partial(tmp_path: Path, capsys: Captured) -> None:
    """What follows the damage exists, but is not decoded."""
    path = _unpacked("clients", tmp_path)
    data = bytearray(path.read_bytes())
    at = 24 + sum(len(packet) for packet in _packets(bytes(data))[:100])
    data[at + 8 : at + 12] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    assert _run(path, "--format", "jsonl") == PARTIAL
    assert "cannot be" in capsys.readouterr().err


def test_bare_responses_need_to_know_what_they_answer(tmp_path: Path, capsys: Captured) -> None:
    """A response does not say which API it belongs to."""
    payload = response("Vote", 2, {"errorCode": 41, "topics": []}, 9)
    path = tmp_path / "frames"
    path.write_bytes(len(payload).to_bytes(4, "big") + payload)
    options = (path, "--input", "frames", "--response", "--format", "jsonl")
    assert _run(*options, "--api", "vote", "--version", "2") == CLEAN
    (line,) = _lines(capsys)
    assert (line["apiName"], line["direction"]) == ("Vote", "response")
    assert line["body"] == {"errorCode": 41, "topics": []}


def test_a_stream_of_frames_may_be_cut_off(tmp_path: Path, capsys: Captured) -> None:
    """The last frame is shown as far as it goes."""
    payload = request("Vote", 2, VoteRequest(cluster_id="cluster"))
    framed = len(payload).to_bytes(4, "big") + payload
    path = tmp_path / "frames"
    path.write_bytes(framed + framed[:-3])
    assert _run(path, "--input", "frames", "--format", "jsonl") == CLEAN
    first, second = _lines(capsys)
    assert first["remaining"] == 0
    assert [each["id"] for each in second["findings"]] == ["cut-by-capture-end", "incomplete"]
    assert second["size"] == len(payload)


def test_a_closed_pipe_ends_the_run_quietly(tmp_path: Path) -> None:
    """As in ``kraftwire decode x.pcap | head``."""
    path = _unpacked("quorum", tmp_path)
    root = Path(__file__).resolve().parents[3]
    command = f"{sys.executable} -m tools.decode {path} -q --format jsonl | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, cwd=root, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_encrypted_connections_are_reported() -> None:
    """They cannot be decoded, and the reader should know why."""
    tls = TlsConnection("1.2.3.4:5-6.7.8.9:9093", "kafka.example", "TLSv1.3", 1000, 2000)
    totals = Totals(captures={"x.pcap": Health(tls=[tls], tls_connections=1)})
    text = "\n".join(summary(totals))
    assert "1.2.3.4:5-6.7.8.9:9093 is encrypted (TLSv1.3 to kafka.example)" in text
    assert "1,000 bytes from the client and 2,000 from the server are not decoded" in text
    assert totals.exit_code == NOTHING


def _encrypted(count: int, reason: str = "") -> list[TlsConnection]:
    return [
        TlsConnection(f"1.2.3.4:{port}-6.7.8.9:9093", "", "TLSv1.3", 10, 20, reason=reason)
        for port in range(count)
    ]


def test_many_encrypted_connections_are_summed_up() -> None:
    """The first few of each reason are named, and the option that decodes them once."""
    tls = [*_encrypted(500), *_encrypted(4, "the server's hello is missing")]
    captures = {name: Health(tls=tls, tls_connections=504) for name in ("x.pcap", "y.pcap")}
    lines = list(summary(Totals(captures=captures)))
    assert [line for line in lines if " more" in line] == [
        "x.pcap: and 497 more, of 14,910 bytes", "x.pcap: and 1 more, of 30 bytes",
        "y.pcap: and 497 more, of 14,910 bytes", "y.pcap: and 1 more, of 30 bytes",
    ]  # fmt: skip
    assert sum("is encrypted" in line for line in lines) == 12
    assert ["--keylog" in line for line in lines] == [False] * (len(lines) - 1) + [True]


def test_secrets_that_do_not_help_bring_no_advice_to_give_some() -> None:
    """The option was used already, or the capture has secrets of its own."""
    tls = _encrypted(1, "its secrets are not among those that are known")
    totals = Totals(captures={"x.pcap": Health(tls=tls, tls_connections=1)})
    assert not any("--keylog" in line for line in summary(totals))


@pytest.mark.parametrize("form", ["line", "jsonl"])
def test_a_wrong_crc_in_a_frame_is_noticed_in_every_form(
    form: str, tmp_path: Path, capsys: Captured
) -> None:
    """Lines take a fast path that does not read records, but it checks their CRCs."""
    batch = bytearray(build_batch([Record(0, 5, b"key", b"value")]))
    batch[-2] ^= 1
    partition = {"partitionIndex": 0, "records": b64encode(batch).decode()}
    body = FetchResponse.from_json(
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "sessionId": 0,
            "responses": [{"topicId": "A" * 22, "partitions": [{**_FETCHED, **partition}]}],
        },
        17,
    )
    path = tmp_path / "fetch.hex"
    path.write_text((b"\0\0\0\x07\0" + body.encode(17)).hex() + "\n")
    options = ("--input", "hex", "--response", "--api", "Fetch", "--version", "17")
    assert _run(path, *options, "--format", form) == PARTIAL
    assert "batch-crc" in capsys.readouterr().err
