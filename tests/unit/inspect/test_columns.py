"""Selected columns, and times relative to the first frame."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.captures.builder import MILLISECOND, Session, pcap_of, request, response
from tests.support.commands.run import run_decode

pytestmark = pytest.mark.slow


def _capture(folder: Path) -> str:
    """Four exchanges of a client, one a second; answers come after 250 ms."""
    session = Session().open()
    for number in range(4):
        session.client(request(number, b"\0\0\0\0"))
        session.now_ns += 249 * MILLISECOND
        session.server(response(number, bytes(12)))
        session.now_ns += 749 * MILLISECOND
    path = folder / "a.pcap"
    path.write_bytes(pcap_of(session.segments))
    return str(path)


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if not line.startswith("#")]


def test_relative_times_count_from_the_first_frame(tmp_path: Path) -> None:
    """The form is tshark's."""
    options = ["-t", "relative", "-o", "time", "-o", "correlation,latency"]
    done = run_decode(_capture(tmp_path), *options)
    assert done.out.splitlines()[0].split() == ["#", "relative", "corr", "ms"]
    assert _rows(done.out) == [
        ["+0.250000", "0", "250.000"],
        ["+1.250000", "1", "250.000"],
        ["+2.250000", "2", "250.000"],
        ["+3.250000", "3", "250.000"],
    ]


def test_differences_count_from_the_line_before(tmp_path: Path) -> None:
    """The usual columns are those of lines without choice."""
    done = run_decode(_capture(tmp_path), "-t", "delta")
    head, first, *_ = done.out.splitlines()
    assert head.split() == ["#", "delta", "connection", "API", "corr", "request/resp.", "ms",
                            "error", "facts"]  # fmt: skip
    assert "Metadata v1" in first
    assert [row[0] for row in _rows(done.out)] == ["+0.000000"] + ["+1.000000"] * 3


def test_they_count_from_it_although_it_is_not_shown(tmp_path: Path) -> None:
    """What `relative` shows can be given to `--since`."""
    path = _capture(tmp_path)
    options = ["-t", "relative", "-o", "time,correlation", "--since", "+1.2", "--until", "+2.25"]
    shown = _rows(run_decode(path, *options).out)
    assert shown == [["+1.250000", "1"], ["+2.250000", "2"]]


def test_seconds_since_the_epoch_have_no_days(tmp_path: Path) -> None:
    """They are unique by themselves."""
    done = run_decode(_capture(tmp_path), "-t", "epoch", "-o", "time,api")
    head, first, *_ = done.out.splitlines()
    assert head.split() == ["#", "epoch", "API"]
    assert first.split() == ["1700000000.253000", "Metadata", "v1"]


def test_columns_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Times of day have their days, as in lines without choice."""
    done = run_decode(_capture(tmp_path), "-o", "api,client,time,error,facts")
    head, day, first, *_ = done.out.splitlines()
    assert head.split() == ["#", "API", "client", "id", "time", "error", "facts"]
    assert day == "# 2023-11-14 UTC"
    words = first.split()
    assert words[:5] == ["Metadata", "v1", "tester", "22:13:20.253000", "-"]
    assert "topics" in first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "colour"], "there is no column 'colour'; there are time, connection"),
        (["-o", "time", "-v"], "-o and -v exclude each other"),
        (["-t", "epoch", "--json"], "-t and --format jsonl exclude each other"),
        (["--since", "+soon"], "'+soon' is not a time"),
    ],
)
def test_meaningless_options_are_refused(tmp_path: Path, options: list[str], words: str) -> None:
    """The error names what is allowed."""
    done = run_decode(_capture(tmp_path), *options)
    assert done.code == 2
    assert words in done.err
    assert not done.out
