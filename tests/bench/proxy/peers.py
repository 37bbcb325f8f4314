"""The programs that stand before a broker, as processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

from kraftwire.testing.ports import free_ports
from tests.support.kafka.maven import CACHE, exclusive

DIRECT = "nothing"
OURS = "kraftwire proxy"

_TOXIPROXY = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"
_BUILD_SECONDS_MAX = 500
_START_SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class Peer:
    """A program that runs: its port for clients, and its process."""

    port: int
    pid: int

    @property
    def memory(self) -> int:
        """What of it is in memory. Unit: bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split(maxsplit=1)[0]) * 1024


@contextmanager
def peers() -> Iterator[dict[str, Peer]]:
    """A broker, and each program before it."""
    with (
        _started(sys.executable, "-m", "tests.bench.proxy.broker") as broker,
        _started(sys.executable, "-m", "tests.bench.proxy.relay", broker.port) as relay,
        _started(
            *(sys.executable, "-m", "kraftwire", "proxy"),
            *("--upstream", f"127.0.0.1:{broker.port}", "--listen", "127.0.0.1:0"),
        ) as ours,
    ):
        found = {DIRECT: broker, "a relay in Python": relay, OURS: ours}
        if toxiproxy := _toxiproxy():
            with _toxiproxy_before(toxiproxy, broker) as peer:
                yield found | {"toxiproxy": peer}
        else:
            yield found


@contextmanager
def _started(*command: object) -> Iterator[Peer]:
    """A program whose first line ends with its port."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Peer(int(process.stdout.readline().rpartition(":")[2]), process.pid)
    finally:
        process.terminate()
        process.communicate()


def _toxiproxy() -> Path | None:
    """The program, which Go fetches and builds at first use; None without Go."""
    folder = CACHE / "bench"
    with exclusive("toxiproxy"):
        program = folder / "server"
        if not program.exists() and shutil.which("go"):
            subprocess.run(
                ["go", "install", _TOXIPROXY],
                env={**os.environ, "GOBIN": str(folder), "GOFLAGS": "-buildvcs=false"},
                timeout=_BUILD_SECONDS_MAX,
                check=False,
            )
        return program if program.exists() else None


@contextmanager
def _toxiproxy_before(program: Path, broker: Peer) -> Iterator[Peer]:
    control, port = free_ports(2)
    command = [str(program), "-host", "127.0.0.1", "-port", str(control)]
    # It says something of each connection.
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        addresses = {"listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{broker.port}"}
        body = json.dumps({"name": "broker", "enabled": True, **addresses}).encode()
        _posted(f"http://127.0.0.1:{control}/proxies", body)
        yield Peer(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def _posted(url: str, body: bytes) -> None:
    """Send that to a server that may not have started yet."""
    end = time.monotonic() + _START_SECONDS_MAX
    while True:
        try:
            with urllib.request.urlopen(url, body):
                return
        except URLError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
