"""`--jobs`: the output of several processes is that of one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.support.pcap_builder import FIN, Segment, Session, pcap_of, request, response
from tests.support.relayed_decode import relayed_decode
from tests.support.run_decode import Done, run_decode

pytestmark = pytest.mark.slow

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"

# Frames that a copy shows, that the process shows meanwhile, and how many processes there are.
WAYS = [(5, 2, 2), (40, 17, 3)]
OUTPUTS: list[list[str]] = [[], ["-v"], ["--bytes"], ["--format", "jsonl"]]

_DAY_NS = 86_400_000_000_000
_TOPIC_ID = bytes(range(16))


def _unequal(folder: Path) -> str:
    """One long connection and a short one; requests without answers, and a hole in the middle."""
    long, short = Session().open(), Session(client_end=("10.0.0.9", 50000)).open()
    for number in range(120):
        long.client(request(number))
        if number % 7:
            long.server(response(number, bytes(9)))
        if number % 40 == 0:
            short.now_ns = long.now_ns
            short.client(request(number))
    segments = _by_time(long.close().segments, short.segments)
    whole = [each for each in segments if not each.payload or each.flags & FIN]
    lost = [each for each in segments if each not in whole][90:92]
    return _written(folder / "unequal.pcap", (each for each in segments if each not in lost))


def _by_time(*parts: Iterable[Segment]) -> list[Segment]:
    return sorted((each for part in parts for each in part), key=lambda each: each.time_ns)


def _written(path: Path, segments: Iterable[Segment]) -> str:
    path.write_bytes(pcap_of(segments))
    return str(path)


def _equal_however_shared(*arguments: str) -> Done:
    """Decode in one process, and in several that show few frames or many at once."""
    one = run_decode(*arguments, "--jobs", "1")
    for stretch, alone, jobs in WAYS:
        many = relayed_decode(*arguments, "--jobs", str(jobs), chunk=stretch, alone=alone)
        assert many == one, (stretch, alone, jobs)
    return one


@pytest.mark.parametrize(
    "options", [*OUTPUTS, ["--format", "jsonl", "--api", "Fetch"]], ids=" ".join
)
def test_the_output_does_not_depend_on_the_number_of_jobs(
    tmp_path: Path, options: list[str]
) -> None:
    """Lines, numbers of frames, totals and the exit code are the same."""
    paths = _unequal(tmp_path), str(GOLDEN / "sasl.pcap.xz"), str(GOLDEN / "quorum.pcap.xz")
    one = run_decode(*paths, *options, "--jobs", "1")
    assert run_decode(*paths, *options, "--jobs", "3") == one
    assert _equal_however_shared(*paths, *options) == one
    assert len(one.out.splitlines()) > 50


@pytest.mark.parametrize("options", OUTPUTS, ids=" ".join)
def test_what_one_connection_reveals_is_known_to_all_processes(
    tmp_path: Path, options: list[str]
) -> None:
    """A request that waits while its topic gets a name is shown as it was when it came."""
    waiting, asking = Session().open(), Session(client_end=("10.0.0.9", 50000)).open()
    topic = MetadataResponseTopic(name="orders", topic_id=_TOPIC_ID)
    named = b"\0" + MetadataResponse(topics=[topic]).encode(12)
    partition = FetchPartition(partition=3, partition_max_bytes=1)
    fetch = FetchRequest(topics=[FetchTopic(topic_id=_TOPIC_ID, partitions=[partition])])
    for number in range(60):
        waiting.client(request(number, b"\0" + fetch.encode(13), key=1, version=13))
        if number == 30:
            asking.now_ns = waiting.now_ns
            asking.client(request(1, b"\0\1\0\0\0", version=12)).server(response(1, named))
            waiting.now_ns = asking.now_ns
        if number >= 3:
            waiting.server(response(number - 3, bytes(13)))
    path = _written(tmp_path / "named.pcap", _by_time(waiting.segments, asking.segments))
    one = _equal_however_shared(path, *options)
    assert "orders" in one.out
    if not options:
        lines = [line for line in one.out.splitlines() if "Fetch" in line]
        assert [("orders" in line) for line in lines] == sorted("orders" in line for line in lines)
        # Three requests came before the name, and their responses after it.
        assert 20 < sum("orders" in line for line in lines) < 40


def test_headings_and_widths_are_those_of_one_process(tmp_path: Path) -> None:
    """Days begin, and a long connection widens its column, while another process shows lines."""
    session = Session().open()
    wide = Session(client_end=("fd00:1234:5678:9abc:def0:1234:5678:9abc", 50000))
    wide.server_end = ("fd00:1234:5678:9abc:def0:1234:5678:9abd", 50001)
    for number in range(60):
        if number == 17:
            wide.now_ns = session.now_ns
            wide.open().client(request(1)).server(response(1, bytes(9)))
        if number in (10, 20, 41):
            session.now_ns += _DAY_NS
        session.client(request(number, key=number % 5, version=0))
        if number % 11:
            session.server(response(number, bytes(9)))
    path = _written(tmp_path / "days.pcap", _by_time(session.segments, wide.segments))
    one = _equal_however_shared(path)
    assert sum(line.endswith("UTC") for line in one.out.splitlines()) == 4


def test_a_connection_goes_on_in_the_next_file_and_the_next_process(tmp_path: Path) -> None:
    """The files of a rotated series are one input."""
    session = Session().open()
    for number in range(90):
        session.client(request(number, bytes(3000))).server(response(number, bytes(9)))
    segments = session.close().segments
    for part in range(3):
        _written(tmp_path / f"series.pcap{part}", segments[part * 120 : part * 120 + 120])
    one = _equal_however_shared(str(tmp_path))
    assert len(one.out.splitlines()) == 92


def test_filters_that_match_nothing_are_reported_once(tmp_path: Path) -> None:
    """The frames of all workers count."""
    one = _equal_however_shared(_unequal(tmp_path), "--format", "jsonl", "--api", "Vote")
    assert one.err.count("nothing passes the filters") == 1
    assert not one.out


def test_jobs_take_what_cannot_be_read_as_one_process_does(tmp_path: Path) -> None:
    """The message is printed once."""
    missing = str(tmp_path / "missing.pcap")
    path = _unequal(tmp_path)
    one = _equal_however_shared(path, missing)
    assert one.err.count("no such file") == 1
    assert one.code == 3


def test_a_reader_that_goes_away_ends_all_processes() -> None:
    """As one process ends: it says nothing."""
    program = "from kraftwire.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    path = str(GOLDEN / "kraft_quorum.pcapng.xz")
    command = [sys.executable, "-c", program, "decode", path, "-v", "--jobs", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
