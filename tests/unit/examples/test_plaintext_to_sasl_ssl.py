"""The commands of docs/plaintext-to-sasl-ssl.md, on a quorum of three, as they stand."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

PAGE = ROOT / "docs" / "plaintext-to-sasl-ssl.md"
_BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The page's ports without their last digit, which is the node's id.
_PORTS = ("1909", "1919", "1929", "1939")
_IDS = (1, 2, 3)
_END = "-- end of block --"
# Below those that the system gives to clients.
_PREFIXES = range(1100, 3200)


def free_prefixes(count: int) -> list[str]:
    """Beginnings of ports that are free for all three nodes; they differ from run to run."""
    found: list[str] = []
    start = os.getpid() % len(_PREFIXES)
    for prefix in (*_PREFIXES[start:], *_PREFIXES[:start]):
        with ExitStack() as stack:
            try:
                for number in _IDS:
                    held = stack.enter_context(socket.socket())
                    held.bind(("127.0.0.1", prefix * 10 + number))
            except OSError:
                continue
        found.append(str(prefix))
        if len(found) == count:
            return found
    raise AssertionError("no ports are free")


def blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Each block of commands, with the lines that the page shows for it."""
    found = [(match[1], match[2]) for match in _BLOCK.finditer(page)]
    for (kind, code), following in pairwise([*found, ("", "")]):
        if kind == "sh":
            yield code, following[1].splitlines() if following[0] == "text" else []


def run(script: str, folder: Path) -> str:
    """What the commands print, up to the end of the script; its nodes are killed afterwards."""
    printed = folder / "printed.txt"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with printed.open("w") as output:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=folder,
            env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # A group of its own, which ends with it.
            start_new_session=True,
        )
        try:
            shell.wait()
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
    text = printed.read_text()
    logs = "".join(file.read_text()[-2000:] for file in folder.glob("node-*.log"))
    assert shell.returncode == 0, f"{text}\n{logs}"
    return text


def absences(folder: Path) -> list[tuple[str, str]]:
    """From when to when each node was away, in the order of time."""
    found = []
    for number in _IDS:
        left = ""
        for line in (folder / f"node-{number}.log").read_text().splitlines():
            if "event=stopping" in line:
                left = line.split()[0]
            elif "event=broker-unfenced" in line and left:
                found.append((left, line.split()[0]))
                left = ""
    return sorted(found)


@pytest.mark.slow
def test_a_quorum_is_secured_step_by_step(tmp_path: Path) -> None:
    """Every command passes, shows what the page shows, and one node at most is away at a time."""
    page = PAGE.read_text()
    for old, new in zip(_PORTS, free_prefixes(len(_PORTS)), strict=True):
        page = page.replace(old, new)
    expected = list(blocks(page))
    script = "".join(f"{code}\necho '{_END}'\n" for code, _ in expected)
    shown = run(script, tmp_path).split(f"{_END}\n")
    for (code, lines), output in zip(expected, shown, strict=False):
        for line in lines:
            assert line in output, f"{code}\n{output}"
    away = absences(tmp_path)
    assert len(away) == 5 * len(_IDS)
    assert all(back <= left for (_, back), (left, _) in pairwise(away)), away
