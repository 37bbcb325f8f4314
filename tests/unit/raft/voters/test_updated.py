"""UpdateRaftVoter: the checks in Kafka's order, with voters in the log and with static ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from kraftwire.messages.update_raft_voter_request import UpdateRaftVoterRequest
from kraftwire.protocol.endpoint import Endpoint
from kraftwire.raft import effects
from kraftwire.raft.effects import ElectionState
from kraftwire.raft.voters import ReplicaKey, VoterSet
from kraftwire.records.control import control_batch
from tests.support.raft.downloads import sent_to, serve
from tests.support.raft.lone import Lone, fetches, leading, stored_log
from tests.support.raft.messages import (
    LISTENER,
    directory_id,
    dynamic_set,
    fetched,
    remove_voter,
    update_voter,
    updated,
    voter,
    voters_control,
)
from tests.unit.raft.voters.test_added import follower, pending, uncommitted_leader, unsettled

_FAULTS: dict[str, tuple[int, dict[str, Any]]] = {
    "cluster": (104, {"cluster_id": "foreign"}),
    "older epoch": (74, {"ahead": -1}),
    "newer epoch": (75, {"ahead": 1}),
    "directory": (42, {"directory": bytes(16)}),
    "listener": (42, {"listeners": ("OTHER",)}),
    "range": (42, {"versions": (1, 0)}),
    "negative": (42, {"versions": (-1, 1)}),
    "excluded": (42, {"versions": (2, 3)}),
    "stranger": (127, {"node_id": 9}),
}
_STATES: dict[str, tuple[int, Callable[[], Lone]]] = {
    "not the leader": (6, follower),
    "pending": (7, pending),
    "no high watermark": (7, uncommitted_leader),
    "no high watermark, static": (7, lambda: uncommitted_leader(is_dynamic=False)),
    "unsettled": (7, unsettled),
    "static": (0, lambda: leading(is_dynamic=False)),
    "dynamic": (0, leading),
}
# In the order in which Kafka checks them.
_ORDER = ["cluster", "older epoch", "newer epoch", "not the leader", "directory", "listener"]
_ORDER += ["range", "negative", "pending", "no high watermark", "unsettled", "excluded", "stranger"]


@pytest.mark.parametrize("state", _STATES)
def test_the_first_of_several_errors_is_reported(state: str) -> None:
    """R-UPD-3: two faults at once, in every pair, with every state of the leader."""
    error, make = _STATES[state]
    name = state.removesuffix(", static")
    codes = {**{one: code for one, (code, _) in _FAULTS.items()}, name: error}
    for pair in itertools.combinations_with_replacement(_FAULTS, 2):
        lone = make()
        fields: dict[str, Any] = {"node_id": 2, "ahead": 0}
        for one in reversed(pair):
            fields |= _FAULTS[one][1]
        named = [one for one in (*pair, name) if one in _ORDER]
        wanted = codes[min(named, key=_ORDER.index)]
        epoch = lone.core.epoch + fields.pop("ahead")
        answer = lone.request(update_voter(fields.pop("node_id"), epoch, **fields))
        assert answer.error_code == wanted, pair


@pytest.mark.parametrize("is_dynamic", [True, False])
def test_the_leaders_own_id_is_refused(is_dynamic: bool) -> None:
    """R-CQ-3: a Java leader ends."""
    lone = leading(is_dynamic=is_dynamic)
    assert lone.request(update_voter(1, lone.core.epoch)).error_code == 42
    assert lone.core.role == "leader"


def test_an_update_is_a_change_of_the_set_at_version_1() -> None:
    """R-UPD-3: it is in force at once, and the answer does not wait for the commit."""
    lone = leading()
    end = lone.core.end_offset
    answer = lone.request(
        update_voter(2, lone.core.epoch, listeners=(LISTENER, "OTHER"), versions=(0, 2))
    )
    assert answer.error_code == 0
    entry = lone.core.voters.get(2)
    assert entry is not None
    assert [one.listener for one in entry.endpoints] == [LISTENER, "OTHER"]
    assert (entry.kraft_version_min, entry.kraft_version_max) == (0, 2)
    assert lone.core.voters_offset == end


def test_another_change_waits_for_the_commit_of_an_update() -> None:
    """R-VC-1: one after the other; its commit answers no request."""
    lone = leading()
    lone.request(update_voter(2, lone.core.epoch, versions=(0, 2)))
    assert "update voter 2" in lone.request(remove_voter(3)).error_message
    assert lone.request(update_voter(3, lone.core.epoch)).error_code == 7
    fetches(lone, 2)
    assert lone.request(update_voter(3, lone.core.epoch)).error_code == 0


def test_an_update_without_a_difference_writes_nothing() -> None:
    """R-UPD-3: anybody can send it in the voter's name."""
    lone = leading()
    end = lone.core.end_offset
    for _ in range(3):
        assert lone.request(update_voter(2, lone.core.epoch)).error_code == 0
    assert lone.core.end_offset == end
    assert lone.request(remove_voter(3)) is None


