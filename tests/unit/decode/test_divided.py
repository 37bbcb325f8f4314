"""Processes that each read some connections of a capture, and lines that do not show it."""

from __future__ import annotations

import lzma
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire import engine
from kraftwire.cli.decode.divide import Rest
from kraftwire.decode.divided.weights import owners, samples_of
from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.support.pcap_builder import Session, pcap_of, request, response
from tests.support.run_decode import Done, run_decode

pytestmark = pytest.mark.skipif(
    engine.C not in engine.available(), reason="the engine in C was not built"
)

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
TOPIC_ID = bytes(range(16))
DAY_NS = 86_400_000_000_000

# Runs `kraftwire decode` with blocks of a few bytes, and says how it went.
PROGRAM = """
import sys
from kraftwire.cli.main import main
from kraftwire.decode.divided import joiner, reader
from kraftwire.decode.pairing import share

block, ahead, *arguments = sys.argv[1:]
reader.BLOCK_BYTES = int(block)
joiner.BLOCKS_AHEAD = reader.BLOCKS_AHEAD = int(ahead)
join = joiner.Joiner.join

def noisy(self, *arguments):
    try:
        join(self, *arguments)
    except share.NotShared as error:
        print(f"given up after {self.written}: {error}", file=sys.stderr)
        raise
    print("divided", file=sys.stderr)

joiner.Joiner.join = noisy
sys.exit(main(arguments))
"""


def divided(*arguments: str, block: int = 3000, ahead: int = 2) -> tuple[Done, str]:
    """Decode by several processes; returns also the line on how it went."""
    sizes = (str(block), str(ahead))
    command = [sys.executable, "-c", PROGRAM, *sizes, "decode", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, encoding="utf-8")
    how, _, errors = done.stderr.partition("\n")
    return Done(done.stdout, errors, done.returncode), how


def equal(path: str, *, jobs: int = 2, block: int = 3000, ahead: int = 2) -> tuple[Done, str]:
    """Decode by one process and by several; both must write the same."""
    one = run_decode(path, "--jobs", "1")
    many, how = divided(path, "--jobs", str(jobs), block=block, ahead=ahead)
    assert many == one, how
    return one, how


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


@pytest.mark.parametrize(
    ("jobs", "block", "ahead"), [(2, 3000, 2), (3, 100_000, 0), (5, 20_000, 6)]
)
@pytest.mark.parametrize(
    "name", ["quorum.pcap.xz", "clients.pcap.xz", "sasl.pcap.xz", "groups.pcapng.xz"]
)
def test_lines_are_those_of_one_process(
    tmp_path: Path, name: str, jobs: int, block: int, ahead: int
) -> None:
    """However many processes there are, and however far one may be ahead of the others."""
    one, how = equal(str(unpacked(name, tmp_path)), jobs=jobs, block=block, ahead=ahead)
    assert how == "divided"
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
    equal(str(path), jobs=2 + seed % 2, block=random_.choice((2000, 30_000)))


def test_names_and_widths_from_other_connections_are_known_in_time(tmp_path: Path) -> None:
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
        if number == 30:
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
    one, how = equal(path, block=500)
    assert how == "divided"
    assert "orders" in one.out
    assert sum(line.endswith("UTC") for line in one.out.splitlines()) > 3


def test_one_process_goes_on_where_several_might_differ(tmp_path: Path) -> None:
    """A connection turns out to be encrypted after lines were written; none comes twice."""
    plain, tls = Session().open(), Session(client_end=("10.0.0.9", 50000)).open()
    for number in range(300):
        plain.client(request(number, bytes(3000))).server(response(number, bytes(9)))
    tls.now_ns = plain.now_ns
    tls.client(b"\x16\x03\x01\x00\x05hello").server(b"\x16\x03\x03\x00\x05hello")
    for number in range(300, 600):
        plain.client(request(number, bytes(3000))).server(response(number, bytes(9)))
    path = written(tmp_path / "tls.pcap", plain, tls)
    _, how = equal(path, block=1000, ahead=0)
    assert how.endswith("connections are encrypted")
    assert int(how.split()[3].rstrip(":")) > 1000


def test_packed_captures_and_other_inputs_are_read_by_one_process(tmp_path: Path) -> None:
    """A capture that must be unpacked first, two of them, a folder, a filter."""
    path, packed = str(unpacked("quorum.pcap.xz", tmp_path)), str(GOLDEN / "quorum.pcap.xz")
    for arguments in ([packed], [path, packed], [str(tmp_path)], [path, "--api", "Vote"]):
        _, how = divided(*arguments, "--jobs", "2")
        assert how != "divided", arguments


def test_connections_are_shared_by_their_packets(tmp_path: Path) -> None:
    """A busy one outweighs some idle ones, wherever in the capture that is."""
    sessions = [Session(client_end=("10.0.0.9", 50000 + number)).open() for number in range(5)]
    for number in range(200):
        for client, session in enumerate(sessions):
            session.now_ns = max(each.now_ns for each in sessions)
            for _ in range(4 if client == 2 and number > 100 else 1):
                session.client(request(number, bytes(1000)))
    path = written(tmp_path / "busy.pcap", *sessions)
    found = owners(list(samples_of(path)), 2)
    assert len(found) == 10
    assert sorted(map(list(found.values()).count, (0, 1))) != [0, 10]


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
    path = str(unpacked("kraft_quorum.pcapng.xz", tmp_path))
    program = "from kraftwire.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "decode", path, "--jobs", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
