"""Handing the leadership to another implementation: claims, probes, and those that are silent."""

from __future__ import annotations

from typing import Any

import pytest

from kraftwire.raft import effects, events
from kraftwire.raft.config import Handover, RaftConfig
from kraftwire.raft.resignation import features_of
from kraftwire.raft.voters import ReplicaKey
from tests.support.raft.lone import Lone, append, fetches, leading
from tests.support.raft.messages import (
    JAVA_FEATURES,
    begin,
    dynamic_set,
    end,
    features,
    fetch,
    fetched,
    remove_voter,
    vote,
    voter_set,
)

JAVA = "apache-kafka-java"
THEIRS = features(JAVA_FEATURES)
OURS = features()


def probes(lone: Lone, since: int = 0) -> list[effects.SendRequest]:
    """The ApiVersions requests since one of that number."""
    return [one for one in lone.requests[since:] if one.message.NAME == "ApiVersionsRequest"]


def leader(*, handover: Handover = Handover.AUTO) -> Lone:
    """Node 1 leads, its epoch is established, and the others' software is unknown."""
    lone = leading(handover=handover)
    assert lone.core.role == "leader"
    return lone


def claims(lone: Lone, replica: int, software: str = JAVA, **fields: Any) -> None:
    """A fetch in a voter's name, over a connection that claims this software."""
    core = lone.core
    at = fields.pop("offset", core.end_offset)
    request = fetch(replica, at, lone.epoch_before(at), core.epoch, max_wait_ms=0, **fields)
    lone.request(request, software=software)


# ---- claims and probes ---------------------------------------------------------------------------


def test_a_voter_of_another_implementation_is_asked_before_it_gets_the_leadership() -> None:
    """Anyone may claim anything; its own endpoint has to be open and to confirm it."""
    lone = leader()
    claims(lone, 2)
    [sent] = probes(lone)
    assert (sent.destination.id, sent.destination.port) == (2, 9002)
    assert lone.core.role == "leader"
    found = lone.answer(sent, THEIRS)
    [change] = [one for one in found if isinstance(one, effects.RoleChanged)]
    assert change.reason == "hands over to 2, which can be the active controller"
    ended: list[Any] = [one.message for one in lone.requests if "EndQuorum" in one.message.NAME]
    [partition] = ended[0].topics[0].partitions
    assert [one.candidate_id for one in partition.preferred_candidates][0:1] == [2]


def test_a_forged_software_name_makes_no_leader_resign() -> None:
    """One Fetch under another voter's id used to be enough."""
    lone = leader()
    for _ in range(20):
        claims(lone, 2)
        for sent in probes(lone)[-1:]:
            lone.answer(sent, OURS)
        lone.wait(100)
        fetches(lone, 3)
    assert lone.core.role == "leader"
    assert 4 <= len(probes(lone)) <= 10, "asked again for each claim, or too seldom"


def test_a_node_that_is_not_a_voter_is_not_asked() -> None:
    """It could not lead, whatever it says, and there may be thousands of them."""
    lone = leader()
    for replica in (-1, 4, 99):
        claims(lone, replica)
    claims(lone, 2, directory=b"another one dir.")
    lone.wait(900)
    assert not probes(lone)


def test_a_voter_of_its_own_kind_is_not_asked() -> None:
    """It would not provide an active controller either."""
    lone = leader()
    claims(lone, 2, "kraftwire")
    lone.wait(900)
    assert not probes(lone)


def test_a_voter_that_lacks_something_committed_is_not_asked() -> None:
    """It could not win the election, and there would be no leader to fetch the rest from."""
    lone = leader()
    append(lone, b"x")
    fetches(lone, 3)
    claims(lone, 2, offset=lone.core.end_offset - 1)
    lone.wait(900)
    assert not probes(lone)
    claims(lone, 2)
    assert len(probes(lone)) == 1


def test_a_successor_that_falls_behind_after_the_probe_has_to_catch_up_first() -> None:
    """Then it is asked again; if it never does, others are."""
    lone = leader()
    claims(lone, 2)
    [sent] = probes(lone)
    append(lone, b"x")
    fetches(lone, 3)
    lone.answer(sent, THEIRS)
    assert lone.core.role == "leader"
    lone.wait(250)
    claims(lone, 3)
    assert probes(lone)[-1].destination.id == 3
    lone.wait(250)
    fetches(lone, 2)
    assert probes(lone)[-1].destination.id == 2
    lone.answer(probes(lone)[-1], THEIRS)
    assert lone.core.role == "resigned"


