"""Voters that come and go in quorums of both kinds: added, removed, wiped, the leader among them.

`KRAFTWIRE_TESTED_KIND=java` runs the same stories with Kafka's controllers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.support.kafka.mixed_quorum import JAVA, OURS, MixedQuorum, kind_under_test, wait_until
from tests.support.kafka.mixed_quorum.tools import Tools

TESTED = kind_under_test()

# Many small commits instead of few.
BUSY: Mapping[str, object] = {"metadata.max.idle.interval.ms": 100}
JOINS: Mapping[str, object] = {"controller.quorum.auto.join.enable": "true"}
HANDS_OVER = "kraftwire.leader.handover=auto"

# By the number of Java nodes and of ours; the last one joins later.
SIZES = {
    "2 + 1": {1: JAVA, 2: JAVA, 3: TESTED},
    "1 + 2": {1: JAVA, 2: TESTED, 3: TESTED},
    "3 + 2": {1: JAVA, 2: JAVA, 3: JAVA, 4: TESTED, 5: TESTED},
}


@pytest.fixture(scope="module", params=SIZES)
def growing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MixedQuorum]:
    """A dynamic quorum that runs without its last member, which is formatted to join it."""
    kinds = SIZES[request.param]
    joiner = max(kinds)
    folder = tmp_path_factory.mktemp("voters")
    with MixedQuorum(folder, kinds, BUSY, is_dynamic=True, observers=[joiner]) as quorum:
        quorum.start(*sorted(set(kinds) - {joiner}))
        quorum.wait_commit(0)
        yield quorum


def joiner_of(quorum: MixedQuorum) -> int:
    """The member that is not a voter at first."""
    (joiner,) = quorum.observers
    return joiner


def check_all(quorum: MixedQuorum) -> None:
    """More is committed, every running member has it, none has anything else or logs an error.

    Among Java's controllers ours writes nothing as a leader; then it is what was committed before.
    """
    is_silent = quorum.members[quorum.leader()].kind == OURS
    quorum.wait_commit(quorum.status().high_watermark - is_silent)
    quorum.check_logs_agree()
    quorum.check_health()


def add(quorum: MixedQuorum, node_id: int) -> None:
    """Add a running member with Kafka's tool; it becomes a voter with its present directory."""
    added = Tools(quorum).add_controller(node_id)
    assert added.returncode == 0, added.stderr
    assert node_id in quorum.voters()


def remove(quorum: MixedQuorum, node_id: int) -> None:
    """Remove a member with Kafka's tool."""
    removed = Tools(quorum).remove_controller(node_id)
    assert removed.returncode == 0, removed.stderr
    wait_until(lambda: node_id not in quorum.voters(), f"a quorum without {node_id}")


def followers(quorum: MixedQuorum, *, but: int) -> list[int]:
    """Voters that neither lead nor are this one."""
    leader = quorum.leader()
    return [node_id for node_id in quorum.voters() if node_id not in (leader, but)]


