"""The commands of docs/control.md, on a proxy in front of a node, as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import trio

from kraftwire.client.addresses import parse_addresses
from kraftwire.messages.metadata_request import MetadataRequest
from kraftwire.transport.client_connection import ClientConnection
from tests.support.nodes.fake_node import METADATA, FakeNode, metadata
from tests.support.proxy.process import ProxyProcess
from tests.tidy.sources import ROOT
from tests.unit.examples.test_plaintext_to_sasl_ssl import blocks

_PAGE = ROOT / "docs" / "control.md"
_TIME = re.compile(r'"time_ms": [0-9]{13}')


async def _request(bootstrap: str) -> None:
    """Be the client whose request the page shows."""
    (address,) = parse_addresses(bootstrap, "")
    connection = await ClientConnection.connect(address, client_id="orders", timeout_s=10)
    await connection.request(MetadataRequest(), timeout_s=10)
    connection.close()


def test_the_commands_of_the_page_show_what_it_shows(tmp_path: Path) -> None:
    """Apart from the times of requests."""
    found = list(blocks(_PAGE.read_text()))
    script = "".join(code for code, _ in found)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with FakeNode() as node:
        node.answers[METADATA] = lambda _: metadata({1: node})
        upstream = ("--upstream", f"127.0.0.1:{node.port}", "--control", "127.0.0.1:0")
        with ProxyProcess(*upstream, "--capture", tmp_path / "out.pcapng") as proxy:
            url = proxy.read_line().partition(" ")[2]
            trio.run(_request, proxy.bootstrap)
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script.replace("http://127.0.0.1:19080", url)],
                cwd=tmp_path,
                env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
    assert done.returncode == 0, done.stderr
    printed = _TIME.sub("", done.stdout).splitlines()
    for _, lines in found:
        for line in lines:
            assert _TIME.sub("", line) in printed, done.stdout
    assert sum(len(lines) for _, lines in found) == 5