def test_updates_come_no_faster_than_a_voter_sends_them() -> None:
    """R-UPD-3: each is a change of the set, and others send them in its name
    (SEC-VOTERS)."""
    lone = leading()

    def update(node_id: int, highest: int) -> int:
        code: int = lone.request(
            update_voter(node_id, lone.core.epoch, versions=(0, highest))
        ).error_code
        fetches(lone, 2)
        fetches(lone, 3)
        return code

    assert [update(2, 2), update(2, 3), update(2, 2), update(3, 3)] == [0, 7, 0, 0]
    for _ in range(4):
        lone.wait(lone.config.timers.fetch_timeout_ms // 4)
        fetches(lone, 2)
        fetches(lone, 3)
    assert update(2, 3) == 0
    entry = lone.core.voters.get(2)
    assert entry is not None
    assert entry.kraft_version_max == 3


def test_another_directory_of_a_voter_is_not_found() -> None:
    """R-UPD-3: at version 1 the key has to match, or a new disk would take over the vote."""
    lone = leading()
    request = update_voter(2, lone.core.epoch, directory=b"another one dir.")
    assert lone.request(request).error_code == 127
    assert lone.core.voters.get(2) == leading().core.voters.get(2)


def test_an_update_at_version_0_changes_nothing_in_the_log() -> None:
    """R-UPD-6: it is kept for an upgrade, whatever its directory id; see the upgrade's tests."""
    lone = leading(is_dynamic=False)
    end = lone.core.end_offset
    request = update_voter(2, lone.core.epoch, directory=b"another one dir.")
    assert lone.request(request).error_code == 0
    assert lone.core.end_offset == end
    assert lone.core.voters.get(2) == leading(is_dynamic=False).core.voters.get(2)


@pytest.mark.parametrize("is_dynamic", [True, False])
def test_updates_keep_a_leader_without_fetches(is_dynamic: bool) -> None:
    """R-CQ-2: an accepted one is a sign of life, a refused one is not."""
    lone = leading(is_dynamic=is_dynamic)
    start = lone.now
    lone.wait(2000)
    assert lone.request(update_voter(2, lone.core.epoch)).error_code == 0
    lone.wait(start + 3500 - lone.now)
    assert lone.core.role == "leader"
    assert lone.request(update_voter(3, lone.core.epoch, versions=(2, 3))).error_code != 0
    lone.wait(1600)
    assert lone.core.role == "resigned"


def test_every_answer_names_the_leader_and_its_endpoint() -> None:
    """R-UPD-4: except an answer to another cluster."""
    lone = follower()
    leader = lone.request(update_voter(3, 1)).current_leader
    assert (leader.leader_id, leader.leader_epoch) == (2, 1)
    assert (leader.host, leader.port) == ("node2", 9002)
    answer = lone.request(update_voter(3, 1, cluster_id="foreign"))
    assert answer.current_leader is None or answer.current_leader.leader_id == -1


# ---- asking --------------------------------------------------------------------------------------


def following(voters: Sequence[int] | VoterSet = (1, 2, 3), **fields: Any) -> Lone:
    """Node 1 follows node 2, and its fetches are answered for two seconds."""
    lone = Lone(voters=voters, **fields)
    lone.follow(2, 1)
    for _ in range(4):
        lone.wait(500)
        lone.fetch_gets(fetched(2, 1))
    return lone


def updates(lone: Lone) -> list[effects.SendRequest]:
    """The UpdateRaftVoter requests so far."""
    return [one for one in lone.requests if one.message.NAME == "UpdateRaftVoterRequest"]


def test_a_static_voter_tells_each_leader_once() -> None:
    """R-UPD-1: after a fetch timeout as follower; with an accepted answer it is done."""
    lone = following()
    [sent] = updates(lone)
    message: Any = sent.message
    assert (message.voter_id, message.voter_directory_id) == (1, directory_id(1))
    feature = message.kraft_version_feature
    assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)
    lone.answer(sent, updated(2, 1))
    for _ in range(20):
        lone.wait(500)
        lone.fetch_gets(fetched(2, 1))
    assert len(updates(lone)) == 1


