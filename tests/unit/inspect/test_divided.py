"""Processes that each read some stretches of a capture, and lines that do not show it."""

from __future__ import annotations

import lzma
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.cli.decode.divide import Rest
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.support.pcap_builder import Session, pcap_of, request, response
from tests.support.run_decode import Done, run_decode

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
TOPIC_ID = bytes(range(16))
DAY_NS = 86_400_000_000_000

# Runs `kraftwire decode` with stretches of a few bytes, and says how it went.
PROGRAM = """
import sys
from kraftwire.cli.main import main
from kraftwire.capture.packets import source, stretches
from kraftwire.inspect.divided import plan, reader
from kraftwire.capture.connections.share import NotShared

step, *arguments = sys.argv[1:]
source.CAPTURE_READ_BYTES = stretches.CAPTURE_READ_BYTES = int(step) // 3
plan.FIRST_BYTES_MAX = plan.STRETCH_BYTES_MIN = plan.STRETCH_BYTES_MAX = int(step)
plan.FIRST_PART, plan.STRETCHES_MAX, reader.VAIN_MAX = 1, 10**6, 10**6
counts = {True: 0, False: 0}
read, adopt = reader.Reader.read, reader.Reader._adopt

def noisy_adopt(self, helper):
    result = adopt(self, helper)
    counts[result] += 1
    return result

def noisy_read(self, totals):
    try:
        read(self, totals)
    except NotShared as error:
        print(f"given up: {error}", file=sys.stderr)
        raise
    print(f"{counts[True]} of {sum(counts.values())} stretches", file=sys.stderr)

reader.Reader._adopt, reader.Reader.read = noisy_adopt, noisy_read
sys.exit(main(arguments))
"""


def divided(*arguments: str, step: int = 3000, pure: bool = False) -> tuple[Done, str]:
    """Decode with stretches of a size in bytes; returns also the line on how it went."""
    command = [sys.executable, "-c", PROGRAM, str(step), "decode", *arguments]
    variables = os.environ | ({"KRAFTWIRE_PURE": "1"} if pure else {})
    done = subprocess.run(
        command, capture_output=True, check=False, encoding="utf-8", env=variables
    )
    how, _, errors = done.stderr.partition("\n")
    return Done(done.stdout, errors, done.returncode), how


def equal(
    path: str, *, jobs: int = 2, step: int = 3000, pure: bool = False
) -> tuple[Done, int, int]:
    """Decode by one process and by several; both must write the same.

    Returns also how many stretches were taken over, of all that were read ahead.
    """
    one = run_decode(path, "--jobs", "1")
    many, how = divided(path, "--jobs", str(jobs), step=step, pure=pure)
    assert many == one, how
    adopted, _, stretches, *_ = how.replace("given up:", "0 of 0").split()
    return one, int(adopted), int(stretches)


def unpacked(name: str, folder: Path) -> Path:
    """A recorded capture as it was before it was packed."""
    path = folder / name.removesuffix(".xz")
    path.write_bytes(lzma.decompress((GOLDEN / name).read_bytes()))
    return path


def written(path: Path, *sessions: Session) -> str:
    """A capture of sessions, in the order of time."""
    segments = [each for session in sessions for each in session.segments]
    path.write_bytes(pcap_of(sorted(segments, key=lambda each: each.time_ns)))
    return str(path)


@pytest.mark.parametrize(("jobs", "step", "pure"), [(2, 3000, False), (3, 2000, True)])
@pytest.mark.parametrize("name", ["quorum.pcap.xz", "clients.pcap.xz", "sasl.pcap.xz"])
def test_lines_are_those_of_one_process(
    tmp_path: Path, name: str, jobs: int, step: int, pure: bool
) -> None:
    """However many processes there are, and with both engines."""
    path = str(unpacked(name, tmp_path))
    one, adopted, stretches = equal(path, jobs=jobs, step=step, pure=pure)
    assert 0 < adopted <= stretches
    assert len(one.out.splitlines()) > 20


