"""The situations that clusters reach, and how often.

A situation that no cluster reaches is no longer tested; `kraftwire sim run --require-coverage` then
fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

# Each with its meaning; other names are an error, so that a misspelt one is noticed.
SITUATIONS: Mapping[str, str] = {
    # Elections
    "unattached to prospective": "a voter that knows no leader asks for pre-votes",
    "unattached to unattached": "a higher epoch, or a vote, without a known leader",
    "unattached to follower": "a leader is learnt",
    "prospective to candidate": "most would vote for it",
    "prospective to follower": "a leader is learnt, or the old one followed again",
    "prospective to unattached": "a higher epoch, or too few would vote for it",
    "candidate to leader": "most voted for it",
    "candidate to prospective": "an election was lost or took too long",
    "candidate to follower": "another one leads",
    "candidate to unattached": "a higher epoch begins during an election",
    "leader to resigned": "a leader is asked to leave, or is heard by too few",
    "leader to unattached": "a leader learns of a higher epoch",
    "leader to follower": "a leader learns of another one",
    "resigned to unattached": "the next epoch begins",
    "resigned to follower": "a resigned leader learns of the next one",
    "follower to prospective": "a leader is not heard any more",
    "follower to unattached": "a higher epoch without a known leader",
    "follower to follower": "a higher epoch with a leader",
    "vote granted": "a standard vote was given",
    "vote refused": "a standard vote was refused",
    "vote given again": "a candidate asked twice, and got the same answer",
    "pre-vote granted": "a pre-vote was given",
    "pre-vote refused": "a pre-vote was refused",
    "vote refused to an older log": "who asked lacks something",
    "stale epoch refused": "a request of an older epoch came in",
    # Logs
    "truncated": "a follower cut what its leader does not have",
    "committed before it was durable at the leader": "the others made a majority",
    "append refused: NotLeader": "a client asked the wrong node",
    "append refused: UnexpectedEndOffset": "a client expected another offset",
    "followers diverged": "a leader told a follower where the logs part",
    "fetch refused": "a fetch came to a node that does not lead, or in another epoch",
    "start lost what was not flushed": "a log was shorter than what had been written",
    # Network
    "cut off": "a message came to a cut link",
    "dropped": "a message was lost",
    "duplicated": "a message came twice",
    "delayed": "a message came late",
    "connection reset": "a connection broke",
    "request timed out": "nobody answered in time",
    "came to a dead node": "a message came to a node that is not there",
    "answer came too late": "nobody waits for it any more",
    "pre-vote unknown to a peer": "a peer speaks no version of Vote that has pre-votes",
    "stranger refused": "a request of another cluster was refused",
    # Disks and processes
    "power lost: none": "nothing that was not flushed is left",
    "power lost: all": "everything is left",
    "power lost: prefix": "the first writes are left",
    "power lost: sectors": "some sectors are left",
    "power lost: zeros": "a file has its size, not its bytes",
    "power lost within an operation": "a write or a flush was cut short, or an effect never came",
    "killed": "a process ended, its machine did not",
    "stopped by its disk": "a node ended because its disk failed",
    "slow flush": "a flush took long",
    "suspended with work": "a suspended process went on, and something had come in",
    "shut down": "a node shut down gracefully",
    "hunted: elected": "a leader died just elected",
    "hunted: append": "a leader died just after an append",
    "hunted: fetch": "a leader died once one follower had fetched",
    "hunted: commit": "a leader died just after a commit",
    "wiped: a voter": "a voter's disk was replaced",
    "wiped: an observer": "an observer's disk was replaced",
    # Snapshots and state machines
    "write snapshot": "a node wrote a snapshot",
    "snapshot refused": "there was nothing to write, or it was too early",
    "finish snapshot": "a node downloaded a snapshot",
    "snapshot discarded": "a download was given up",
    "snapshot gone": "a snapshot was deleted while somebody fetched it",
    "snapshot loaded": "a state machine took a snapshot",
    "snapshot with changed voters": "a snapshot carries other voters than the first",
    "log begun at a snapshot": "a follower's log was emptied to a snapshot",
    "log prefix dropped": "a log was shortened at its start",
    "sent to a snapshot": "a leader has no batch for a follower any more",
    "told to lead": "a state machine heard that its node leads",
    "state machine lagged": "a state machine took its time",
    # Voters
    "kraft.version raised": "configured voters became voters in the log",
    "voter added": "a leader wrote a set with one more",
    "voter removed": "a leader wrote a set with one less",
    "leader removed": "a leader wrote a set without itself",
    "leader outside of the set commits": "it keeps leading until its removal is committed",
    "change cut off": "a truncation took a change of the voters back",
    "voters taken from a snapshot": "a log that begins at a snapshot has other voters",
    "removed voter stood for election": "its removal was not known to be committed",
    "stood with a set that is outdated": "a voter that missed a committed change asked for votes",
    "joined by itself": "a node asked to become a voter",
    "replaced itself": "a node had its old replica removed",
    "voter updated": "a voter told its leader about itself",
    "leader lost after an update": "a follower stood, and had last waited for an update's answer",
    "change done: add": "an operator was told that a voter is added",
    "change done: remove": "an operator was told that a voter is removed",
    "change settled: DUPLICATE_VOTER": "the voter was there already, or its id",
    "change settled: VOTER_NOT_FOUND": "the voter was gone already, or the only one",
    "change settled: UNSUPPORTED_VERSION": "configured voters do not change",
    "change refused: NOT_LEADER_OR_FOLLOWER": "another node leads, or nobody",
    "change refused: REQUEST_TIMED_OUT": "another change was under way, or it took too long",
    "change unanswered": "an operator heard nothing",
    "change given up": "an operator lost patience",
    "change dropped": "an operator saw that it would be no good",
    "changes finished in peace": "somebody still wanted a change when the trouble ended",
    "disk replaced in peace": "a node got an empty disk and became a voter",
    "isolated leader resigned": "a leader that nobody hears gave up",
    "link to the leader restored": "it was cut for long, and its follower alone noticed",
    "follower came back": "a follower was cut off for a while, and nobody noticed",
}

# Situations that too few clusters reach for a minimum to be required.
RARE: Mapping[str, str] = {
    "shut down late": "a node left before the quorum was ready",
    "hunted: change": "a leader died just after it wrote other voters",
    "change refused": "for another reason",
    "nobody can be elected": "disks were lost that a majority needs",
    "a removed voter cuts itself off": "its epochs are after the leader's",
    "note of an error": "a node wrote a line of level error",
    "resigned to prospective": "the only voter leads again",
    "prospective to prospective": "who asks for pre-votes gave another one its vote",
    "append refused: TooManyPending": "a leader has too much that is not written yet",
    "append refused: IllegalEpoch": "a client knows an epoch that is not there",
}


class Coverage:
    """How often each situation was reached; `counts` has those that were."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def hit(self, situation: str) -> None:
        """Note that a situation was reached. Raises: KeyError if there is none of this name."""
        counts = self.counts
        if situation in counts:
            counts[situation] += 1
        elif situation in SITUATIONS or situation in RARE:
            counts[situation] = 1
        else:
            raise KeyError(situation)


def missing(counts: Mapping[str, int], least: int) -> list[str]:
    """The situations that were reached less often than this."""
    return [name for name in SITUATIONS if counts.get(name, 0) < least]