def test_a_refused_update_is_sent_again_after_the_fetch_timeout() -> None:
    """R-UPD-5, KAFKA-17751: not in a loop, and fetching continues meanwhile."""
    lone = following()
    lone.answer(updates(lone)[0], updated(2, 1, error=7))
    for _ in range(8):
        lone.wait(500)
        sent = lone.last_request
        if sent.message.NAME == "UpdateRaftVoterRequest":
            lone.answer(sent, updated(2, 1, error=7))
            lone.wait(20)
        lone.fetch_gets(fetched(2, 1))
    assert len(updates(lone)) == 3


def test_a_leader_too_old_for_updates_is_told_once() -> None:
    """R-UPD-5: UNSUPPORTED_VERSION is permanent."""
    lone = following()
    lone.answer(updates(lone)[0], updated(2, 1, error=35))
    for _ in range(8):
        lone.wait(500)
        lone.fetch_gets(fetched(2, 1))
    assert len(updates(lone)) == 1


def test_an_update_that_gets_no_answer_does_not_stop_the_fetches() -> None:
    """KAFKA-17751: the connection is left alone for the back-off, then the log matters more."""
    lone = following()
    lone.fail(updates(lone)[0])
    lone.wait(20)
    assert lone.last_request.message.NAME == "FetchRequest"


@pytest.mark.parametrize(("own", "count"), [((LISTENER,), 0), ((LISTENER, "OTHER"), 1)])
def test_a_voter_in_the_log_tells_only_what_the_log_does_not_say(
    own: tuple[str, ...], count: int
) -> None:
    """R-UPD-1: its listeners may have changed with its configuration."""
    endpoints = tuple(Endpoint(name, "node1", 9001) for name in own)
    assert len(updates(following(is_dynamic=True, endpoints=endpoints))) == count


def test_a_voter_that_has_lost_a_listener_tells_its_leader() -> None:
    """R-UPD-1: others would go on to use an address that is gone."""
    two = tuple(Endpoint(name, "node1", 9001) for name in (LISTENER, "OTHER"))
    entry = replace(voter(1), endpoints=two)
    sent = updates(following(dynamic_set([1, 2, 3]).with_voter(entry), is_dynamic=True))
    [message] = [cast("UpdateRaftVoterRequest", one.message) for one in sent]
    assert [one.name for one in message.listeners] == [LISTENER]


def test_a_node_of_another_directory_tells_nothing() -> None:
    """It is not a voter: the leader would refuse it."""
    key = ReplicaKey(1, b"another one dir.")
    assert not updates(following(is_dynamic=True, key=key))