@pytest.mark.parametrize("seed", range(6))
def test_damaged_captures_are_shown_as_by_one_process(tmp_path: Path, seed: int) -> None:
    """Packets are lost, doubled, late and cut, and connections are open from before the start."""
    random_ = random.Random(seed)
    data = unpacked("quorum.pcap.xz", tmp_path).read_bytes()
    packets, at = [], 24
    while at + 16 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        packets.append(data[at : at + 16 + size])
        at += 16 + size
    kept: list[bytes] = []
    for packet in packets[random_.randrange(400) :]:
        luck = random_.random()
        if luck < 0.01:
            continue
        kept += [packet] * (2 if luck < 0.03 else 1)
        if luck > 0.98 and len(kept) > 1:
            kept[-1], kept[-2] = kept[-2], kept[-1]
    path = tmp_path / "damaged.pcap"
    path.write_bytes(data[:24] + b"".join(kept))
    equal(str(path), jobs=2 + seed % 2, step=random_.choice((3000, 30_000)))


@pytest.mark.parametrize("wide_at", [1, 30])
def test_names_and_widths_from_other_stretches_are_known_in_time(
    tmp_path: Path, wide_at: int
) -> None:
    """A topic gets its name, and a column its width, while another process shows lines."""
    waiting, asking = Session().open(), Session(client_end=("10.0.0.9", 50000)).open()
    wide = Session(client_end=("fd00:1234:5678:9abc:def0:1234:5678:9abc", 50000))
    wide.server_end = ("fd00:1234:5678:9abc:def0:1234:5678:9abd", 50001)
    topic = MetadataResponseTopic(name="orders", topic_id=TOPIC_ID)
    named = b"\0" + MetadataResponse(topics=[topic]).encode(12)
    partition = FetchPartition(partition=3, partition_max_bytes=1)
    fetch = FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])])
    for number in range(60):
        waiting.client(request(number, b"\0" + fetch.encode(13), key=1, version=13))
        if number == wide_at:
            asking.now_ns = wide.now_ns = waiting.now_ns
            asking.client(request(1, b"\0\1\0\0\0", version=12)).server(response(1, named))
            wide.open().client(request(1)).server(response(1, bytes(9)))
            waiting.now_ns = asking.now_ns
        if number in (20, 40):
            waiting.now_ns += DAY_NS
        if number % 7:
            waiting.server(response(number, bytes(13)))
        if number % 5 == 0:
            asking.now_ns = waiting.now_ns
            asking.client(request(100 + number, key=2, version=0))
    path = written(tmp_path / "named.pcap", waiting, asking, wide)
    one, adopted, stretches = equal(path, step=600)
    assert 0 < adopted < stretches
    assert "orders" in one.out
    assert sum(line.endswith("UTC") for line in one.out.splitlines()) > 3


def _heartbeats(session: Session, numbers: range) -> None:
    """Exchanges that say nothing about others."""
    for number in numbers:
        body = b"\0\1g\0\0\0\1\0\1m"
        session.client(request(number, body, key=12, version=0))
        session.server(response(number, bytes(42)))


def test_requests_of_an_earlier_connection_have_no_response(tmp_path: Path) -> None:
    """The first response on a later connection of the same ends shows it, in any stretch."""
    other = Session(client_end=("10.0.0.9", 41000)).open()
    first, second = Session().open(), Session(client_seq=90_000_000, server_seq=70_000_000)
    _heartbeats(first, range(2))
    first.client(request(99, b"\0\1g\0\0\0\1\0\1m", key=12, version=0)).close()
    other.now_ns = first.now_ns
    _heartbeats(other, range(20))
    second.now_ns = other.now_ns
    _heartbeats(second.open(), range(5))
    other.now_ns = second.now_ns
    _heartbeats(other, range(500, 510))
    path = written(tmp_path / "reuse.pcap", first, other, second)
    for step in (600, 900, 1500, 2400):
        one, _, stretches = equal(path, step=step)
        assert stretches
    assert one.out.count("[no response]") == 1


