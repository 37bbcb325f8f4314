"""LogChecks of elections: some break an invariant, some nearly do."""

from __future__ import annotations

from collections.abc import Callable

from kraftwire.sim.check_elections import ElectionChecks, Stored
from kraftwire.sim.replica_log import ReplicaLog
from kraftwire.sim.voters import InForce, Voters

VOTERS: Voters = ((1, b""), (2, b""), (3, b""))


def election_checks(**stored: Stored) -> ElectionChecks:
    """What three voters, 1 to 3, and an observer, 4, have stored."""
    ledger = ElectionChecks({1, 2, 3})
    for node in (1, 2, 3, 4):
        ledger.persisted(node, stored.get(f"n{node}", Stored()))
    return ledger


def two_leaders_in_an_epoch() -> None:
    """S1."""
    ledger = election_checks(n1=Stored(3, 1), n2=Stored(3))
    ledger.names_leader(2, 3, 2)


def one_leader_in_each_of_two_epochs() -> None:
    ledger = election_checks(n1=Stored(3, 1), n2=Stored(4))
    ledger.names_leader(2, 4, 2)


def an_epoch_that_goes_back() -> None:
    """S2."""
    election_checks(n1=Stored(3)).persisted(1, Stored(2))


def an_epoch_that_stays() -> None:
    election_checks(n1=Stored(3)).persisted(1, Stored(3, 2))


def a_message_of_an_epoch_that_is_not_stored() -> None:
    """S2."""
    election_checks(n1=Stored(3)).sends(1, 4)


def a_message_of_an_older_epoch() -> None:
    election_checks(n1=Stored(3)).sends(1, 2)


def an_event_that_leaves_memory_ahead_of_disk() -> None:
    """S2."""
    election_checks(n1=Stored(3)).settled(1, 4)


def an_event_that_leaves_both_alike() -> None:
    election_checks(n1=Stored(3)).settled(1, 3)


def two_votes_in_an_epoch() -> None:
    """S3."""
    election_checks(n1=Stored(3, -1, 2)).persisted(1, Stored(3, -1, 3))


def two_votes_in_two_epochs() -> None:
    election_checks(n1=Stored(3, -1, 2)).persisted(1, Stored(4, -1, 3))


def a_vote_that_is_forgotten() -> None:
    """S3."""
    election_checks(n1=Stored(3, -1, 2)).persisted(1, Stored(3, 2, -1))


def a_vote_for_itself_that_a_leader_forgets() -> None:
    election_checks(n1=Stored(3, -1, 1)).persisted(1, Stored(3, 1, -1))


def two_votes_with_a_new_disk_between() -> None:
    """S3: without a directory id it cannot be distinguished from the old one."""
    ledger = election_checks(n1=Stored(3, -1, 2))
    ledger.forget(1, (1, b""))
    ledger.persisted(1, Stored(3, -1, 3))


def the_same_vote_with_a_new_disk_between() -> None:
    ledger = election_checks(n1=Stored(3, -1, 2))
    ledger.forget(1, (1, b""))
    ledger.persisted(1, Stored(3, -1, 2))


def two_votes_of_two_replicas_with_one_id() -> None:
    ledger = election_checks(n1=Stored(3, -1, 2))
    ledger.forget(1, (1, b"new"))
    ledger.persisted(1, Stored(3, -1, 3))


def a_granted_vote_that_is_not_durable() -> None:
    """S3."""
    election_checks(n1=Stored(3)).grants(1, 3, 2)


def a_granted_vote_that_is_durable() -> None:
    election_checks(n1=Stored(3, -1, 2)).grants(1, 3, 2)


def a_candidate_without_its_own_vote() -> None:
    """S3."""
    election_checks(n1=Stored(3, -1, 2)).asks_for_vote(1, 3, 2, pre_vote=False, voters=VOTERS)


def a_candidate_with_its_own_vote() -> None:
    election_checks(n1=Stored(3, -1, 1)).asks_for_vote(1, 3, 2, pre_vote=False, voters=VOTERS)


def a_grant_to_an_older_log() -> None:
    """S4: the epoch decides before the offset."""
    election_checks().compares((3, 10), (2, 90), 1)


