"""What a node keeps for itself: file descriptors, and its files (SEC-DESCRIPTORS, SEC-FILES)."""

from __future__ import annotations

import resource
import stat
from pathlib import Path

import pytest

from kraftwire.limits import CONNECTION_BYTES_MAX, DESCRIPTORS_RESERVED, OPEN_CONNECTION_BYTES
from kraftwire.log.files import LocalFiles
from kraftwire.node import descriptors
from kraftwire.node.capture import CaptureFile

_UNLIMITED = resource.RLIM_INFINITY
# Idle connections take half of the memory that all may take.
_MOST = CONNECTION_BYTES_MAX // OPEN_CONNECTION_BYTES // 2


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1024, 1024 - DESCRIPTORS_RESERVED), (100, 50), (1 << 20, _MOST), (_UNLIMITED, _MOST)],
)
def test_connections_leave_descriptors_alone(most: int, expected: int) -> None:
    """With 1,060 idle connections and a limit of 1,024, one Vote ended a voter."""
    assert descriptors.connections_max(most) == expected


def test_the_soft_limit_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is 1,024 on most systems, and the hard one far above."""
    now = [1024, 4096]

    def put(_: int, limits: tuple[int, int]) -> None:
        now[:] = limits

    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: tuple(now))
    monkeypatch.setattr(descriptors.resource, "setrlimit", put)
    assert descriptors.raise_limit() == 4096
    assert now == [4096, 4096]


def test_a_limit_that_cannot_be_raised_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS says that it is unlimited, and refuses."""

    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(descriptors.resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(descriptors.resource, "setrlimit", refuse)
    assert descriptors.raise_limit() == 256


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_reads_a_nodes_files(tmp_path: Path) -> None:
    """They hold what clients sent, and the cluster's SCRAM credentials."""
    log, capture = tmp_path / "0.log", tmp_path / "node.pcapng"
    LocalFiles().open(str(log), create=True).close()
    CaptureFile(str(capture)).close()
    assert (_mode(log), _mode(capture)) == (0o600, 0o600)
