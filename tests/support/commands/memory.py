"""The memory of a command: what its input costs over the same command with almost no input.

Owns the bound of SEC-BOMB as tests hold it. Of the 64 MiB that are promised an idle command takes
26, more or less with the version of Python and of what it imports. An input may cost 36 MiB and
eight times its size, and a tenth of that stays unused.
"""

from __future__ import annotations

import atexit
import functools
import gzip
import lzma
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cramjam

from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.records import Record, build_batch
from tests.support.captures.builder import Session, pcap_of, request, response

_COST_FREE = 36 * 1024 * 1024
_COST_RATIO = 8
# How much of a bound may be used: a machine with another allocator needs the rest.
SPARE = 0.9

# Writes the largest size of the process, in KiB, after the command's own output. `getrusage` would
# begin with the size of the process that started this one.
_MEASURE = """
import atexit, os, sys
def report():
    status = open("/proc/self/status").read()
    os.write(2, b"\\nPEAK " + status.partition("VmHWM:")[2].split()[0].encode())
atexit.register(report)
sys.argv[0] = "kraftwire"
exec(sys.argv.pop(1))
"""
CLI = "from kraftwire.cli.main import main; raise SystemExit(main())"


@dataclass(frozen=True)
class Measured:
    """The output and the memory of a command. Units: `peak` is in bytes."""

    code: int
    errors: str
    peak: int


def run(
    program: str, *arguments: str | Path, out: Path | None = None, read: Path | None = None
) -> Measured:
    """Run Python text, which reads a file or nothing; its output goes to a file, or nowhere."""
    with (
        open(os.devnull if read is None else read, "rb") as source,
        open(os.devnull if out is None else out, "wb") as stream,
    ):
        done = subprocess.run(
            [sys.executable, "-c", _MEASURE, program, *map(str, arguments)],
            stdin=source,
            stdout=stream,
            stderr=subprocess.PIPE,
            check=False,
        )
    text, _, peak = done.stderr.decode().rpartition("\nPEAK ")
    assert peak, text
    assert "Traceback" not in text, text
    return Measured(done.returncode, text, int(peak) * 1024)


def allowed(size: int, free: int = _COST_FREE) -> float:
    """How many bytes an input of this size may cost."""
    return SPARE * (free + _COST_RATIO * size)


def check_cost(
    found: Measured, size: int, program: str, *arguments: str | Path, read: Path | None = None
) -> None:
    """Compare a command with the same one on a small input, `arguments` or `read`."""
    idle = _idle(program, arguments, read, os.environ.get("KRAFTWIRE_PURE", ""))
    cost = found.peak - idle.peak
    assert cost < allowed(size), (
        f"{cost:,} bytes over the {idle.peak:,} of an idle process, allowed are "
        f"{allowed(size):,.0f}: {found}"
    )


@functools.cache
def _idle(
    program: str, arguments: tuple[str | Path, ...], read: Path | None, _pure: str
) -> Measured:
    return run(program, *arguments, read=read)


def show(path: Path, *command: str, out: Path | None = None) -> Measured:
    """Run a command on a file and check what the input costs."""
    found = run(CLI, *command, path, out=out)
    check_cost(found, path.stat().st_size, CLI, *command, small_input(path))
    return found


def decode(path: Path, *options: str, out: Path | None = None) -> Measured:
    """Run ``kraftwire decode`` on a file and check what the input costs."""
    return show(path, "decode", *options, out=out)


def _small_segment() -> bytes:
    return build_batch([Record(0, 0, b"k", b"v")])


def _small_frames() -> bytes:
    frame = MetadataRequest().encode(8)
    header = (3).to_bytes(2) + (8).to_bytes(2) + bytes(4) + b"\xff\xff"
    return (len(header) + len(frame)).to_bytes(4) + header + frame


def _small_capture() -> bytes:
    return pcap_of(Session().open().client(request(1)).server(response(1)).segments)


# Small contents by the name of a file, or its end.
_SMALL: dict[str, Callable[[], bytes]] = {
    ".log": _small_segment,
    ".pcap": _small_capture,
    "frames": _small_frames,
    "replication-offset-checkpoint": lambda: b"0\n0\n",
    "leader-epoch-checkpoint": lambda: b"0\n1\n1 0\n",
}
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: bytes(cramjam.zstd.compress(data)),
}


@functools.cache
def _small_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kraftwire-small-"))
    atexit.register(shutil.rmtree, folder)
    return folder


def small_input(path: Path) -> Path:
    """A small file of the same name as another one, and of its kind; an empty folder for one."""
    folder = _small_folder()
    if path.is_dir():
        small = folder / "empty"
        small.mkdir(exist_ok=True)
        return small
    packer = _PACKERS.get(path.suffix, bytes)
    plain = Path(path.name.removesuffix(path.suffix) if path.suffix in _PACKERS else path.name)
    data = _SMALL[plain.suffix or plain.name]()
    small = folder / "events-0" / path.name
    small.parent.mkdir(exist_ok=True)
    small.write_bytes(packer(data))
    return small