def test_a_running_quorum_takes_a_voter_and_lets_it_go_and_takes_it_wiped(
    growing: MixedQuorum,
) -> None:
    """It counts: with as many others down as possible, nothing is committed without it."""
    joiner = joiner_of(growing)
    growing.start(joiner)
    add(growing, joiner)
    downs = followers(growing, but=joiner)[: (len(growing.voters()) - 1) // 2]
    for node_id in downs:
        growing.members[node_id].kill()
    mark = growing.status().high_watermark
    growing.wait_commit(mark + 10)
    growing.start(*downs)
    check_all(growing)

    remove(growing, joiner)
    check_all(growing)

    before = growing.members[joiner].directory_id
    growing.members[joiner].stop()
    growing.reformat(joiner)
    growing.start(joiner)
    assert growing.members[joiner].directory_id != before
    add(growing, joiner)
    check_all(growing)


def test_a_removed_leader_keeps_leading_until_the_removal_is_committed(
    growing: MixedQuorum,
) -> None:
    """Then it resigns, another one leads, and the old leader may return as a voter."""
    joiner = joiner_of(growing)
    if joiner not in growing.voters():
        pytest.skip("the test before this one, which adds a voter, was not run")
    former = growing.leader()
    epoch = growing.status().leader_epoch
    remove(growing, former)
    assert growing.leader() != former
    assert growing.status().leader_epoch > epoch
    check_all(growing)
    add(growing, former)
    check_all(growing)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[MixedQuorum]:
    """Two Java voters and a member of ours that is not a voter yet."""
    kinds = {1: JAVA, 2: JAVA, 3: TESTED}
    with MixedQuorum(tmp_path, kinds, BUSY, is_dynamic=True, observers=[3]) as quorum:
        yield quorum


def test_a_leader_of_ours_is_removed_and_comes_back(three: MixedQuorum) -> None:
    """It leads until it is removed, and follows from then on."""
    node = three.members[3]
    three.start(1, 2)
    node.start()
    node.wait_ready()
    add(three, 3)
    three.wait_commit(0)
    former = three.depose(3)
    assert three.leader() == 3
    three.start(former)
    three.wait_commit(three.status().high_watermark - 1)

    remove(three, 3)
    assert three.leader() in (1, 2)
    assert three.voters() == [1, 2]
    check_all(three)
    add(three, 3)
    assert three.voters() == [1, 2, 3]
    check_all(three)


def test_members_join_by_themselves_on_both_sides(tmp_path: Path) -> None:
    """One of ours joins a Java quorum, a Java controller joins them; a wiped one takes its place.

    A member with a new directory id first removes its old entry.
    """
    kinds = {1: JAVA, 2: TESTED, 3: JAVA}
    special = {2: JOINS, 3: JOINS}
    with MixedQuorum(
        tmp_path, kinds, BUSY, special, is_dynamic=True, observers=[2, 3]
    ) as quorum:
        for count in (1, 2, 3):
            quorum.start(count)
            wait_until(partial(has_voters, quorum, count), f"{count} voters", quorum.last_lines)
        check_all(quorum)
        for node_id in (2, 3):
            quorum.members[node_id].stop()
            quorum.reformat(node_id)
            quorum.start(node_id)
            what = f"node {node_id} as a voter with its new directory"
            wait_until(partial(has_voter, quorum, node_id), what, quorum.last_lines)
        check_all(quorum)


def has_voters(quorum: MixedQuorum, count: int) -> bool:
    """Whether the voters are the first `count` members."""
    return quorum.voters() == list(range(1, count + 1))


def has_voter(quorum: MixedQuorum, node_id: int) -> bool:
    """Whether a member is a voter with its present directory."""
    wanted = quorum.members[node_id].directory_uuid
    voters = quorum.status().current_voters
    return any(v.replica_id == node_id and v.replica_directory_id == wanted for v in voters)


@pytest.mark.parametrize("leads", ["java", "ours"])
def test_a_static_quorum_becomes_dynamic(tmp_path: Path, leads: str) -> None:
    """By kafka-features, with any leader; from then on voters are added and removed."""
    kinds = {1: JAVA, 2: JAVA, 3: TESTED}
    with MixedQuorum(tmp_path, kinds, BUSY) as quorum:
        quorum.start(1, 2)
        quorum.wait_registered(1, 2)
        node = quorum.members[3]
        node.start(None, *([HANDS_OVER] if leads == "java" else []))
        node.wait_ready()
        quorum.wait_commit(0)
        if leads == "ours":
            quorum.start(quorum.depose(3))
        quorum.leader(among=[3] if leads == "ours" else [1, 2])
        tools = Tools(quorum)

        said: list[str] = []

        def upgrade() -> bool:
            """Voters report what they support within seconds after an election."""
            result = tools.upgrade("kraft.version", 1)
            said.append(result.stdout + result.stderr)
            return result.returncode == 0

        def told() -> str:
            return "\n".join([*said[-1:], quorum.last_lines()])

        wait_until(upgrade, "the upgrade of kraft.version", told)
        assert tools.feature_levels()["kraft.version"] == "1"
        quorum.check_logs_agree()
        quorum.check_health()
        # On a slow machine another one may lead by now.
        for node_id in sorted({2, 3} - {quorum.leader()}):
            remove(quorum, node_id)
            add(quorum, node_id)
        for member in quorum.controllers:
            member.stop()
            member.start()
            member.wait_ready()
        check_all(quorum)
        assert quorum.voters() == [1, 2, 3]
