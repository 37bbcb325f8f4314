"""Mistakes in the checks of liveness, each as an edit of one function."""

from __future__ import annotations

from tests.simulation.checks.broken_checks import broken

_LIVENESS = "liveness:LivenessChecks"

BROKEN = (
    broken(
        "L1: a follower may be in another epoch",
        f"{_LIVENESS}._is_united",
        "one.core.epoch == first.epoch",
        "True",
    ),
    broken(
        "L1: a follower may follow another node",
        f"{_LIVENESS}._is_united",
        "one.core.leader_id == leader",
        "True",
    ),
    broken(
        "L1: a node need not follow",
        f"{_LIVENESS}._is_united",
        'one.core.role == ("leader" if node == leader else "follower")',
        "True",
    ),
    broken(
        "L1: a leader need not be a voter",
        f"{_LIVENESS}._is_united",
        "first.is_voter and all",
        "all",
    ),
    broken(
        "L1: a node need not run",
        f"{_LIVENESS}._is_united",
        "len(running) < len(self._cluster.nodes)",
        "False",
    ),
    broken(
        "L1: an idle epoch may end",
        f"{_LIVENESS}.idles",
        "self._epoch() != epoch or",
        "self._epoch() < epoch or",
    ),
    broken(
        "L1: an idle leader may resign",
        f"{_LIVENESS}.idles",
        "or not self._leaders()",
        "",
    ),
    broken(
        "L1: a lost leader needs no successor",
        f"{_LIVENESS}.loses_leader",
        "if count > 2:",
        "if count > 3:",
    ),
    broken(
        "L1: no time for what is in flight",
        f"{_LIVENESS}.unites",
        "self._cluster.residue_ms + self._cluster.election_ms",
        "self._cluster.election_ms",
    ),
    broken(
        "L2: a follower may lack records",
        f"{_LIVENESS}._is_caught_up",
        "and one.core.end_offset == end",
        "",
    ),
    broken(
        "L2: a follower need not know what is committed",
        f"{_LIVENESS}._is_caught_up",
        "and one.core.high_watermark == end",
        "",
    ),
    broken(
        "L2: a state machine may lag",
        f"{_LIVENESS}._is_caught_up",
        "and self._cluster.applied(node) in (None, end)",
        "",
    ),
    broken(
        "L2: every node has a state machine",
        f"{_LIVENESS}._is_caught_up",
        "in (None, end)",
        "in (end,)",
    ),
    broken(
        "L2: a client may wait",
        f"{_LIVENESS}._is_caught_up",
        "not one.appends",
        "True",
    ),
    broken(
        "L3: an append may be left undecided",
        f"{_LIVENESS}.catches_up",
        "one.appends or one.waiting",
        "one.appends",
    ),
    broken(
        "L3: an append may be ignored",
        f"{_LIVENESS}.catches_up",
        "high_watermark <= end",
        "high_watermark < end",
    ),
    broken(
        "L3: a leader that lost its append is to blame",
        f"{_LIVENESS}.catches_up",
        "self._epoch() == epoch and",
        "",
    ),
    broken(
        "L4: a change may be left",
        f"{_LIVENESS}.finishes_changes",
        "lambda: not cluster.changes_left()",
        "lambda: True",
    ),
    broken(
        "L4: a change gets no time for an election",
        f"{_LIVENESS}.finishes_changes",
        "(1 + cluster.changes_left()) * step_ms",
        "cluster.changes_left() * _CHANGE_MS",
    ),
    broken(
        "L4: a voter of a later release need not report",
        f"{_LIVENESS}._outdated",
        "!= KRAFT_VERSION_MAX",
        "< KRAFT_VERSION_MAX",
    ),
    broken(
        "L4: a lost disk has to report",
        f"{_LIVENESS}._outdated",
        "and self._models[voter.key.id].key == (voter.key.id, voter.key.directory_id)",
        "",
    ),
    broken(
        "L5: a replaced node may stay an observer",
        f"{_LIVENESS}.replaces",
        ".core.is_voter",
        "",
    ),
    broken(
        "L6: a lost leader may cost an epoch more",
        f"{_LIVENESS}.loses_leader",
        "> _EPOCHS_PER_LOSS_MAX",
        "> _EPOCHS_PER_LOSS_MAX + 1",
    ),
    broken(
        "L6: six epochs are too many",
        f"{_LIVENESS}.loses_leader",
        "> _EPOCHS_PER_LOSS_MAX",
        ">= _EPOCHS_PER_LOSS_MAX",
    ),
    broken(
        "L7: an isolated leader may lead on",
        f"{_LIVENESS}.loses_leader",
        "lambda: leader not in self._leaders()",
        "lambda: len(self._leaders()) > 1",
    ),
    broken(
        "L7: an isolated leader has twice the time",
        f"{_LIVENESS}.loses_leader",
        "1.5 *",
        "3 *",
    ),
    broken(
        "L7: no time for drift",
        f"{_LIVENESS}.loses_leader",
        "* DRIFT",
        "",
    ),
    broken(
        "L8: the epoch may end",
        f"{_LIVENESS}._outlasts",
        "self._epoch() != epoch or",
        "",
    ),
    broken(
        "L8: the leader may resign",
        f"{_LIVENESS}._outlasts",
        "or self._leaders() != [leader]",
        "",
    ),
    broken(
        "L8: what follows the return is not looked at",
        f"{_LIVENESS}._outlasts",
        "cluster.pass_time(2 * timeout_ms)",
        "pass",
    ),
    broken(
        "L9: a node may wake once more",
        f"{_LIVENESS}.idles",
        "count > most * DRIFT",
        "count > most * DRIFT + 1",
    ),
    broken(
        "L9: what happened before counts",
        f"{_LIVENESS}.idles",
        "- before[node]",
        "",
    ),
    broken(
        "L9: nodes may be busy",
        f"{_LIVENESS}.idles",
        "busy > 4 * most * count",
        "busy > 8 * most * count",
    ),
    broken(
        "L9: earlier events count",
        f"{_LIVENESS}.idles",
        "(cluster.events() - events) / count",
        "cluster.events() / count",
    ),
    broken(
        "L10: a request more is kept",
        f"{_LIVENESS}.idles",
        "> 4 * count:",
        "> 4 * count + 1:",
    ),
    broken(
        "L10: what may be kept is too much",
        f"{_LIVENESS}.idles",
        "len(one.requests) > 4 * count",
        "len(one.requests) >= 4 * count",
    ),
    broken(
        "hope where nobody can be elected",
        f"{_LIVENESS}._hopeless",
        "if not self._cluster.checkers.can_elect()",
        "if False",
    ),
    broken(
        "hope where no leader can be found",
        f"{_LIVENESS}._hopeless",
        "not any(one in self._cluster.bootstrap for one, _ in voters)",
        "not voters",
    ),
    broken(
        "hope for a voter that missed its removal",
        f"{_LIVENESS}._hopeless",
        'if self.is_cut_off() else ""',
        'if False else ""',
    ),
    broken(
        "a voter may stay apart",
        f"{_LIVENESS}.is_cut_off",
        "and not is_one_left",
        "",
    ),
    broken(
        "an observer may stay apart",
        f"{_LIVENESS}.is_cut_off",
        "any(one.may_stand() for one in late)",
        "late",
    ),
    broken(
        "a loss is tried without pre-votes",
        f"{_LIVENESS}.trials",
        "and self._cluster.has_pre_votes",
        "",
    ),
    broken(
        "a loss is tried after another",
        f"{_LIVENESS}.trials",
        "if is_whole and",
        "if",
    ),
    broken(
        "a loss is tried with too few voters",
        f"{_LIVENESS}.trials",
        "if len(model.voters) > 2 else []",
        "if len(model.voters) > 1 else []",
    ),
)