def test_no_successor_is_asked_before_the_epoch_is_established() -> None:
    """What the predecessor committed has to be committed here first."""
    lone = Lone(is_dynamic=True, handover=Handover.AUTO)
    lone.lead()
    claims(lone, 2, offset=0)
    lone.wait(900)
    assert not probes(lone)


# ---- successors that are silent ------------------------------------------------------------------


@pytest.mark.parametrize("error", [8, 13, 35])
def test_a_successor_that_does_not_answer_is_asked_again(error: int) -> None:
    """It votes before its listener is open: it is asked four times a second until it answers."""
    lone = leader()
    claims(lone, 2)
    for _ in range(4):
        lone.fail(probes(lone)[-1], error)
        lone.wait(250)
        claims(lone, 2)
        fetches(lone, 3)
    assert (lone.core.role, len(probes(lone))) == ("leader", 5)
    lone.answer(probes(lone)[-1], THEIRS)
    assert lone.core.role == "resigned"


def test_an_error_instead_of_versions_is_not_an_answer() -> None:
    """A node that does not serve yet is not ready to lead."""
    lone = leader()
    claims(lone, 2)
    refusal = features(JAVA_FEATURES)
    refusal.error_code = 35
    lone.answer(probes(lone)[0], refusal)
    assert lone.core.role == "leader"


def test_a_silent_successor_does_not_prevent_others_from_being_asked() -> None:
    """Each in turn: the second one answers, and leads."""
    lone = leader()
    claims(lone, 2)
    claims(lone, 3)
    lone.wait(300)
    assert {one.destination.id for one in probes(lone)} == {2, 3}
    lone.answer(next(one for one in probes(lone) if one.destination.id == 3), THEIRS)
    [change] = [one for one in lone.all_of(effects.RoleChanged) if one.new == "resigned"]
    assert "hands over to 3" in change.reason


def test_a_silent_successor_holds_up_nothing_else() -> None:
    """A probe in flight does not occupy the connection: announcements continue (R-BEG-1)."""
    lone = leader()
    for sent in lone.requests:
        lone.fail(sent)
    claims(lone, 2)
    count = len(lone.requests)
    for _ in range(4):
        lone.wait(500)
        fetches(lone, 3)
    names = [(one.destination.id, one.message.NAME) for one in lone.requests[count:]]
    assert (2, "BeginQuorumEpochRequest") in names
    assert len(probes(lone)) == 1, "asked again before it could answer"
    assert lone.core.role == "leader"


def test_the_answer_of_a_removed_voter_does_not_count() -> None:
    """It is no longer in the set: no voter would vote for it."""
    lone = leader()
    claims(lone, 2)
    lone.request(remove_voter(2))
    lone.answer(probes(lone)[0], THEIRS)
    fetches(lone, 3)
    lone.wait(900)
    assert lone.core.role == "leader"
    assert lone.core.voters == dynamic_set([1, 3])


# ---- the other policies --------------------------------------------------------------------------


def test_a_leader_that_never_hands_over_asks_and_stays() -> None:
    """`kraftwire.leader.handover=never`: the answers decide who writes as the controller."""
    lone = leader(handover=Handover.NEVER)
    claims(lone, 2)
    assert not lone.core.foreign_voters
    [sent] = probes(lone)
    lone.answer(sent, THEIRS)
    lone.wait(900)
    assert (len(probes(lone)), lone.core.role) == (1, "leader")
    assert lone.core.foreign_voters == {2}


def test_a_claim_alone_does_not_make_a_voter_another_implementation() -> None:
    """SEC-IDENTITY: one Vote or Fetch in a voter's name used to stop the controller."""
    lone = leader()
    claims(lone, 2)
    lone.request(vote(3, lone.core.epoch, pre_vote=True), software=JAVA)
    assert not lone.core.foreign_voters
    asked = len(probes(lone))
    assert asked == 1
    lone.answer(probes(lone)[0], OURS)
    assert not lone.core.foreign_voters


def test_a_refused_request_is_not_a_reason_to_ask() -> None:
    """Its claims about its sender have not been checked."""
    lone = leader()
    lone.request(vote(2, lone.core.epoch - 1), software=JAVA)
    lone.request(vote(2, lone.core.epoch, cluster_id="another"), software=JAVA)
    lone.wait(900)
    assert not probes(lone)