@pytest.mark.parametrize(
    ("versions", "count"), [((0, 1), 0), ((0, 0), 1), ((0, 2), 1), ((1, 1), 1), ((1, 2), 1)]
)
def test_a_voter_whose_versions_have_changed_tells_its_leader(
    versions: tuple[int, int], count: int
) -> None:
    """R-UPD-1: after an upgrade of its software, or a downgrade, only its range may be another."""
    entry = replace(voter(1), kraft_version_min=versions[0], kraft_version_max=versions[1])
    sent = updates(following(dynamic_set([1, 2, 3]).with_voter(entry), is_dynamic=True))
    assert len(sent) == count
    for one in sent:
        feature = cast("UpdateRaftVoterRequest", one.message).kraft_version_feature
        assert (feature.min_supported_version, feature.max_supported_version) == (0, 1)


@pytest.mark.parametrize("versions", [(0, 1), (0, 0), (0, 2), (1, 1)])
def test_a_leader_whose_versions_have_changed_writes_them_first(versions: tuple[int, int]) -> None:
    """R-LEAD-2: it has nobody to tell; later leaders find them in the log."""
    entry = replace(voter(1), kraft_version_min=versions[0], kraft_version_max=versions[1])
    voters = dynamic_set([1, 2, 3]).with_voter(entry)
    log = [control_batch(0, 1, 0, voters_control(voters))]
    lone = Lone(voters=voters, log=log, election=ElectionState(1), is_dynamic=True)
    lone.lead()
    assert lone.core.voters == dynamic_set([1, 2, 3])
    assert (lone.core.voters_offset != 1) is (versions != (0, 1))


def _answered(lone: Lone, sent: effects.SendRequest, error: int) -> None:
    """The leader answers the update after 1.5 s, and nothing else for a second more."""
    lone.wait(1500)
    lone.answer(sent, updated(2, 1, error))
    assert lone.core.role == "follower"
    lone.wait(1000)


@pytest.mark.parametrize("error", [0, 35])
def test_an_accepted_update_keeps_a_follower(error: int) -> None:
    """R-FET-5, R-UPD-5: its leader is alive, for one fetch timeout from then on."""
    lone = following()
    [sent] = updates(lone)
    _answered(lone, sent, error)
    assert lone.core.role == "follower"
    lone.wait(1500)
    assert lone.core.role == "prospective"


@pytest.mark.parametrize("error", [7, 42, 127, -1])
def test_a_refused_update_does_not_keep_a_follower(error: int) -> None:
    """R-FET-5: an answer with an error shows nothing of the log."""
    lone = following()
    [sent] = updates(lone)
    _answered(lone, sent, error)
    assert lone.core.role == "prospective"


def test_an_accepted_update_does_not_make_up_for_a_slow_snapshot() -> None:
    """R-FET-5: while a snapshot is fetched, its parts decide; a leader could otherwise name one and
    send none of it."""
    lone = Lone(log=stored_log((1, 4)), election=ElectionState(1))
    lone.follow(2, 3)
    start = lone.now
    sent_to(lone, leader=2, epoch=3)
    while not updates(lone):
        assert lone.now < start + 2500
        serve(lone, bytes(1 << 20), 7, leader=2, epoch=3)
        lone.wait(10)
    [sent] = updates(lone)
    lone.answer(sent, updated(2, 3))
    assert lone.core.role == "follower"
    lone.wait(start + 2500 - lone.now)
    assert lone.core.role == "prospective"


def test_an_update_teaches_who_leads_now() -> None:
    """R-UPD-5, R-RESP-2: with an address that can be used; one without an address is nobody's."""
    for host, port, known in (("new", 9, True), ("", 0, False), ("new", 0, False)):
        lone = following()
        [sent] = updates(lone)
        answer = updated(3, 5, 6)
        assert answer.current_leader is not None
        answer.current_leader.host, answer.current_leader.port = host, port
        lone.answer(sent, answer)
        assert (lone.core.leader_id, lone.core.epoch) == (3, 5)
        address = lone.last_request.destination
        assert (address.host, address.port) == ((host, port) if known else ("node3", 9003))
