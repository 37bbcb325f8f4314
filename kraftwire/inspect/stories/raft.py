"""The timeline of a quorum in print: for people and as JSON."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from kraftwire.capture.framing.frames import Ending, Frame
from kraftwire.decode.body.frame import DecodedFrame
from kraftwire.decode.exchange.paired import Paired
from kraftwire.decode.files.kinds import FileKind
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.text import (
    BOLD,
    DIM,
    GREEN,
    RED,
    YELLOW,
    count_text,
    duration_text,
    ids_text,
    moment_text,
    paint,
    utc_text,
)
from kraftwire.inspect.tables import Table, wants_colour, write_table
from kraftwire.messages.envelope_request import EnvelopeRequest
from kraftwire.messages.envelope_response import EnvelopeResponse
from kraftwire.printable import printable, printable_lines
from kraftwire.story.observed_exchange import Api, request_inside, response_inside
from kraftwire.story.raft.clusters import Clusters
from kraftwire.story.raft.model import (
    LEADS,
    QUORUM_APIS,
    Event,
    Highlight,
    LeaderOfEpoch,
    LogSummary,
    NodeId,
    ObservedFrame,
    Replica,
    Story,
    VoterSet,
)
from kraftwire.story.raft.repetitions import fold_repetitions
from kraftwire.story.raft.timeline import Timeline
from kraftwire.wire.message import Message

_STYLES = {
    "conflict": RED,
    "fenced": YELLOW,
    "leader": GREEN,
    "pre-vote": DIM,
    "resign": YELLOW,
    "silence": RED,
    "stuck": RED,
    "truncation": RED,
    "voters-undone": RED,
}
_BARS = " ▁▂▃▄▅▆▇█"
_UNKNOWN_BAR = "·"
_LEADS_BAR = "L"

# The largest number of highlights that are shown; the JSON form has all that are kept.
HIGHLIGHT_LINES_MAX = 24
# The largest number of observers that are shown; in a large cluster, hundreds of brokers are
# observers.
OBSERVER_ROWS_MAX = 20
# Records of one kind within this time share a line.
_TOGETHER_S = 0.5
_TOGETHER_MAX = 8
_WRAP = 110


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

    write(_head(story, is_coloured=is_coloured, is_one_of_many=is_one_of_many))
    if story.events:
        write(timeline_lines(story, is_coloured=is_coloured))
    for table in (_leaders_table(story), _replicas_table(story)):
        if table.rows:
            write_table(table, stream)
            stream.write("\n")
    write(log_lines(story, is_coloured=is_coloured))


def _head(story: Story, *, is_coloured: bool, is_one_of_many: bool) -> list[str]:
    name = "Raft timeline"
    if is_one_of_many:
        name = f"{name} of cluster {story.cluster or 'unknown'}"
    title = paint(name, BOLD, is_wanted=is_coloured)
    if story.is_empty:
        return [f"{title}: nothing of a KRaft quorum was seen"]
    span = duration_text(story.end - story.start)
    kinds: dict[str, list[NodeId]] = {}
    for node, kind in story.labels.items():
        kinds.setdefault(kind, []).append(node)
    parts = [f"{span} from {utc_text(round(story.start * 1000))}"]
    for kind in sorted(kinds, reverse=True):
        nodes = kinds[kind]
        parts.append(f"{kind}{'s' * (len(nodes) > 1)} {ids_text(nodes)}")
    return [f"{title}: {'; '.join(parts)}"]


def timeline_lines(story: Story, *, is_coloured: bool = False) -> list[str]:
    """Return a line for each event: seconds since the start, epoch, node, and a description."""
    events = fold_repetitions(story.events)
    rows = [tuple(map(printable, _row(event, story))) for event in events]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for event, (time, epoch, node, text) in zip(events, rows, strict=True):
        place = f"{time.rjust(widths[0])}  {epoch.ljust(widths[1])}  {node.ljust(widths[2])}"
        style = _STYLES.get(event.kind)
        lines.append(f"{place}  {paint(text, style or '', is_wanted=is_coloured and bool(style))}")
    if story.event_overflow:
        lines.append(f"and {count_text(story.event_overflow, 'more event')}")
    return lines


def _row(event: Event, story: Story) -> tuple[str, str, str, str]:
    return (
        moment_text(event.time, story.start, story.end),
        "" if event.epoch is None else f"epoch {event.epoch}",
        "" if event.node is None else f"node {event.node}",
        event.text,
    )


def _leaders_table(story: Story) -> Table:
    head = ("epoch", "leader", "from", "to", "votes of", "log from offset", "how it ended")
    table = Table("Who led when", head, right=(0, 1, 2, 3, 5))
    for each in story.leaders:
        table.rows.append(_leader_row(each, story))
    return table


def _leader_row(each: LeaderOfEpoch, story: Story) -> tuple[str, ...]:
    votes: Sequence[NodeId] = each.granting
    if not votes:
        rounds = (r for r in story.rounds if r.epoch == each.epoch and not r.is_pre_vote)
        votes = next(([r.candidate, *r.granted] for r in rounds if r.candidate == each.leader), [])
    return (
        str(each.epoch),
        str(each.leader),
        moment_text(each.time, story.start, story.end),
        "" if each.end is None else moment_text(each.end, story.start, story.end),
        ", ".join(map(str, sorted(votes, key=str))),
        "" if each.start_offset is None else str(each.start_offset),
        each.ending or "leads to the end",
    )


def _replicas_table(story: Story) -> Table:
    head = (
        "replica", "kind", "fetches", "from", "to", "at offset", "largest lag", "longest pause",
        "lag over time",
    )
    right, optional = (0, 2, 3, 4, 5, 6, 7), (2, 5, 3, 7)
    shown, hidden = _shown_replicas(story)
    title = "Replicas and their lag, in records"
    if hidden:
        worst = max(each.lag_max for each in hidden)
        title += f" ({len(hidden):,} observers more, with a lag of at most {worst:,})"
    table = Table(title, head, right=right, optional=optional)
    for each in shown:
        table.rows.append(
            (
                str(each.node),
                story.labels.get(each.node, ""),
                f"{each.fetch_count:,}",
                moment_text(each.first_fetch, story.start, story.end, digits=1),
                moment_text(each.last_fetch, story.start, story.end, digits=1),
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
    for lag in replica.lags:
        if lag is None or lag == LEADS:
            bars.append(_UNKNOWN_BAR if lag is None else _LEADS_BAR)
        else:
            height = (lag / peak) ** 0.5 * top if peak else 0
            bars.append(_BARS[min(top, max(int(lag > 0), round(height)))])
    return "".join(bars).rstrip(_UNKNOWN_BAR + " ")


def log_lines(story: Story, *, is_coloured: bool = False) -> list[str]:
    """Return the lines about the metadata log."""
    log = story.log
    title = paint("What the metadata log said", BOLD, is_wanted=is_coloured)
    if log.first_offset is None or log.end_offset is None:
        return [f"{title}: no records of it were seen"]
    span = f"offsets {log.first_offset} to {log.end_offset - 1} in {log.batches:,} batches"
    lines = [f"{title}: {span}"]
    counts = [f"{count:,} {name.removesuffix('Record')}" for name, count in log.counts.items()]
    lines += textwrap.wrap(f"records: {', '.join(counts)}", _WRAP, subsequent_indent=" " * 9)
    lines += _highlights(story)
    lines += [f"problem: {text}" for text in log.problems]
    return lines


def _highlights(story: Story) -> Iterator[str]:
    """Yield lines of highlights; records of one kind and moment share a line."""
    groups: dict[tuple[str, int], list[Highlight]] = {}
    moment, number = float("-inf"), 0
    for each in story.log.highlights:
        if each.time - moment > _TOGETHER_S:
            moment, number = each.time, number + 1
        groups.setdefault((each.kind, number), []).append(each)
    shown = list(groups.values())[:HIGHLIGHT_LINES_MAX]
    width = max((len(str(group[0].offset)) for group in shown), default=0)
    for group in shown:
        first = group[0]
        when = moment_text(first.time, story.start, story.end)
        place = f"{when:>10}  offset {first.offset:>{width}}  {first.kind} "
        yield from textwrap.wrap(
            _group_text(group), _WRAP, initial_indent=place, subsequent_indent=" " * len(place),
            break_long_words=False, break_on_hyphens=False,
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


def story_to_json(story: Story) -> dict[str, Any]:
    """Return the story as a JSON object."""
    return {
        "cluster": story.cluster,
        "start": story.start,
        "end": story.end,
        "nodes": [{"node": node, "kind": kind} for node, kind in story.labels.items()],
        "events": [_event(each) for each in fold_repetitions(story.events)],
        "leaders": [_leader(each) for each in story.leaders],
        "replicas": [_replica(each) for each in story.replicas],
        "voterSets": [_voter_set(each) for each in story.voters],
        "log": _log(story.log),
    }


def _voter_set(each: VoterSet) -> dict[str, Any]:
    return {
        "time": each.time,
        "offset": each.offset,
        "voters": sorted(each.voters),
        "directories": {str(node): id or None for node, id in sorted(each.directories.items())},
        "committed": each.committed,
        "isUndone": each.is_undone,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "time": event.time,
        "event": event.kind,
        "epoch": event.epoch,
        "node": event.node,
        "text": event.text,
        **event.details,
    }


def _leader(each: LeaderOfEpoch) -> dict[str, Any]:
    return {
        "epoch": each.epoch,
        "leader": each.leader,
        "from": each.time,
        "to": each.end,
        "seenIn": each.seen_in,
        "startOffset": each.start_offset,
        "voters": each.voters,
        "grantingVoters": each.granting,
        "resigned": each.resigned,
        "preferredSuccessors": each.preferred,
        "ending": each.ending or None,
        "firstHighWatermark": each.first_high_watermark,
        "highWatermark": each.high_watermark,
    }


def _replica(each: Replica) -> dict[str, Any]:
    return {
        "replica": each.node,
        "firstFetch": each.first_fetch,
        "lastFetch": each.last_fetch,
        "fetches": each.fetch_count,
        "offset": each.offset,
        "largestLag": each.lag_max,
        "longestPauseMs": each.gap_max * 1000,
        "lags": ["leads" if lag == LEADS else lag for lag in each.lags],
    }


def _log(log: LogSummary) -> dict[str, Any]:
    return {
        "firstOffset": log.first_offset,
        "endOffset": log.end_offset,
        "batches": log.batches,
        "records": log.counts,
        "highlights": [
            {
                "offset": each.offset,
                "time": each.time,
                "kind": each.kind,
                "subject": each.subject or None,
                "text": each.text,
            }
            for each in log.highlights
        ],
        "hidden": log.hidden,
        "problems": log.problems,
    }


_METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class _KeptRequest:
    """A request that awaits its response; `api` is the API of the request in an envelope."""

    body: Message
    time: float
    api: Api | None


class RaftWriter(Paired[_KeptRequest]):
    """Writes the story of each quorum as text."""

    needs_order = True

    def __init__(self, stream: TextIO, *, show_secrets: bool = False) -> None:
        """Write to a stream."""
        super().__init__()
        self._stream = stream
        self._clusters = Clusters(show_secrets=show_secrets)

    @property
    def timeline(self) -> Timeline:
        """The timeline of the first cluster."""
        return self._clusters.first

    def frame(self, decoded: DecodedFrame) -> None:
        """Add a frame to the story; bodies of other APIs are not decoded."""
        frame = decoded.frame
        if frame.api_key is not None and frame.correlation_id is not None:
            body = decoded.body if frame.api_key in QUORUM_APIS else None
            self.take(frame, body, decoded)

    def unwanted(self, decoded: DecodedFrame, /) -> None:
        """Note that the sender of a frame is alive, though the frame is not wanted."""
        frame = decoded.frame
        if frame.api_key is not None and frame.correlation_id is not None:
            self._clusters.on_frame(_observed_frame(frame, None))

    def keep_request(
        self, frame: Frame, body: Message | None, _decoded: DecodedFrame | None, /
    ) -> _KeptRequest | None:
        """Add a request to the story; return what its response needs of it."""
        observed = _observed_frame(frame, body)
        api = self._unwrap(observed)
        self._clusters.on_frame(observed)
        return None if observed.body is None else _KeptRequest(observed.body, frame.time, api)

    def take_response(
        self,
        kept: _KeptRequest | None,
        frame: Frame,
        body: Message | None,
        _decoded: DecodedFrame | None,
        /,
    ) -> None:
        """Add a response to the story, together with its request."""
        observed = _observed_frame(frame, body)
        self._unwrap(observed)
        if kept is not None:
            observed.request, observed.request_time = kept.body, kept.time
            if isinstance(body, EnvelopeResponse) and kept.api is not None:
                observed.body = response_inside(body, kept.api)
        self._clusters.on_frame(observed)

    def take_unanswered(self, kept: _KeptRequest, _is_awaited: bool, /) -> None:
        """Do nothing: the request was added when it was sent."""

    def _unwrap(self, observed: ObservedFrame) -> Api | None:
        """Replace an envelope's body by the request inside; return the API of that request."""
        observed.is_forwarded = isinstance(observed.body, EnvelopeRequest | EnvelopeResponse)
        if not isinstance(observed.body, EnvelopeRequest):
            return None
        inside = request_inside(observed.body, QUORUM_APIS)
        observed.body = None if inside is None else inside.body
        return None if inside is None else inside.api

    def ending(self, ending: Ending) -> None:
        """Add the end of a connection."""
        self._clusters.on_ending(ending)

    def file_line(self, line: FileLine) -> None:
        """Add a batch of a metadata log or snapshot, or the owner of a log directory."""
        if line.kind is FileKind.META_PROPERTIES:
            data = line.json["data"]
            node = str(data.get("node.id", ""))
            id = int(node) if node.isascii() and node.isdigit() else None
            cluster = str(data.get("cluster.id") or "")
            self._clusters.on_directory(str(line.json["file"]), cluster, id)
        if line.batch is None or line.family != _METADATA:
            return
        file = str(line.json["file"])
        timeline = self._clusters.of_file(file)
        if line.kind is FileKind.SNAPSHOT:
            timeline.on_snapshot_batch(file, line.batch)
        else:
            timeline.on_batch(line.batch)

    def finish(self) -> None:
        """Write the stories, each below its cluster's id if there are several."""
        stories = list(self._clusters.stories())
        for story in stories:
            write_story(story, self._stream, is_one_of_many=len(stories) > 1)
        self._stream.flush()


def _observed_frame(frame: Frame, body: Message | None) -> ObservedFrame:
    return ObservedFrame(
        frame.time, frame.connection, frame.api_key or 0, frame.is_request, body,
        frame.correlation_id or 0,
    )


class RaftJsonWriter(RaftWriter):
    """Writes the story of each quorum as one JSON object on a line."""

    def finish(self) -> None:
        """Write one JSON object for each story."""
        for story in self._clusters.stories():
            self._stream.write(printable(json.dumps(story_to_json(story))) + "\n")
        self._stream.flush()