def a_grant_to_an_equal_log() -> None:
    election_checks().compares((3, 10), (3, 10), 1)


def a_leader_by_half_of_the_votes() -> None:
    """S17."""
    ledger = ElectionChecks({1, 2, 3, 4})
    for node in (1, 2):
        ledger.persisted(node, Stored(3, -1, 1))
    ledger.elected(1, 3, (*VOTERS, (4, b"")))


def a_leader_by_a_majority() -> None:
    ledger = election_checks(n1=Stored(3, -1, 1), n2=Stored(3, -1, 1))
    ledger.elected(1, 3, VOTERS)


def a_leader_by_the_vote_of_an_observer() -> None:
    """S17."""
    ledger = election_checks(n1=Stored(3, -1, 1), n4=Stored(3, -1, 1))
    ledger.elected(1, 3, VOTERS)


def a_leader_by_the_vote_of_a_replaced_disk() -> None:
    """S17: the id is that of a voter, the directory id is not."""
    ledger = election_checks(n1=Stored(3, -1, 1))
    ledger.forget(2, (2, b"new"))
    ledger.persisted(2, Stored(3, -1, 1))
    ledger.elected(1, 3, ((1, b""), (2, b"old"), (3, b"")))


def a_leader_by_the_vote_of_a_disk_that_is_replaced_later() -> None:
    """A vote that was given stays given."""
    ledger = ElectionChecks({1, 2, 3}, {2: (2, b"old")})
    for node in (1, 2):
        ledger.persisted(node, Stored(3, -1, 1))
    ledger.forget(2, (2, b"new"))
    ledger.elected(1, 3, ((1, b""), (2, b"old"), (3, b"")))


def a_leader_that_counts_itself_outside_of_the_set() -> None:
    """S17."""
    ledger = ElectionChecks({1, 2, 3})
    for node in (1, 2):
        ledger.persisted(node, Stored(3, -1, 1))
    ledger.elected(1, 3, ((2, b""), (3, b"")))


def a_leader_outside_of_the_set_by_a_majority() -> None:
    """It removed itself, and that is not committed: it needs the votes of all others."""
    ledger = ElectionChecks({1, 2, 3})
    for node in (1, 2, 3):
        ledger.persisted(node, Stored(3, -1, 1))
    ledger.elected(1, 3, ((2, b""), (3, b"")))


def an_observer_that_campaigns() -> None:
    """S18."""
    log = ReplicaLog((4, b""), InForce(VOTERS))
    election_checks(n4=Stored(3)).stands(4, may_stand=log.may_stand)


def a_voter_that_campaigns() -> None:
    log = ReplicaLog((3, b""), InForce(VOTERS))
    ledger = election_checks(n3=Stored(3))
    ledger.stands(3, may_stand=log.may_stand)
    ledger.asks_for_vote(3, 3, 1, pre_vote=True, voters=VOTERS)


def removed(high_watermark: int) -> ReplicaLog:
    """The log of a voter whose removal stands at offset 7."""
    log = ReplicaLog((3, b""), InForce(VOTERS[:2], 1, 7, InForce(VOTERS, 1)))
    log.high_watermark = high_watermark
    return log


def a_removed_voter_that_campaigns() -> None:
    """S18: it knows that its removal is committed."""
    election_checks(n3=Stored(3)).stands(3, may_stand=removed(8).may_stand)


def a_voter_that_campaigns_before_its_removal_is_committed() -> None:
    election_checks(n3=Stored(3)).stands(3, may_stand=removed(7).may_stand)


def an_observer_that_is_asked_to_vote() -> None:
    """S18."""
    election_checks(n1=Stored(3)).asks_for_vote(1, 3, 4, pre_vote=True, voters=VOTERS)


def an_observer_that_leads() -> None:
    """S18."""
    election_checks(n1=Stored(3)).names_leader(1, 3, 4)


def an_observer_that_follows() -> None:
    election_checks(n1=Stored(3, 1), n4=Stored(3, 1)).names_leader(4, 3, 1)


