"""Several processes decode a capture, and nobody can tell by their output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pcap_builder import FIN, Session, pcap_of, request, response
from tests.support.run_decode import run_decode

GOLDEN = Path(__file__).parents[2] / "golden" / "captures"


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
    segments = sorted(long.close().segments + short.segments, key=lambda each: each.time_ns)
    whole = [each for each in segments if not each.payload or each.flags & FIN]
    lost = [each for each in segments if each not in whole][90:92]
    path = folder / "unequal.pcap"
    path.write_bytes(pcap_of(each for each in segments if each not in lost))
    return str(path)


@pytest.mark.parametrize(
    "options",
    [[], ["-v"], ["--bytes"], ["--format", "jsonl"], ["--format", "jsonl", "--api", "Fetch"]],
    ids=" ".join,
)
def test_the_output_does_not_depend_on_the_number_of_jobs(
    tmp_path: Path, options: list[str]
) -> None:
    """Lines, numbers of frames, totals and the exit code are the same."""
    paths = _unequal(tmp_path), str(GOLDEN / "sasl.pcap.xz"), str(GOLDEN / "quorum.pcap.xz")
    one = run_decode(*paths, *options, "--jobs", "1")
    assert run_decode(*paths, *options, "--jobs", "3") == one
    assert len(one.out.splitlines()) > 50


def test_jobs_take_what_cannot_be_read_as_one_process_does(tmp_path: Path) -> None:
    """The message comes once."""
    missing = str(tmp_path / "missing.pcap")
    path = _unequal(tmp_path)
    one = run_decode(path, missing, "--jobs", "1")
    assert run_decode(path, missing, "--jobs", "3") == one
    assert one.err.count("no such file") == 1
    assert one.code == 3
