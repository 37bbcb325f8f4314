"""Members of a quorum fail in turn under real producers and consumers, with ours and without.

The same script runs on Java's controllers alone and on two of them with ours: the first
run sets the standard for the second.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, wait_until
from tests.support.kafka.mixed_quorum.complaints import error_kinds
from tests.support.kafka.mixed_quorum.tools import Tools
from tests.support.kafka.mixed_quorum.traffic import Traffic, TrafficReport

NODE, BROKER = 3, 11
PROPERTIES = {"metadata.max.idle.interval.ms": 100}

# SIGTERM, kill -9 and SIGSTOP of a Java follower, of the third member and of the leader.
ALL_FAILURES = tuple(
    (victim, action)
    for victim in ("follower", "third", "leader")
    for action in ("stop", "kill", "pause")
)

# Each run has few hand-overs, and each depends on random time-outs: one more election costs up to
# twice the election timeout of a second.
_RANDOM_SECONDS = 2.0


@dataclass(frozen=True)
class Outcome:
    """The result of one run of the script: the traffic, Java's errors, seconds per hand-over."""

    traffic: TrafficReport
    errors: Counter[str]
    handovers: list[float]


def compare(folder: Path, failures: Iterable[tuple[str, str]]) -> list[str]:
    """Run the script with Java alone, then with ours; what is worse with ours, one line each.

    Raises: AssertionError if a run does not complete, or its logs differ.
    """
    failures = list(failures)
    java = run_script(folder / "java", JAVA, failures)
    mixed = run_script(folder / "mixed", OURS, failures)
    found = [f"lost: {value}" for value in mixed.traffic.lost]
    found += [f"only next to ours: {kind}" for kind in mixed.errors if kind not in java.errors]
    for what in ("produced_twice", "failures"):
        ours, theirs = getattr(mixed.traffic, what), getattr(java.traffic, what)
        if len(ours) > len(theirs):
            found.append(f"{what}: {len(ours)}, with Java alone {len(theirs)}")
    if mixed.traffic.consumed_twice > java.traffic.consumed_twice:
        theirs_twice = java.traffic.consumed_twice
        found.append(f"consumed twice: {mixed.traffic.consumed_twice}, Java alone {theirs_twice}")
    slowest = max(mixed.handovers, default=0.0)
    if slowest > max(java.handovers, default=0.0) + _RANDOM_SECONDS:
        found.append(f"hand-overs took {mixed.handovers} s, with Java alone {java.handovers} s")
    return found


def run_script(folder: Path, third: str, failures: Iterable[tuple[str, str]]) -> Outcome:
    """The script on one quorum. Committed bytes are equal in all directories at its end."""
    kinds = {1: JAVA, 2: JAVA, NODE: third}
    handovers = []
    with MixedQuorum(folder, kinds, PROPERTIES, brokers={BROKER: JAVA}) as quorum:
        quorum.start()
        quorum.leader()
        Tools(quorum).create_topic("letters", 3)
        with Traffic(quorum.bootstrap_servers, "letters") as traffic:
            traffic.wait_flow()
            for victim, action in failures:
                handovers += _fail(quorum, victim, action)
                traffic.wait_flow(20)
            report = traffic.finish()
        quorum.check_logs_agree()
        for member in quorum.members.values():
            assert not member.ended(), f"node {member.node_id} has ended"
        consoles = [member.java.console for member in quorum.members.values() if member.is_java]
        return Outcome(report, error_kinds(consoles), handovers)


def _fail(quorum: MixedQuorum, victim: str, action: str) -> list[float]:
    """Let one member fail and return; the time until there was another leader, if it led."""
    leader = quorum.leader()
    chosen = {
        "follower": min({1, 2} - {leader}),
        "third": NODE,
        "leader": leader,
    }[victim]
    member = quorum.members[chosen]
    taken = []
    start = time.monotonic()
    getattr(member, action)()
    if chosen == leader:
        quorum.leader(among={1, 2, NODE} - {chosen})
        taken.append(time.monotonic() - start)
    else:
        quorum.wait_commit(quorum.status().high_watermark, leader)
    if action == "pause":
        member.resume()
    else:
        member.start()
        member.wait_ready()
    mark = quorum.status().high_watermark
    wait_until(lambda: member.end_offset >= mark, f"node {chosen} with all that is committed")
    return taken