def a_pre_vote_that_raises_the_epoch() -> None:
    """S19."""
    election_checks(n1=Stored(3)).asks_for_vote(1, 4, 2, pre_vote=True, voters=VOTERS)


def a_pre_vote_in_the_present_epoch() -> None:
    election_checks(n1=Stored(3)).asks_for_vote(1, 3, 2, pre_vote=True, voters=VOTERS)


def a_pre_vote_that_changes_what_is_stored() -> None:
    """S19."""
    ledger = election_checks(n1=Stored(3))
    ledger.persisted(1, Stored(3, -1, 2))
    ledger.pre_voted(1, Stored(3))


def a_pre_vote_that_changes_nothing() -> None:
    election_checks(n1=Stored(3)).pre_voted(1, Stored(3))


def a_pre_vote_when_its_own_time_had_run_out() -> None:
    """The node had resigned: its own deadline begins the next epoch in the same step."""
    ledger = election_checks(n1=Stored(3, 1))
    ledger.persisted(1, Stored(4))
    ledger.pre_voted(1, Stored(3, 1), was_due=True)


def a_pre_vote_that_votes_when_its_own_time_had_run_out() -> None:
    """S19: an epoch may begin by itself, but no vote may be granted in the old one."""
    ledger = election_checks(n1=Stored(3))
    ledger.persisted(1, Stored(3, -1, 2))
    ledger.pre_voted(1, Stored(3), was_due=True)


def an_answer_that_names_the_leader_of_a_future_epoch() -> None:
    """S20."""
    election_checks(n1=Stored(3)).names_leader(1, 4, 2)


def an_answer_that_names_the_leader_of_a_past_epoch() -> None:
    election_checks(n1=Stored(3)).names_leader(1, 2, 2)


BAD: list[tuple[str, Callable[[], None]]] = [
    ("S1", two_leaders_in_an_epoch),
    ("S2", an_epoch_that_goes_back),
    ("S2", a_message_of_an_epoch_that_is_not_stored),
    ("S2", an_event_that_leaves_memory_ahead_of_disk),
    ("S3", two_votes_in_an_epoch),
    ("S3", a_vote_that_is_forgotten),
    ("S3", two_votes_with_a_new_disk_between),
    ("S3", a_granted_vote_that_is_not_durable),
    ("S3", a_candidate_without_its_own_vote),
    ("S4", a_grant_to_an_older_log),
    ("S17", a_leader_by_half_of_the_votes),
    ("S17", a_leader_by_the_vote_of_an_observer),
    ("S17", a_leader_by_the_vote_of_a_replaced_disk),
    ("S17", a_leader_that_counts_itself_outside_of_the_set),
    ("S18", an_observer_that_campaigns),
    ("S18", a_removed_voter_that_campaigns),
    ("S18", an_observer_that_is_asked_to_vote),
    ("S18", an_observer_that_leads),
    ("S19", a_pre_vote_that_raises_the_epoch),
    ("S19", a_pre_vote_that_changes_what_is_stored),
    ("S19", a_pre_vote_that_votes_when_its_own_time_had_run_out),
    ("S20", an_answer_that_names_the_leader_of_a_future_epoch),
]

NEAR: list[Callable[[], None]] = [
    one_leader_in_each_of_two_epochs,
    an_epoch_that_stays,
    a_message_of_an_older_epoch,
    an_event_that_leaves_both_alike,
    two_votes_in_two_epochs,
    a_vote_for_itself_that_a_leader_forgets,
    the_same_vote_with_a_new_disk_between,
    a_granted_vote_that_is_durable,
    a_candidate_with_its_own_vote,
    a_grant_to_an_equal_log,
    two_votes_of_two_replicas_with_one_id,
    a_leader_by_a_majority,
    a_leader_by_the_vote_of_a_disk_that_is_replaced_later,
    a_leader_outside_of_the_set_by_a_majority,
    a_voter_that_campaigns_before_its_removal_is_committed,
    a_voter_that_campaigns,
    an_observer_that_follows,
    a_pre_vote_in_the_present_epoch,
    a_pre_vote_that_changes_nothing,
    a_pre_vote_when_its_own_time_had_run_out,
    an_answer_that_names_the_leader_of_a_past_epoch,
]
