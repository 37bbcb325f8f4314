"""Captures with lost, duplicated, reordered and cut packets: nearly all frames, none invented."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.captures.decoded import comparable, decode, expected, shared

pytestmark = pytest.mark.slow

FOUND_MIN = 0.99
SEEDS = (1,)


def _key(line: dict[str, Any]) -> str:
    frame = comparable(line)
    del frame["remaining"]
    frame["connection"] = line["connection"]
    return json.dumps(frame, sort_keys=True)


def _keys(lines: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(_key, lines))


def _check(lines: list[dict[str, Any]], truth: Counter[str], *, of: int) -> None:
    """Enough frames are there, and one that is not in the truth says that it is incomplete."""
    found = _keys(lines)
    assert sum((found & truth).values()) >= FOUND_MIN * of
    invented = found - truth
    incomplete = {"incomplete", "request-before-capture", "unmatched-response"}
    for line in lines:
        if _key(line) in invented:
            assert incomplete & {each["id"] for each in line["findings"]}, line["frame"]


def _cut(capture: Path, target: Path, mode: str, seed: int) -> Path:
    """Re-cut a capture into packets of 1448 bytes, with the damage of the mode."""
    tool = shared("tools", "damage_capture.py")
    command = [sys.executable, str(tool), str(capture), str(target), "100", mode, str(seed)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def _unpacked(name: str, folder: Path) -> Path:
    import lzma

    target = folder / f"{name}.pcapng"
    target.write_bytes(lzma.decompress(shared("captures", f"{name}.pcapng.xz").read_bytes()))
    return target


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a_kraft_quorum", "hard"), ("b_mixed_clients", "hard"), ("b_mixed_clients", "hard,mid6")],
)
def test_damaged_captures_give_nearly_all_frames(name: str, mode: str, tmp_path: Path) -> None:
    """0.5 % duplicated, 1.5 % reordered, 0.05 % lost, 0.05 % cut; some start in the middle."""
    whole = _unpacked(name, tmp_path)
    undamaged = mode.removeprefix("hard").removeprefix(",") or "whole"
    form = {"detail": "none", "show_secrets": True}
    baseline = decode(_cut(whole, tmp_path / "whole.pcap", undamaged, 0), **form).lines
    truth = _keys(baseline)
    for seed in SEEDS:
        print(f"{name} {mode} seed {seed}")
        damaged = decode(_cut(whole, tmp_path / "damaged.pcap", mode, seed), **form)
        assert damaged.totals.exit_code == 3
        _check(damaged.lines, truth, of=len(baseline))


@pytest.mark.parametrize(
    ("damaged", "name"), [("a_hard", "a_kraft_quorum"), ("b_hard_mid", "b_mixed_clients")]
)
def test_recorded_damage_invents_nothing(damaged: str, name: str) -> None:
    """Frames of the damaged recordings are those that Kafka reads in the whole ones."""
    lines = decode(
        shared("captures", f"{damaged}.pcap.xz"), detail="none", show_secrets=True
    ).lines
    rows = expected(shared("captures", "expected", f"{name}.jsonl.xz"))
    truth = {json.dumps(row, sort_keys=True) for row in rows}
    incomplete = {"incomplete", "request-before-capture", "unmatched-response"}
    wrong = [
        line["frame"]
        for line in lines
        if json.dumps(comparable(line), sort_keys=True) not in truth
        and not incomplete & {each["id"] for each in line["findings"]}
    ]
    assert not wrong
    # Half of the second recording is before its start.
    assert len(lines) > (0.99 if damaged == "a_hard" else 0.4) * len(rows)
