"""A static quorum of Kafka 3.9 and one of our nodes, upgraded to the current release.

`KRAFTWIRE_TESTED_KIND=java` runs the same story with Kafka's controllers alone.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.kafka.mixed_quorum import (
    JAVA,
    JAVA_3_9,
    JAVA_4_1,
    JAVA_4_3,
    MixedQuorum,
    kind_under_test,
    wait_until,
)
from tests.support.kafka.mixed_quorum.tools import Tools

NODE = 3
JAVAS = (1, 2)
BUSY = {"metadata.max.idle.interval.ms": 100}

# What the oldest of them can work with.
RELEASE = ("--release-version", "3.9-IV0")


@pytest.mark.parametrize(
    "releases", [(JAVA,), (JAVA_4_1, JAVA_4_3, JAVA)], ids=["at once", "step by step"]
)
def test_a_quorum_is_upgraded_next_to_ours(tmp_path: Path, releases: tuple[str, ...]) -> None:
    """One controller after the other, ours stopped and started in between; then its features."""
    kinds = {1: JAVA_3_9, 2: JAVA_3_9, NODE: kind_under_test()}
    with MixedQuorum(tmp_path, kinds, BUSY, format_options=RELEASE) as quorum:
        quorum.start()
        quorum.wait_commit(30)
        check_all(quorum)
        for release in releases:
            for node_id in JAVAS:
                restart(quorum, node_id, release)
                restart(quorum, NODE, quorum.members[NODE].kind)
            check_all(quorum)
        tools = Tools(quorum)
        for feature, level in (("metadata.version", 26), ("kraft.version", 1)):
            upgrade = partial(is_upgraded, tools, feature, level)
            wait_until(upgrade, f"{feature} {level}", quorum.last_lines)
        levels = tools.feature_levels()
        assert (levels["metadata.version"], levels["kraft.version"]) == ("4.1-IV0", "1")
        check_all(quorum)
        restart(quorum, NODE, quorum.members[NODE].kind)
        check_all(quorum)


def is_upgraded(tools: Tools, feature: str, level: int) -> bool:
    """Whether kafka-features succeeds, which it does once all have reported what they support."""
    return tools.upgrade(feature, level).returncode == 0


def restart(quorum: MixedQuorum, node_id: int, kind: str) -> None:
    """Stop a member, let the others commit, and start it as another kind; it follows again."""
    member = quorum.members[node_id]
    member.stop()
    mark = quorum.wait_commit(quorum.status().high_watermark)
    member.start(kind)
    member.wait_ready()
    quorum.wait_commit(mark)


def check_all(quorum: MixedQuorum) -> None:
    """More is committed, every member has it, none has anything else or logs an error."""
    quorum.leader()
    quorum.wait_commit(quorum.status().high_watermark)
    quorum.check_logs_agree()
    quorum.check_health()
