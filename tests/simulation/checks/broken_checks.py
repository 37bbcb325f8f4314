"""Mistakes in the checks themselves, each as an edit of one function: by the invariant, what the
check then allows or forbids."""

from __future__ import annotations

from typing import NamedTuple

from tests.history.putting_back import Edit


class BrokenCheck(NamedTuple):
    """A check with a mistake in it."""

    name: str
    edit: Edit


def broken(name: str, where: str, old: str, new: str) -> BrokenCheck:
    return BrokenCheck(name, Edit(f"kraftwire.sim.checks.{where}", old, new))


_ELECTIONS = "elections:ElectionChecks"
_LOGS = "logs:LogChecks"
_HISTORY = "cluster_history:ClusterHistory"
_MODEL = "replica_model:ReplicaModel"
_CHECKERS = "checkers:Checkers"

BROKEN = (
    broken(
        "S1: a second leader takes the place of the first",
        f"{_HISTORY}.leads",
        "elif known != leader:",
        "elif known > leader:",
    ),
    broken(
        "S2: an epoch may fall",
        f"{_ELECTIONS}.on_persisted",
        "if new.epoch < old.epoch:",
        "if new.epoch < old.epoch - 1:",
    ),
    broken(
        "S2: the core may be ahead of the file",
        f"{_ELECTIONS}.on_step_ended",
        "event.epoch != model.stored.epoch",
        "event.epoch < model.stored.epoch",
    ),
    broken(
        "S2: a message may be ahead of the file",
        f"{_ELECTIONS}._speaks",
        "epoch > model.stored.epoch",
        "epoch > model.stored.epoch + 1",
    ),
    broken(
        "S2: a request for votes may be of an older epoch",
        f"{_ELECTIONS}._campaigns",
        "epoch != model.stored.epoch",
        "epoch > model.stored.epoch",
    ),
    broken(
        "S2: a start may find an older file",
        f"{_CHECKERS}._on_started",
        "event.election != model.stored",
        "event.election.epoch > model.stored.epoch",
    ),
    broken(
        "S3: a vote may be forgotten",
        f"{_ELECTIONS}.on_persisted",
        "changed and not forgets",
        "changed and not forgets and new.voted is not None",
    ),
    broken(
        "S3: a leader may not forget its vote",
        f"{_ELECTIONS}.on_persisted",
        "new.voted is None and new.leader_id == who",
        "False",
    ),
    broken(
        "S3: a granted vote need not be stored",
        f"{_ELECTIONS}._grants",
        "voted is None or voted.id != candidate",
        "voted is not None and voted.id != candidate",
    ),
    broken(
        "S3: a candidate need not vote for itself",
        f"{_ELECTIONS}._campaigns",
        "voted is None or voted.id != own",
        "voted is None",
    ),
    broken(
        "S3: votes of one replica are not compared",
        f"{_HISTORY}.votes_for",
        "if voted != candidate:",
        "if voted > candidate + 1:",
    ),
    broken(
        "S3: votes of all disks of a node are one",
        f"{_HISTORY}.votes_for",
        "(key, epoch)",
        '((key[0], b""), epoch)',
    ),
    broken(
        "S3: nobody need have asked for a stored vote",
        f"{_HISTORY}.stores_vote",
        "not in self.campaigns",
        "in ()",
    ),
    broken(
        "S4: only offsets are compared",
        f"{_ELECTIONS}._grants",
        "if log < mine",
        "if log[1] < mine[1] - 1",
    ),
    broken(
        "S4: pre-votes need no new log",
        f"{_ELECTIONS}._grants",
        "request.pre_vote or event.voted != candidate",
        "event.voted != candidate",
    ),
    broken(
        "S4: a vote may not be given again",
        f"{_ELECTIONS}._grants",
        "request.pre_vote or event.voted != candidate",
        "True",
    ),
    broken(
        "S4: an equal log is older",
        f"{_ELECTIONS}._grants",
        "if log < mine",
        "if log <= mine",
    ),
    broken(
        "S4: what a candidate claims is not compared",
        f"{_ELECTIONS}._campaigns",
        "log != model.last",
        "log < model.last",
    ),
    broken(
        "S4: a candidate's log need not be durable",
        f"{_ELECTIONS}._campaigns",
        "model.durable < model.end",
        "model.durable < model.end - 1",
    ),
    broken(
        "S5: a leader need not have what is committed",
        f"{_HISTORY}._check_complete",
        "entry not in log",
        "entry.epoch > epoch",
    ),
    broken(
        "S5: a late leader must have what was committed after it",
        f"{_HISTORY}._check_complete",
        "if at >= epoch:",
        "if at < 0:",
    ),
    broken(
        "S6: the past of a batch is not compared",
        f"{_HISTORY}.writes",
        "known[1] != before",
        "known[1] > before",
    ),
    broken(
        "S7: other bytes may be committed by a follower",
        f"{_HISTORY}.advances",
        "self.committed[place] != entry",
        "self.committed[place].base != entry.base",
    ),
    broken(
        "S7: other bytes may be delivered",
        f"{_HISTORY}.delivers",
        "self.committed[place] != entry",
        "self.committed[place].base != entry.base",
    ),
    broken(
        "S7: a commit may leave a gap",
        f"{_HISTORY}._commit",
        "not new or new[0].base != self.frontier",
        "not new",
    ),
    broken(
        "S8: a high watermark may fall",
        f"{_LOGS}.on_high_watermark_advanced",
        "offset < model.high_watermark",
        "offset < 0",
    ),
    broken(
        "S8: a high watermark may be above the log",
        f"{_LOGS}.on_high_watermark_advanced",
        "offset > model.end",
        "offset > model.end + 1",
    ),
    broken(
        "S8: a high watermark may be inside a batch",
        f"{_LOGS}.on_high_watermark_advanced",
        "new and new[-1].end != offset",
        "new and new[-1].end > offset",
    ),
    broken(
        "S8: a follower may commit",
        f"{_HISTORY}.advances",
        "place is None and leader_epoch < 0",
        "place is None and leader_epoch < -1",
    ),
    broken(
        "S8: the core may know more than it reported",
        f"{_CHECKERS}._on_step_ended",
        "event.high_watermark > max(model.high_watermark, model.start.offset)",
        "False",
    ),
    broken(
        "S9: half of the voters are enough",
        f"{_HISTORY}.commits_on",
        "2 * len(durable) <= len(voters)",
        "2 * len(durable) < len(voters)",
    ),
    broken(
        "S9: what is not durable counts",
        f"{_MODEL}.is_durable",
        "if self.durable < entry.end:",
        "if self.end < entry.end:",
    ),
    broken(
        "S9: disks that are gone do not count",
        f"{_CHECKERS}._on_high_watermark_advanced",
        "(*self.models.values(), *self.replaced)",
        "tuple(self.models.values())",
    ),
    broken(
        "S9: another disk of a voter counts",
        "voters:matches",
        "not any(member[1]) or member[1] == key[1]",
        "True",
    ),
    broken(
        "S9: a Fetch may start above what is durable",
        f"{_ELECTIONS}._fetches",
        "offset > model.durable",
        "offset > model.end",
    ),
    broken(
        "S9: a start may keep what is not durable",
        f"{_LOGS}.on_started",
        "if not event.is_durable:",
        "if not event.entries:",
    ),
    broken(
        "S10: an older epoch may be committed by counting",
        f"{_HISTORY}._commit",
        "new[-1].epoch != leader_epoch",
        "new[-1].epoch > leader_epoch",
    ),
    broken(
        "S10: older batches may not be committed at all",
        f"{_HISTORY}._commit",
        "new[-1].epoch != leader_epoch",
        "new[0].epoch != leader_epoch",
    ),
    broken(
        "S11: committed batches may be dropped",
        f"{_HISTORY}.drops",
        "self.commit_epochs[place] <= epoch",
        "self.commit_epochs[place] > epoch",
    ),
    broken(
        "S11: anybody may order a cut",
        f"{_LOGS}.on_truncating",
        "event.ordered_by != event.epoch",
        "event.ordered_by > event.epoch",
    ),
    broken(
        "S11: a cut may be undone",
        f"{_LOGS}.on_truncated",
        "if not event.is_durable:",
        "if event.end < 0:",
    ),
    broken(
        "S11: a cut may go below the high watermark",
        f"{_LOGS}.on_truncating",
        "end < model.high_watermark",
        "end < 0",
    ),
    broken(
        "S12: what was durable may be lost",
        f"{_LOGS}.on_started",
        "elif end < model.durable:",
        "elif end < 0:",
    ),
    broken(
        "S12: what was not durable may not be lost",
        f"{_LOGS}.on_started",
        "elif end < model.durable:",
        "elif end < model.end:",
    ),
    broken(
        "S12: other records may be acknowledged",
        f"{_HISTORY}.acknowledges",
        "found_epoch != epoch or tuple(found) != values",
        "found_epoch != epoch",
    ),
    broken(
        "S12: another epoch may be acknowledged",
        f"{_HISTORY}.acknowledges",
        "found_epoch != epoch or tuple(found) != values",
        "tuple(found) != values",
    ),
    broken(
        "S12: a removal need not be committed",
        f"{_HISTORY}.acknowledges_voter",
        "key in before and key not in after",
        "key not in after",
    ),
    broken(
        "S12: a replica may join again",
        f"{_ELECTIONS}.on_request_sent",
        "kind is AddRaftVoterRequest and model.removed_at is not None",
        "False",
    ),
    broken(
        "S13: a log may have a gap",
        f"{_LOGS}.on_appended",
        "entry.base != end or entry.end <= entry.base",
        "entry.base < end",
    ),
    broken(
        "S13: epochs may fall",
        f"{_LOGS}.on_appended",
        "before <= entry.epoch <= event.epoch",
        "entry.epoch <= event.epoch",
    ),
    broken(
        "S13: a batch may be of an epoch to come",
        f"{_LOGS}.on_appended",
        "before <= entry.epoch <= event.epoch",
        "before <= entry.epoch",
    ),
    broken(
        "S13: a leader may write for an older epoch",
        f"{_LOGS}.on_appended",
        "event.is_leader and entry.epoch != event.epoch",
        "False",
    ),
    broken(
        "S13: a place may have two contents",
        f"{_HISTORY}.writes",
        "known[0] != entry",
        "known[0].end != entry.end",
    ),
    broken(
        "S13: an epoch may have a gap",
        f"{_HISTORY}.writes",
        "self.written_to.setdefault(epoch, base) != base",
        "self.written_to.setdefault(epoch, base) > base",
    ),
    broken(
        "S13: the core's log may end elsewhere",
        f"{_CHECKERS}._on_step_ended",
        "event.end != model.end",
        "event.end < model.end",
    ),
    broken(
        "S13: a start may find other bytes",
        f"{_LOGS}.on_started",
        "found != known[: len(found)]",
        "len(found) > len(known)",
    ),
    broken(
        "S13: a prefix that is back is not compared",
        f"{_HISTORY}.finds",
        "place is None or self.committed[place] != entry",
        "place is None",
    ),
    broken(
        "S14: a snapshot may have another state",
        f"{_HISTORY}.has_snapshot",
        "state != (offset, self.sums[offset])",
        "state is None",
    ),
    broken(
        "S14: a snapshot may have another epoch",
        f"{_HISTORY}.has_snapshot",
        "before is None or before.epoch != snapshot.epoch",
        "before is None",
    ),
    broken(
        "S14: a snapshot may be of what is not committed",
        f"{_HISTORY}.has_snapshot",
        "offset > self.frontier or offset not in self.sums",
        "False",
    ),
    broken(
        "S14: a log may start without a snapshot",
        f"{_LOGS}.on_prefix_dropped",
        "if not event.has_snapshot:",
        "if start.offset < 0:",
    ),
    broken(
        "S14: a log may start above what is committed",
        f"{_LOGS}.on_prefix_dropped",
        "start.offset > max(model.high_watermark, model.start.offset)",
        "False",
    ),
    broken(
        "S14: a part of a snapshot may be empty",
        f"{_LOGS}.on_snapshot_served",
        "not part.unaligned_records",
        "part.unaligned_records is None",
    ),
    broken(
        "S15: a state machine may miss a batch",
        f"{_LOGS}.on_delivered",
        "if entry.base != at:",
        "if entry.base < at:",
    ),
    broken(
        "S15: it may be given what is not known to be committed",
        f"{_LOGS}.on_delivered",
        "at > max(model.high_watermark, model.start.offset)",
        "at > model.end",
    ),
    broken(
        "S15: it may go back to a snapshot",
        f"{_LOGS}.on_loaded",
        "event.id.offset <= event.before",
        "event.id.offset < event.before",
    ),
    broken(
        "S15: it may lead before it has read everything",
        f"{_LOGS}.on_leader_reported",
        "event.consumed < first",
        "event.consumed < 0",
    ),
    broken(
        "S15: it may hear of an older leader",
        f"{_LOGS}.on_leader_reported",
        "at <= model.fired",
        "at < model.fired",
    ),
    broken(
        "S16: two voters may change at once",
        f"{_LOGS}._changes_voters",
        "len(old - new) > 1 or len(new - old) > 1",
        "len(old - new) > 1",
    ),
    broken(
        "S16: a voter may be replaced at once",
        f"{_LOGS}._changes_voters",
        "len(old - new) == 1 and len(new - old) == 1",
        "False",
    ),
    broken(
        "S16: a change may follow one that is not committed",
        f"{_LOGS}._changes_voters",
        "offset >= model.high_watermark",
        "offset > model.high_watermark + 9",
    ),
    broken(
        "S16: a change needs no commit of its epoch",
        f"{_LOGS}._has_committed",
        "first.end <= model.high_watermark",
        "first.end > 0",
    ),
    broken(
        "S16: an upgrade changes the voters",
        f"{_LOGS}._changes_voters",
        "not any(any(member[1]) for member in old)",
        "False",
    ),
    broken(
        "S16: the core may believe in other voters",
        f"{_CHECKERS}._on_step_ended",
        "if theirs != ours:",
        "if len(theirs) < len(ours):",
    ),
    broken(
        "S16: the core may believe in another version",
        f"{_CHECKERS}._on_step_ended",
        "event.version != model.version",
        "event.version > model.version",
    ),
    broken(
        "S16: a set outlives its cut",
        f"{_MODEL}.cut",
        "len(self.sets) > 1 and self.sets[-1][0] >= end",
        "len(self.sets) > 1 and self.sets[-1][0] > end",
    ),
    broken(
        "S17: half of the votes win",
        f"{_HISTORY}.elected",
        "2 * len(granting) <= len(voters)",
        "2 * len(granting) < len(voters)",
    ),
    broken(
        "S17: votes of others count",
        f"{_HISTORY}._has_vote",
        "voted == candidate and at == epoch and matches(member, key)",
        "voted == candidate and at == epoch",
    ),
    broken(
        "S17: a request of another cluster may be granted",
        f"{_ELECTIONS}.on_response_sent",
        'event.is_foreign and cast("Any", message).error_code != _OTHER_CLUSTER',
        "False",
    ),
    broken(
        "S18: a removed voter may stand",
        f"{_MODEL}.may_stand",
        "where >= self.high_watermark",
        "True",
    ),
    broken(
        "S18: a voter may not stand before its removal is committed",
        f"{_MODEL}.may_stand",
        "where >= self.high_watermark",
        "False",
    ),
    broken(
        "S18: anybody may be asked for a vote",
        f"{_ELECTIONS}._campaigns",
        "message.voter_id not in [member[0] for member in model.voters]",
        "False",
    ),
    broken(
        "S18: anybody may lead",
        f"{_HISTORY}.leads",
        "leader not in self.known",
        "leader < 0",
    ),
    broken(
        "S19: a pre-vote may be stored",
        f"{_ELECTIONS}.on_persisted",
        "event.in_pre_vote and new != old and not is_own",
        "event.in_pre_vote and new.epoch != old.epoch and not is_own",
    ),
    broken(
        "S19: its own deadline is blamed on a pre-vote",
        f"{_ELECTIONS}.on_persisted",
        "event.is_due and new.epoch > old.epoch",
        "False",
    ),
    broken(
        "S19: its own deadline excuses a vote",
        f"{_ELECTIONS}.on_persisted",
        "event.is_due and new.epoch > old.epoch",
        "event.is_due",
    ),
    broken(
        "S20: leaders in Fetch answers are not compared",
        "elections:_of_fetch_answer",
        "_present_leader(responses[0].partitions[0].current_leader) if responses else None",
        "None",
    ),
    broken(
        "S21: acknowledgements may go back",
        f"{_HISTORY}.acknowledges",
        "base < after",
        "base < after - 2",
    ),
    broken(
        "S21: concurrent requests have an order",
        f"{_HISTORY}.acknowledges",
        "base < after",
        "base < self.acknowledged",
    ),
)
