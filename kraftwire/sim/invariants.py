"""The invariants of every cluster, one sentence each, and the exception of the checkers."""

from __future__ import annotations

import struct
import traceback

from kraftwire.errors import InvariantError, KraftwireError

# Exceptions of bugs in a core or a log, which end a run like a violation.
BUGS = (
    KraftwireError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    StopIteration,
    TypeError,
    ValueError,
    struct.error,
)


class Violation(InvariantError):
    """A cluster violated an invariant.

    `invariant` is the name in the list of invariants; `evidence` has the facts that contradict
    each other, one a line: two batches, two votes, two leaders. A line names a node after the word
    `node`, `leader`, `candidate` or `voter`, so that the timeline can prefer these nodes.
    """

    def __init__(self, invariant: str, detail: str, *evidence: str) -> None:
        self.invariant = invariant
        self.detail = detail
        self.evidence = evidence
        super().__init__(invariant, detail, *evidence)

    def __str__(self) -> str:
        return f"{self.invariant}: {self.detail}"


def as_violation(error: Exception) -> Violation:
    """Return the violation that ended a run. A bug becomes one that names its place in
    kraftwire."""
    if isinstance(error, Violation):
        return error
    where = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{where.filename.rpartition('kraftwire/')[2]}:{where.lineno}"
    return Violation("BUG", f"{type(error).__name__} in {place}: {error}")


MEANINGS = {
    "S1": "an epoch has one leader, by role, by file and by every message that names one",
    "S2": "stored epochs never fall; nothing is said of an epoch that is not stored",
    "S3": "one vote in an epoch, over restarts too, durable before it is said",
    "S4": "no vote or pre-vote for an older log; a candidate's log is durable and what it says",
    "S5": "a leader has all that was committed in older epochs",
    "S6": "logs with the same batch at an offset agree below it",
    "S7": "what is committed never changes",
    "S8": "high watermarks never fall in a run, and stay within the log and what is committed",
    "S9": "what is committed is durable on a majority of the voter set in force",
    "S10": "a leader commits through a batch of its own epoch",
    "S11": "a log is cut by order of the present leader only, never below what is committed",
    "S12": "what a client was told stays; no start loses what was durable",
    "S13": "offsets without gaps, epochs that do not fall, one content for (epoch, offset)",
    "S14": "a snapshot is the sum of what is committed below it, and covers the log's start",
    "S15": "a state machine gets every committed batch once, in order, and leads only after that",
    "S16": "voter sets differ by one voter, one change at a time; the latest in the log counts",
    "S17": "only a majority of the voter set elects a leader, and nobody else counts",
    "S18": "only a voter campaigns, is asked for its vote, and leads",
    "S19": "a pre-vote changes nothing that is stored",
    "S20": "no answer names a leader of an epoch that the node has not stored",
    "S21": "appends and reads are linearizable: acknowledgements follow real time",
    "S22": "the same seed gives the same trace",
    "L1": "without trouble, all replicas soon follow one leader, whose epoch does not end",
    "L2": "without trouble, all replicas soon have what is committed",
    "L3": "no append stays without an answer",
    "L4": "a change of the voters ends: it is made or it is not",
    "L5": "a replica that is far away or empty catches up by a snapshot",
    "L6": "the loss of one leader costs a few epochs, and nothing else costs any",
    "L7": "an isolated leader resigns",
    "L8": "a follower's absence, or a cut between it and the leader alone, ends no epoch",
    "L9": "a node is never busy without end",
    "L10": "what a node remembers is bounded",
    "M1": "a partition's leader is one of its in-sync replicas",
    "M2": "a new leader had every committed record, or recovers where losing some is allowed",
    "M3": "the lists of a partition fit: no replica twice, all that is listed is a replica",
    "M4": "each change raises the partition epoch by one, each new leader the leader epoch",
    "M5": "a broker that is fenced, stopping, offline or not registered leads nothing",
    "M6": "a broker has one live epoch; epochs rise, and older ones are refused",
    "M7": "a broker is fenced once its session has expired, unfenced once it is caught up",
    "M8": "blocks of producer ids are disjoint",
    "M9": "every acknowledged change is in the image of every later controller",
    "M10": "no record is refused by the image, or contradicts those before it",
    "M11": "the indexes of the image say what its partitions and brokers say",
    "M12": "what a broker is told is what the image says",
    "M13": "a partition has a leader while a complete replica could lead it",
    "D11": "a log is refused only where bytes that were never flushed are damaged",
    "FLUSH": "files of the log are closed, cut or dropped only while no flush of them is under way",
    "REPLY": "every request gets one answer at most",
    "BUG": "no input makes the code raise an error that nobody handles",
}


def meaning(invariant: str) -> str:
    """Return the sentence for an invariant; empty if it is not in the list."""
    return MEANINGS.get(invariant, "")
