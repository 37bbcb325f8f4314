"""`kraftwire decode` with the files of a rotated capture: one recording."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from kraftwire.capture.packets.series import Span, chains
from kraftwire.inspect.run.inputs import Rotated
from tests.support.captures.decoded import decode, golden, rotated

_PLACES = ("file", "position", "end_position")


def _without_places(what: Any) -> Any:
    """JSON without files and positions in them, which batches have too."""
    if isinstance(what, dict):
        return {k: _without_places(v) for k, v in what.items() if k not in _PLACES}
    return [_without_places(each) for each in what] if isinstance(what, list) else what


@pytest.mark.parametrize("form", ["folder", "files", "backwards", "packed"])
def test_rotated_files_are_read_as_one(form: str, tmp_path: Path) -> None:
    """Whatever their names, every frame appears once, with its request."""
    paths = rotated(tmp_path / "in", 5)
    if form == "packed":
        for path in paths:
            path.with_suffix(".pcap.xz").write_bytes(lzma.compress(path.read_bytes()))
            path.unlink()
        paths = [path.with_suffix(".pcap.xz") for path in paths]
    inputs = {"folder": [tmp_path / "in"], "backwards": paths[::-1]}.get(form, paths)
    found, wanted = decode(*inputs), decode(golden("quorum"))
    assert _without_places(found.lines) == _without_places(wanted.lines)
    assert {line["file"] for line in found.lines} == set(map(str, paths))
    assert list(found.totals.captures) == [f"{paths[0]} to {paths[-1]}"]
    assert found.problems == wanted.problems == []


def test_files_of_the_same_time_are_separate_captures(tmp_path: Path) -> None:
    """A copy of a capture is not its continuation."""
    for number in (1, 2):
        (tmp_path / f"trace_{number}.pcap.xz").write_bytes(golden("quorum").read_bytes())
    found = decode(tmp_path)
    assert len(found.totals.captures) == 2
    assert len(found.lines) == 2 * len(decode(golden("quorum")).lines)


def test_a_file_that_is_named_twice_is_read_twice(tmp_path: Path) -> None:
    """Like any other input."""
    paths = rotated(tmp_path, 2)
    lines = decode(*paths, paths[1]).lines
    second = [line for line in decode(*paths).lines if line["file"] == str(paths[1])]
    assert len(lines) == len(decode(golden("quorum")).lines) + len(second)


def test_a_file_that_is_not_a_capture_does_not_hold_up_others(tmp_path: Path) -> None:
    """Similar names prove little."""
    paths = rotated(tmp_path, 3)
    (tmp_path / "trace_98.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    (tmp_path / "trace_99.pcap").write_bytes(paths[0].read_bytes()[:24])
    found = decode(tmp_path)
    whole = _without_places(decode(golden("quorum")).lines)
    assert [line for line in _without_places(found.lines) if line in whole] == whole


def test_pipes_are_not_opened_before_they_are_read(tmp_path: Path) -> None:
    """The names of a shell's pipes differ only in numbers."""
    pipes = [tmp_path / f"{number}" for number in (62, 63)]
    for pipe in pipes:
        os.mkfifo(pipe)
    rotated = Rotated(map(str, pipes))  # would wait for a writer for ever
    assert rotated.take(str(pipes[0])) == [str(pipes[0])]


def test_series_of_several_hosts_are_told_apart() -> None:
    """By the first numbers that differ, then by connections, then by time."""
    spans = [
        Span(f"host{host}-{number}.pcap", 100 * number + host, 100 * number + 50, b"h")
        for number in range(3)
        for host in (1, 2)
    ]
    found = [[span.path for span in chain] for chain in chains(reversed(spans))]
    assert found == [[f"host{host}-{number}.pcap" for number in range(3)] for host in (1, 2)]
    first = Span("1.pcap", 0, 10, b"", frozenset({b"a", b"b"}))
    second = Span("2.pcap", 5, 11, b"", frozenset({b"c"}))
    third = Span("3.pcap", 12, 15, b"", frozenset({b"b"}))
    assert chains([second, third, first]) == [[first, third], [second]]
    other = Span("4.pcap", 12, 15, b"another header")
    assert chains([first, other]) == [[first], [other]]
