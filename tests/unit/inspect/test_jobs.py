"""`--jobs`: the output of several processes, one for each capture, is that of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kraftwire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftwire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from tests.support.captures.builder import Session, pcap_of, request, response
from tests.support.commands.run import Done, run_decode

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"
GOLDENS = [str(GOLDEN / f"{name}.pcap.xz") for name in ("quorum", "sasl", "clients")]
JSON = ("--format", "jsonl")
NO_EFFECT = "kraftwire: --jobs has no effect"

_TOPIC_ID = bytes(range(16))


def _equal(*arguments: str) -> Done:
    """Decode in one process and in three, which has to give the same."""
    one = run_decode(*arguments, *JSON)
    many = run_decode(*arguments, *JSON, "--jobs", "3")
    assert NO_EFFECT not in many.err
    assert many == one
    return one


@pytest.mark.parametrize(
    "options", [[], ["--api", "Fetch"], ["--since", "+5"], ["--records", "none"]], ids=" ".join
)
def test_the_output_does_not_depend_on_the_number_of_jobs(options: list[str]) -> None:
    """Lines, numbers of frames, totals and the exit code are the same."""
    one = _equal(*GOLDENS, "--no-merge", *options)
    assert len(one.out.splitlines()) > 50


def _named_topic(folder: Path) -> list[str]:
    """Write a capture that names a topic, and a later one with a Fetch of its id."""
    topic = MetadataResponseTopic(name="__consumer_offsets", topic_id=_TOPIC_ID)
    named = b"\0" + MetadataResponse(topics=[topic]).encode(12)
    first = Session().open()
    first.client(request(1, b"\0\1\0\0\0", version=12)).server(response(1, named))
    partition = FetchPartition(partition=3, partition_max_bytes=1)
    fetch = FetchRequest(topics=[FetchTopic(topic_id=_TOPIC_ID, partitions=[partition])])
    second = Session(client_end=("10.0.0.9", 50000))
    second.now_ns = first.now_ns + 1_000_000_000
    second.open().client(request(1, b"\0" + fetch.encode(13), key=1, version=13))
    paths = []
    for name, session in ("names", first), ("ids", second):
        path = folder / f"{name}.pcap"
        path.write_bytes(pcap_of(session.segments))
        paths.append(str(path))
    return paths


def test_what_one_capture_reveals_is_known_in_the_next(tmp_path: Path) -> None:
    """Filters find a topic by the name that an earlier capture has given to its id."""
    one = _equal(*_named_topic(tmp_path), "--topic", "__consumer_offsets")
    assert '"apiName":"Fetch"' in one.out


def test_a_damaged_capture_is_reported_as_by_one_process(tmp_path: Path) -> None:
    """The message is printed once, in the order of the files."""
    damaged = tmp_path / "damaged.pcap"
    whole = Path(_named_topic(tmp_path)[1]).read_bytes()
    damaged.write_bytes(whole[:-20])
    one = _equal(str(damaged), GOLDENS[0], "--no-merge")
    assert one.err.count("damaged.pcap") == 2


def test_filters_that_match_nothing_are_reported_once() -> None:
    """The frames of all processes count."""
    one = _equal(*GOLDENS[:2], "--no-merge", "--api", "ElectLeaders")
    assert one.err.count("nothing passes the filters") == 1
    assert not one.out


@pytest.mark.parametrize(
    "arguments",
    [[GOLDENS[0], *JSON], [*GOLDENS[:2], "--no-merge"], [GOLDENS[0], "missing.pcap", *JSON]],
    ids=["one capture", "lines", "no capture"],
)
def test_where_jobs_have_no_effect_it_is_said(arguments: list[str]) -> None:
    """Everything else is as without the option."""
    one, many = run_decode(*arguments), run_decode(*arguments, "--jobs", "3")
    said, rest = many.err.split("\n", 1)
    assert said.startswith(NO_EFFECT)
    assert (many.out, rest, many.code) == (one.out, one.err, one.code)


def test_a_reader_that_goes_away_ends_all_processes() -> None:
    """As one process ends: it says nothing."""
    program = "from kraftwire.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", program, "decode", *GOLDENS, "--no-merge", *JSON, "--jobs=3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141
