"""`python -m tools.capture`: traffic is unchanged, recorded, and led back to the proxy."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kraftwire.capture.capture import Capture
from kraftwire.client import Admin
from kraftwire.errors import ApiError
from tests.support.nodes.fake_node import (
    DESCRIBE_QUORUM,
    METADATA,
    FakeNode,
    metadata,
    quorum_state,
)

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def broker() -> Iterator[FakeNode]:
    """A broker that advertises its own address."""
    with FakeNode() as node:
        node.answers[METADATA] = lambda _: metadata({5: node})
        node.answers[DESCRIBE_QUORUM] = lambda _: quorum_state(1, 7)
        yield node


@contextmanager
def capturing(*arguments: str) -> Iterator[str]:
    """Run the proxy; yields the address to connect to, and ends it as Ctrl-C does."""
    command = [sys.executable, "-m", "tools.capture", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        listening, arrow, _ = process.stdout.readline().split()
        assert arrow == "->"
        try:
            yield listening
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
    assert process.returncode == 0


def apis(path: Path) -> list[tuple[int | None, str]]:
    """API keys and directions of a capture's frames; nothing may be missing in it."""
    capture = Capture(str(path))
    frames = [(frame.api_key, frame.direction) for frame in capture]
    health = capture.health
    assert (health.undecoded_bytes, health.gaps, health.problem) == (0, 0, "")
    assert health.midstream_connections == 0
    return frames


def test_a_client_that_reconnects_leaves_the_proxy(tmp_path: Path, broker: FakeNode) -> None:
    """As documented: only traffic to the given address is seen, and it is unchanged."""
    path = tmp_path / "a.pcapng"
    with capturing(broker.address, "--out", str(path)) as address:
        assert Admin(bootstrap_servers=address, timeout_s=10).describe_quorum().leader_epoch == 7
    assert [key for key, _ in apis(path)] == [18, 18, METADATA, METADATA]


def test_with_follow_every_connection_goes_through_the_proxy(
    tmp_path: Path, broker: FakeNode
) -> None:
    """Listeners of the proxy replace advertised addresses; the capture has the real ones."""
    path = tmp_path / "a.pcapng"
    with capturing(broker.address, "--out", str(path), "--follow") as address:
        admin = Admin(bootstrap_servers=address, timeout_s=10)
        assert admin.describe_quorum().leader_epoch == 7
        node = admin.describe_cluster().nodes[0]
        assert f"{node.host}:{node.port}" == address
    assert apis(path).count((DESCRIBE_QUORUM, "response")) == 1
    assert str(broker.port) in {frame.connection.rpartition(":")[2] for frame in Capture(str(path))}


def test_a_target_that_is_down_costs_one_connection_only(tmp_path: Path, broker: FakeNode) -> None:
    """The proxy keeps running without its target."""
    path = tmp_path / "a.pcapng"
    with (
        capturing(f"127.0.0.1:1,{broker.address}", "--out", str(path)) as address,
        pytest.raises(ApiError, match=r"more than 0.3 s"),
    ):
        Admin(bootstrap_servers=address, timeout_s=0.3).describe_quorum()
    assert apis(path) == []


def test_an_address_in_use_is_reported_in_one_line(tmp_path: Path, broker: FakeNode) -> None:
    """The exit code tells a script."""
    pair = f"{broker.address}={broker.address}"
    command = [sys.executable, "-m", "tools.capture", pair, "--out", str(tmp_path / "a")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Address already in use" in result.stderr
    assert "Traceback" not in result.stderr
