"""`kraftwire metadata show` of a live quorum: what its directory says, read over the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kraftwire.cli import main as cli
from kraftwire.testing import Quorum, quorum

# A record at short intervals, and snapshots after a few of them.
_PROPERTIES = {
    "metadata.max.idle.interval.ms": 50,
    "metadata.log.max.record.bytes.between.snapshots": 1000,
    "internal.metadata.log.segment.bytes": 1000,
}


def show(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The first object, and all others without what depends on where reading began."""
    assert cli.main(["metadata", "show", "--json", *arguments]) == 0
    head, *others = map(json.loads, capsys.readouterr().out.splitlines())
    dates = ("lastChangedOffset", "isExact")
    return head, [{k: v for k, v in each.items() if k not in dates} for each in others]


def wait_for_snapshot(nodes: Quorum) -> None:
    """Return once the leader has a snapshot, so that its log may begin there."""
    admin = nodes.admin()
    quorum = admin.describe_quorum()
    while admin.describe_log(quorum).snapshot is None:
        pass


def test_a_live_quorum_is_read_as_an_observer_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From its snapshot, up to the high watermark or an offset; offsets ahead are refused."""
    with quorum(1, folder=tmp_path, properties=_PROPERTIES) as nodes:
        wait_for_snapshot(nodes)
        live = ("--bootstrap-controller", nodes.bootstrap_controllers)
        head, brokers = show(capsys, *live, "brokers", "features")
        assert head["isComplete"]
        assert {each["subject"] for each in brokers} == {"brokers", "features"}
        assert brokers[-1]["data"]["brokerId"] == 1
        at = ("--at", str(head["offset"]))
        assert show(capsys, *live, "brokers", "features", *at)[1] == brokers
        folder = str(nodes.data_folder(1))
        assert show(capsys, folder, "brokers", "features", *at)[1] == brokers
        assert cli.main(["metadata", "show", *live, "--at", "99999999"]) == 2
        assert "is not committed: the high watermark is" in capsys.readouterr().err