def test_a_leader_that_always_hands_over_needs_no_answer() -> None:
    """`kraftwire.leader.handover=always`: to any voter that has everything."""
    lone = Lone(is_dynamic=True, handover=Handover.ALWAYS)
    lone.lead()
    fetches(lone, 3)
    assert (probes(lone), lone.core.role) == ([], "resigned")


# ---- followers -----------------------------------------------------------------------------------


def following(**config: Any) -> Lone:
    """Node 1 follows node 2."""
    lone = Lone(handover=Handover.AUTO, **config)
    lone.follow(2, 1)
    return lone


def test_a_follower_asks_each_voter_once_what_it_is() -> None:
    """It can then let another implementation stand first."""
    lone = following()
    assert [one.destination.id for one in probes(lone)] == [2, 3]
    for sent in probes(lone):
        lone.answer(sent, OURS)
    lone.request(begin(3, 2))
    assert len(probes(lone)) == 2, "the answers are kept"


@pytest.mark.parametrize(
    ("config", "count"), [({"handover": Handover.NEVER}, 0), ({"node_id": 4}, 0), ({}, 2)]
)
def test_only_voters_that_hand_over_ask(config: dict[str, Any], count: int) -> None:
    """An observer never stands, and a node that never hands over need not ask."""
    lone = Lone(**{"handover": Handover.AUTO, **config})
    lone.request(begin(2, 1))
    assert len(probes(lone)) == count


def patience(lone: Lone) -> int:
    """How long the follower waits after a fetch before it stands."""
    sent = [one for one in lone.requests if one.message.NAME == "FetchRequest"][-1]
    lone.answer(sent, fetched(2, 1))
    start = lone.now
    while lone.core.role == "follower":
        lone.now = lone.core.deadline_ms or 0
        lone.handle(events.TimerExpired())
    return lone.now - start


def test_a_follower_lets_another_implementation_stand_first() -> None:
    """Two fifths of the election timeout longer, more than all the jitter among its own kind."""
    plain, yielding = following(), following()
    for lone, answers in ((plain, (OURS, OURS)), (yielding, (OURS, THEIRS))):
        for sent, answer in zip(probes(lone), answers, strict=True):
            lone.answer(sent, answer)
    assert 2000 <= patience(plain) <= 2200
    assert 2400 <= patience(yielding) <= 2600


def test_a_leader_of_another_implementation_is_not_waited_for() -> None:
    """It is the leader that is gone; no other voter has a controller."""
    lone = following()
    lone.answer(probes(lone)[0], THEIRS)
    lone.answer(probes(lone)[1], OURS)
    assert patience(lone) <= 2200


@pytest.mark.parametrize(("silence", "granted"), [(1799, False), (1800, True)])
def test_a_follower_that_waits_longer_grants_pre_votes_meanwhile(
    silence: int, granted: bool
) -> None:
    """KIP-996: it has not heard from the leader for nearly the fetch timeout either."""
    lone = following()
    sent = [one for one in lone.requests if one.message.NAME == "FetchRequest"][-1]
    lone.answer(sent, fetched(2, 1))
    lone.now += silence
    answer = lone.request(vote(3, 1, pre_vote=True))
    assert answer.topics[0].partitions[0].vote_granted is granted


def test_an_unanswered_question_costs_a_follower_nothing() -> None:
    """It fetches as if nothing had been asked, and does not ask again."""
    lone = following()
    for sent in probes(lone):
        lone.fail(sent)
    assert lone.last_request.message.NAME == "FetchRequest"
    assert lone.last_request.destination.id == 2
    lone.fetch_gets(fetched(2, 1))
    lone.wait(100)
    assert len(probes(lone)) == 2


def test_a_successor_that_is_named_stands_at_once_whatever_it_is() -> None:
    """R-END-4: the leader has chosen, so it does not wait for others."""
    lone = following()
    lone.answer(probes(lone)[1], THEIRS)
    lone.request(end(2, 1, 1, 3))
    assert lone.core.role == "prospective"


def test_a_release_with_other_levels_is_the_same_implementation() -> None:
    """The levels of Kafka's features change with each release, and a quorum has two for a while."""
    later = features()
    later.supported_features[1].max_version += 3
    own = RaftConfig(key=ReplicaKey(1), cluster_id=None, voters=voter_set([1])).features
    assert own <= features_of(later)
    assert not own <= features_of(THEIRS)
