"""The timeline of a quorum in print: for people and as JSON."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TextIO

from kraftwire.capture.framing.frames import Ending
from kraftwire.capture.framing.health import Health
from kraftwire.capture.recorded import TimeSpan
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileFinding, FileLine
from kraftwire.decode.sinks import ExchangeSink
from kraftwire.decode.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    clock_remark,
    duration_text,
    ids_text,
    listed,
    moment_cell,
    moment_text,
    paint,
    utc_text,
)
from kraftwire.inspect.stories.raft_json import story_to_json
from kraftwire.inspect.stories.text import row_lines
from kraftwire.inspect.tables import Table, wants_colour, width_of, write_table
from kraftwire.printable import printable, printable_lines
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.story.raft.clusters import Clusters
from kraftwire.story.raft.leaders import BEFORE_LOG
from kraftwire.story.raft.leaders import NOT_RECORDED as BEGIN_NOT_RECORDED
from kraftwire.story.raft.model import (
    LEADS,
    NOT_RECORDED,
    QUORUM_APIS,
    Highlight,
    LeaderOfEpoch,
    LogSummary,
    Majority,
    NodeId,
    RaftEvent,
    Replica,
    ReplicaFiles,
    Story,
    ranges_text,
)
from kraftwire.story.raft.repetitions import fold_repetitions
from kraftwire.story.raft.replica_files import is_of_metadata_log
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message

_STYLES = {
    "conflict": RED,
    "clock": RED,
    "contradiction": RED,
    "fenced": YELLOW,
    "leader": GREEN,
    "pre-vote": DIM,
    "not-recorded": YELLOW,
    "resign": YELLOW,
    "silence": RED,
    "stuck": RED,
    "truncation": RED,
    "voters-undone": RED,
}
_NOT_RECORDED = "not recorded"
_BARS = " ▁▂▃▄▅▆▇█"
_UNKNOWN_BAR = "·"
_LEADS_BAR = "L"
_NOT_RECORDED_BAR = "?"
_OTHER_BARS = {LEADS: _LEADS_BAR, NOT_RECORDED: _NOT_RECORDED_BAR}
# So many bars fit beside the other columns.
_BAR_COUNT_MAX = 25

# The largest number of highlights that are shown; the JSON form has all that are kept.
HIGHLIGHT_LINES_MAX = 24
# The largest number of observers that are shown; in a large cluster, hundreds of brokers are
# observers.
OBSERVER_ROWS_MAX = 20
# Records of one kind within this time share a line.
_TOGETHER_S = 0.5
_TOGETHER_MAX = 8
# Ranges of missing offsets that are listed.
_MISSING_MAX = 5
_HIGHLIGHT_INDENT = " " * 12


def write_story(
    story: Story, stream: TextIO | None = None, *, is_one_of_many: bool = False
) -> None:
    """Write all sections of a story.

    With `is_one_of_many`, the cluster's id comes first.
    """
    stream = stream or sys.stdout
    is_coloured = wants_colour(stream)

    def write(lines: Sequence[str]) -> None:
        stream.write(printable_lines([*lines, ""], is_painted=is_coloured))

    width = width_of(stream)
    write(_head(story, width, is_coloured=is_coloured, is_one_of_many=is_one_of_many))
    if story.events:
        write(timeline_lines(story, width, is_coloured=is_coloured))
    leaders = _leaders_table(story)
    if leaders.rows:
        write_table(leaders, stream, width, footer=_epoch_notes(story, width))
    replicas = _replicas_table(story)
    if replicas.rows:
        write_table(replicas, stream, width)
    if story.files:
        write(directory_lines(story, width, is_coloured=is_coloured))
    write(log_lines(story, width, is_coloured=is_coloured))


def _head(story: Story, width: int, *, is_coloured: bool, is_one_of_many: bool) -> list[str]:
    name = "Raft timeline"
    if is_one_of_many:
        name = f"{name} of cluster {story.cluster or 'unknown'}"
    if story.is_empty:
        return _titled(name, "nothing of a KRaft quorum was seen", width, is_coloured=is_coloured)
    span = duration_text(story.end - story.start)
    kinds: dict[str, list[NodeId]] = {}
    for node, kind in story.labels.items():
        kinds.setdefault(kind, []).append(node)
    parts = [f"{span} from {utc_text(round(story.start * 1000))}"]
    if story.start == story.end == 0:
        parts = ["no file here has a time"]
    for kind in sorted(kinds, reverse=True):
        nodes = kinds[kind]
        parts.append(f"{kind}{'s' * (len(nodes) > 1)} {ids_text(nodes)}")
    return _titled(name, "; ".join(parts), width, is_coloured=is_coloured)


def _titled(title: str, text: str, width: int, *, is_coloured: bool) -> list[str]:
    first, *more = _wrapped(f"{title}: {text}", width)
    if first.startswith(title):
        first = paint(title, BOLD, is_wanted=is_coloured) + first[len(title) :]
    return [first, *more]


def timeline_lines(story: Story, width: int, *, is_coloured: bool = False) -> list[str]:
    """Return a line for each event: seconds since the start, epoch, node, and a description.

    A long description continues on the next line.
    """
    events = fold_repetitions(story.events)
    rows = [_row(event, story) for event in events]
    styles = [_STYLES.get(event.kind, "") if is_coloured else "" for event in events]
    return row_lines(rows, styles, width=width, overflow=story.event_overflow)


def _row(event: RaftEvent, story: Story) -> tuple[str, str, str, str]:
    return (
        moment_text(event.time, story.start, story.end),
        "" if event.epoch is None else f"epoch {event.epoch}",
        "" if event.node is None else f"node {event.node}",
        event.text,
    )


def _leaders_table(story: Story) -> Table:
    head = ("epoch", "leader", "from", "to", "votes of", "offsets", "how it ended")
    title = f"Who led when{clock_remark(story.start, story.end)}"
    table = Table(title, head, right=(0, 1, 2, 3), lists=(2, 3, 6), optional=(5, 4))
    holes = iter([*story.not_recorded, (math.inf, math.inf)])
    hole = next(holes)
    for each in story.leaders:
        while hole[1] <= (each.time or 0.0):
            table.rows.append(_hole_row(hole, story))
            hole = next(holes)
        table.rows.append(_leader_row(each, story))
    while table.rows and hole[0] < math.inf:
        table.rows.append(_hole_row(hole, story))
        hole = next(holes)
    return table


def _hole_row(hole: TimeSpan, story: Story) -> tuple[str, ...]:
    start, end = (moment_cell(each, story.start, story.end) for each in hole)
    return "", _NOT_RECORDED, start, end, "", "", ""


def _leader_row(each: LeaderOfEpoch, story: Story) -> tuple[str, ...]:
    votes: Sequence[NodeId] = each.granting
    if not votes and each.votes:
        votes = [voter for voter, voted in each.votes.items() if voted == each.leader]
    if not votes:
        rounds = (r for r in story.rounds if r.epoch == each.epoch and not r.is_pre_vote)
        votes = next(([r.candidate, *r.granted] for r in rounds if r.candidate == each.leader), [])
    return (
        str(each.epoch),
        "unknown" if each.leader is None else str(each.leader),
        _begin_text(each, story),
        "" if each.end is None else moment_cell(each.end, story.start, story.end),
        ", ".join(map(str, sorted(votes, key=str))),
        _offsets_text(each),
        each.ending or ("" if each.time is None else "leads to the end"),
    )


def _begin_text(each: LeaderOfEpoch, story: Story) -> str:
    if each.time is None:
        return ""
    text = moment_cell(each.time, story.start, story.end)
    if each.not_before is not None:
        return f"between {moment_cell(each.not_before, story.start, story.end)} and {text}"
    return f"before {text}" if each.begins else text


def _offsets_text(each: LeaderOfEpoch) -> str:
    start, end = each.start_offset, each.end_offset
    if start is None:
        return "" if end is None else f"to {end - 1}"
    if end is None:
        return f"from {start}"
    return f"{start} to {end - 1}" if start < end else "none left"


def _epoch_notes(story: Story, width: int) -> list[str]:
    """Return lines about epochs of which the files at hand show only a part."""
    notes: dict[str, list[int]] = {}
    for each in story.leaders:
        remarks = []
        if each.begins == BEFORE_LOG:
            remarks.append("from before the log begins")
        elif each.begins == BEGIN_NOT_RECORDED:
            remarks.append("its beginning is not recorded")
        elif each.begins:
            remarks.append(f"begins {each.begins}")
        if each.leader is None:
            remarks.append("nothing here names its leader")
        if any(voted != each.leader for voted in each.votes.values()):
            remarks.append("votes in quorum-state: " + listed(
                f"{voter} for {voted}" for voter, voted in sorted(each.votes.items())
            ))
        if remarks or each.time is None:
            remarks.append(f"known from {listed(each.sources)}")
            notes.setdefault("; ".join(remarks), []).append(each.epoch)
    lines = []
    for text, epochs in notes.items():
        lines += _wrapped(f"epoch{'s' * (len(epochs) > 1)} {ids_text(epochs)}: {text}", width)
    return lines


def _replicas_table(story: Story) -> Table:
    head = (
        "replica", "kind", "fetches", "from", "to", "at offset", "largest lag", "longest pause",
        "lag over time",
    )
    right, optional = (0, 2, 3, 4, 5, 6, 7), (8, 1, 7, 2)
    shown, hidden = _shown_replicas(story)
    title = f"Replicas and their lag, in records{clock_remark(story.start, story.end)}"
    if story.not_recorded:
        title += f" ({_NOT_RECORDED_BAR}: not recorded)"
    if hidden:
        worst = max(each.lag_max for each in hidden)
        title += f" ({len(hidden):,} observers more, with a lag of at most {worst:,})"
    table = Table(title, head, right=right, lists=(3, 4), optional=optional)
    for each in shown:
        table.rows.append(
            (
                str(each.node),
                story.labels.get(each.node, ""),
                f"{each.fetch_count:,}",
                moment_cell(each.first_fetch, story.start, story.end, digits=1),
                moment_cell(each.last_fetch, story.start, story.end, digits=1),
                str(each.offset),
                f"{each.lag_max:,}",
                duration_text(each.gap_max),
                _spark(each),
            )
        )
    return table


def _shown_replicas(story: Story) -> tuple[list[Replica], list[Replica]]:
    """Return the replicas that get a row, and the others.

    All voters get one, and the observers that lagged most.
    """
    others = [each for each in story.replicas if "voter" not in story.labels.get(each.node, "")]
    others.sort(key=lambda each: each.lag_max, reverse=True)
    hidden = others[OBSERVER_ROWS_MAX:]
    unseen = {each.node for each in hidden}
    return [each for each in story.replicas if each.node not in unseen], hidden


def _spark(replica: Replica) -> str:
    """Draw a bar per span of time, on a square-root scale that makes small lags visible."""
    top, peak = len(_BARS) - 1, replica.lag_max
    bars = []
    size = -(-len(replica.lags) // _BAR_COUNT_MAX) or 1
    for start in range(0, len(replica.lags), size):
        lags = [lag for lag in replica.lags[start : start + size] if lag is not None]
        lag = max(lags, default=None)
        if lag is None or lag in _OTHER_BARS:
            bars.append(_UNKNOWN_BAR if lag is None else _OTHER_BARS[lag])
        else:
            height = (lag / peak) ** 0.5 * top if peak else 0
            bars.append(_BARS[min(top, max(int(lag > 0), round(height)))])
    return "".join(bars).rstrip(_UNKNOWN_BAR + " ")


def directory_lines(story: Story, width: int, *, is_coloured: bool = False) -> list[str]:
    """Return the lines about the log directories, and about what their files contradict."""
    several = len(story.files) > 1
    title = "Log directories, the furthest first" if several else "Log directory"
    lines = [paint(title, BOLD, is_wanted=is_coloured)]
    for each in story.files:
        name = f"{each.name} ({each.folder})" if each.node is not None else each.folder
        lines += _wrapped(name, width)
        lines += _wrapped("; ".join(_directory_facts(each)), width, "  ")
        for unread in each.unread:
            lines += _wrapped(unread.text, width, "  ")
        lines += _wrapped(each.advice, width, "  ")
    if several and story.majority is not None:
        lines += _wrapped(_majority_text(story.majority), width)
    for folder in story.unowned:
        text = f"the epochs of {folder}, which names no cluster, are shown here too"
        lines += _wrapped(text, width)
    for text in story.contradictions:
        lines += _wrapped(f"contradiction: {text}", width)
    return lines


def _majority_text(majority: Majority) -> str:
    text = f"of voters {ids_text(majority.voters)} "
    if majority.is_reached:
        return f"{text}the directories of {ids_text(majority.kept)} may be kept: a majority"
    kept = f"only that of {ids_text(majority.kept)}" if majority.kept else "none"
    return f"{text}{kept} may be kept: no majority; see kraftwire storage recover"


def _directory_facts(each: ReplicaFiles) -> Iterator[str]:
    if each.end is not None and each.start == each.end.offset:
        yield f"no record from offset {each.start} on"
    elif each.start is not None and each.end is not None:
        yield f"offsets {each.start} to {each.end.offset - 1}, last epoch {each.end.epoch}"
    elif each.end is not None:
        yield f"no log, snapshot {each.end}"
    else:
        yield "no record"
    if each.snapshots and (each.snapshots[-1] != each.end or each.start is not None):
        yield f"newest snapshot {each.snapshots[-1]}"
    if each.flushed is not None:
        yield f"flushed up to {each.flushed}"
    if each.is_voter is False:
        yield "not among the newest voters"
    if not each.election:
        yield "no quorum-state" if each.election is None else "quorum-state cannot be read"
        return
    leader, voted = each.election.get("leaderId", -1), each.election.get("votedId", -1)
    text = f"quorum-state: epoch {each.election.get('leaderEpoch')}"
    text += f", leader {leader}" if leader != -1 else ", no leader"
    yield f"{text}, voted for {voted}" if voted != -1 else f"{text}, no vote"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=f"{indent}  ",
        break_long_words=False, break_on_hyphens=False,
    )


def log_lines(story: Story, width: int, *, is_coloured: bool = False) -> list[str]:
    """Return the lines about the metadata log."""
    log = story.log
    title = "What the metadata log said"
    if log.first_offset is None or log.end_offset is None:
        return _titled(title, "no records of it were seen", width, is_coloured=is_coloured)
    span = f"offsets {log.first_offset} to {log.end_offset - 1} in {log.batches:,} batches"
    if log.missing:
        # First, so that the line that says where the log begins and ends has it.
        span = f"offsets {log.first_offset} to {log.end_offset - 1}; {_missing_text(log)}"
    if log.snapshot:
        title = f"What {log.snapshot} says"
        span = f"{sum(log.counts.values()):,} records in {log.batches:,} batches"
    lines = _titled(title, span, width, is_coloured=is_coloured)
    counts = [f"{count:,} {name.removesuffix('Record')}" for name, count in log.counts.items()]
    lines += textwrap.wrap(f"records: {', '.join(counts)}", width, subsequent_indent=" " * 9)
    lines += _highlights(story, width)
    for text in log.problems:
        lines += _wrapped(f"problem: {text}", width)
    return lines


def _missing_text(log: LogSummary) -> str:
    word = "missing" if log.is_of_files else "not recorded"
    text = f"{word}: {ranges_text(log.missing[:_MISSING_MAX])}"
    if len(log.missing) > _MISSING_MAX:
        text += f" and {len(log.missing) - _MISSING_MAX:,} more"
    return f"{text}; {log.batches:,} batches"


def _highlights(story: Story, line_width: int) -> Iterator[str]:
    """Yield lines of highlights; records of one kind and moment share a line."""
    groups: dict[tuple[str, int], list[Highlight]] = {}
    moment, number = float("-inf"), 0
    for each in story.log.highlights:
        if each.time - moment > _TOGETHER_S:
            moment, number = each.time, number + 1
        groups.setdefault((each.kind, number), []).append(each)
    shown = list(groups.values())[:HIGHLIGHT_LINES_MAX]
    width = max((len(str(group[0].offset)) for group in shown), default=0)
    noun = "record" if story.log.snapshot else "offset"
    for group in shown:
        first = group[0]
        when = moment_text(first.time, story.start, story.end)
        place = f"{when:>10}  {noun} {first.offset:>{width}}  {first.kind} "
        yield from textwrap.wrap(
            _group_text(group), line_width, initial_indent=place,
            subsequent_indent=_HIGHLIGHT_INDENT, break_long_words=False, break_on_hyphens=False,
        )
    hidden = story.log.hidden + len(story.log.highlights) - sum(map(len, shown))
    if hidden:
        yield f"and {hidden:,} more, --json has them"


def _group_text(group: list[Highlight]) -> str:
    subjects: dict[str, list[str]] = {}
    for each in group[:_TOGETHER_MAX]:
        subjects.setdefault(each.subject, []).append(each.text)
    parts = [
        f"{subject}: {', '.join(texts)}" if subject else ", ".join(texts)
        for subject, texts in subjects.items()
    ]
    if len(group) > _TOGETHER_MAX:
        parts.append(f"and {len(group) - _TOGETHER_MAX} more")
    return "; ".join(parts)


_METADATA = "metadata"
# State files that say something of epochs, or whose directory it is.
_STATES = (
    FileKind.META_PROPERTIES,
    FileKind.QUORUM_STATE,
    FileKind.LEADER_EPOCHS,
    FileKind.FLUSHED_OFFSET,
)


# Files that say something by being there.
_NOTED = (FileKind.QUORUM_STATE, FileKind.LOG, FileKind.SNAPSHOT)


class RaftWriter(ExchangeSink[Message]):
    """Writes the story of each quorum."""

    needs_order = True

    def __init__(
        self, stream: TextIO, *, show_secrets: bool = False, as_json: bool = False
    ) -> None:
        """Write to a stream, as text or as one JSON object for each quorum."""
        super().__init__()
        self._stream = stream
        self._as_json = as_json
        self._clusters = Clusters(show_secrets=show_secrets)
        # The file of the last batch of a metadata log, and the offset after it.
        self._read = "", 0

    @property
    def timeline(self) -> Timeline:
        """The timeline of the first cluster."""
        return self._clusters.first

    def begin_capture(self, health: Health) -> None:
        """Learn what a capture records."""
        self._clusters.recordings.add(health.recorded)

    def frame(self, frame: Frame) -> None:
        """Add a frame to the story; bodies of other APIs are not decoded."""
        if _has_ids(frame):
            super().frame(frame)

    def unwanted(self, frame: Frame, /) -> None:
        """Note that the sender of a frame is alive, though the frame is not wanted."""
        if _has_ids(frame):
            self._clusters.on_frame(frame)

    def keep_request(self, frame: Frame, /) -> Message | None:
        """Add a request to the story; return its body, which its response needs."""
        body = _body(frame)
        self._clusters.on_frame(frame, body)
        return body

    def take_response(self, request: Message | None, response: Frame, /) -> None:
        """Add a response to the story, together with the body of its request."""
        self._clusters.on_frame(response, _body(response), request)

    def take_unanswered(self, request: Message, _is_awaited: bool, /) -> None:
        """Do nothing: the request was added when it was sent."""

    def ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._clusters.on_ending(ending)

    def file_line(self, line: FileLine) -> None:
        """Add a batch of a metadata log or snapshot, or a state file."""
        file = str(line.json["file"])
        if line.kind in _STATES:
            self._clusters.on_state(line.kind, file, line.json["data"])
        if line.batch is None or line.family != _METADATA:
            return
        timeline = self._clusters.of_file(file)
        self._read = file, line.batch.last_offset + 1
        add = timeline.on_snapshot_batch if line.kind is FileKind.SNAPSHOT else timeline.on_batch
        add(file, line.batch, line.contradictions)

    def file_finding(self, finding: FileFinding, /) -> None:
        """Note bytes of a metadata log that were not understood."""
        if is_of_metadata_log(finding.file):
            file, end_offset = self._read
            end = end_offset if file == finding.file else None
            self._clusters.of_file(finding.file).files.on_finding(finding, end)

    def begin_file(self, file: str, kind: FileKind, /) -> None:
        """Note that a directory has a file, even if nothing in it can be read."""
        if kind in _NOTED and is_of_metadata_log(file):
            self._clusters.of_file(file).files.on_file(file, kind)

    def refused_directory(self, folder: str, reason: str, /) -> None:
        """Note why a node does not start on a log directory."""
        self._clusters.on_refusal(folder, reason)

    def finish(self) -> None:
        """Write the stories, each below its cluster's id if there are several."""
        stories = list(self._clusters.stories())
        for story in stories:
            if self._as_json:
                self._stream.write(printable(json.dumps(story_to_json(story))) + "\n")
            else:
                write_story(story, self._stream, is_one_of_many=len(stories) > 1)
        self._stream.flush()


def _has_ids(frame: Frame) -> bool:
    """Whether the API and the correlation id of a frame are known."""
    return frame.api_key is not None and frame.correlation_id is not None


def _body(decoded: Frame) -> Message | None:
    """Return the body of a frame, of an envelope the body inside; None if no story reads it."""
    found = decoded.inner if decoded.api_key == ApiKey.ENVELOPE else decoded
    return None if found is None or found.api_key not in QUORUM_APIS else found.body