def test_a_capture_may_be_deleted_while_it_is_read(tmp_path: Path) -> None:
    """It is read to its end, by the processes that have it open."""
    session = Session().open()
    _heartbeats(session, range(3000))
    path = written(tmp_path / "long.pcap", session)
    one = run_decode(path, "--jobs", "1")
    command = [sys.executable, "-c", PROGRAM, "20000", "decode", path, "--jobs", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        Path(path).unlink()
        rest, errors = process.stdout.read(), process.stderr.read()
    assert Done(first + rest, errors.partition("\n")[2], process.returncode) == one


def test_encrypted_connections_are_left_to_one_process(tmp_path: Path) -> None:
    """Wherever they begin; all else is read ahead still."""
    plain, tls = Session().open(), Session(client_end=("10.0.0.9", 50000)).open()
    for number in range(100):
        plain.client(request(number, bytes(300))).server(response(number, bytes(9)))
        tls.now_ns = plain.now_ns
        if number in (20, 50, 80):
            tls.client(b"\x16\x03\x01\x00\x05hello").server(b"\x16\x03\x03\x00\x05hello")
    path = written(tmp_path / "tls.pcap", plain, tls)
    one, adopted, stretches = equal(path)
    assert 0 < adopted <= stretches
    assert "TLS" in one.err


def test_one_process_reads_what_several_might_read_differently(tmp_path: Path) -> None:
    """A response from between two stretches names a topic; no line comes twice."""
    session = Session().open()
    partition = FetchPartition(partition=3, partition_max_bytes=1)
    fetch = FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])])
    topics = [
        MetadataResponseTopic(name=f"topic-{number}", topic_id=bytes([number]) * 16)
        for number in range(120)
    ]
    topics.append(MetadataResponseTopic(name="orders", topic_id=TOPIC_ID))
    named = b"\0" + MetadataResponse(topics=topics).encode(12)
    for number in range(80):
        session.client(request(number, b"\0" + fetch.encode(13), key=1, version=13))
        session.server(response(number, bytes(13)))
    session.client(request(100, b"\0\1\0\0\0", version=12)).server(response(100, named), mss=90)
    for number in range(200, 280):
        session.client(request(number, b"\0" + fetch.encode(13), key=1, version=13))
        session.server(response(number, bytes(13)))
    path = written(tmp_path / "names.pcap", session)
    one = run_decode(path, "--jobs", "1")
    ways = set()
    for step in range(1500, 9000, 700):
        many, how = divided(path, "--jobs", "2", step=step)
        assert many == one, how
        ways.add(how.partition(":")[0].split()[-1])
    assert ways == {"stretches", "up"}


def test_other_captures_and_inputs_are_not_divided(tmp_path: Path) -> None:
    """A capture that must be unpacked first, two of them, a folder, a filter, another format."""
    path, packed = str(unpacked("quorum.pcap.xz", tmp_path)), str(GOLDEN / "quorum.pcap.xz")
    other = str(unpacked("groups.pcapng.xz", tmp_path))
    for arguments in ([packed], [path, packed], [str(tmp_path)], [path, "--api", "Vote"], [other]):
        _, how = divided(*arguments, "--jobs", "2")
        assert not how.endswith("stretches"), arguments


def test_the_rest_of_a_text_follows_what_was_written() -> None:
    """Whatever pieces it comes in."""
    import io

    for step in (1, 3, 100):
        stream = io.StringIO()
        rest = Rest(stream, 7)
        text = "one\ntwo\nthree\n"
        for at in range(0, len(text), step):
            assert rest.write(text[at : at + step]) == len(text[at : at + step])
        assert stream.getvalue() == text[7:]
        assert not rest.isatty()


def test_nobody_is_left_when_the_reader_of_the_lines_goes_away(tmp_path: Path) -> None:
    """The processes end and print nothing, as one does."""
    session = Session().open()
    for number in range(3000):
        session.client(request(number, bytes(300))).server(response(number, bytes(9)))
    path = written(tmp_path / "long.pcap", session)
    command = [sys.executable, "-c", PROGRAM, "20000", "decode", path, "--jobs", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
