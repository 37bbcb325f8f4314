"""The totals of a run, which set its exit code, and their summary for standard error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kraftwire.capture.framing.health import Health, TlsConnection
from kraftwire.decode.body.findings import LOSSES
from kraftwire.decode.files.folders import UnservedFolders
from kraftwire.decode.files.report import ExitCode, FileReport

# So many encrypted connections of a capture are named for each reason.
_TLS_NAMED_MAX = 3

_KEYLOG_HINT = (
    "--keylog FILE decodes encrypted connections, with the secrets that a client or server writes "
    "for SSLKEYLOGFILE"
)

# Attribute of a capture's health -> its noun; zeros are not shown.
_HEALTH = (
    ("midstream_connections", "connections open before the capture began"),
    ("relieved_connections", "buffers dropped to save memory"),
    ("other_connections", "connections of other protocols"),
    ("partial_frames", "frames with missing bytes"),
    ("early_responses", "responses to requests from before the capture"),
    ("unmatched_responses", "responses without request"),
    ("unanswered_requests", "requests without response"),
    ("lost_responses", "responses not captured"),
    ("gaps", "gaps"),
    ("missing_bytes", "bytes missing"),
    ("skipped_bytes", "bytes skipped"),
    ("resyncs", "resynchronizations"),
    ("truncated_packets", "truncated packets"),
    ("copies", "copies of packets in other wrappings"),
    ("translated_connections", "connections seen again under a translated address"),
    ("retransmissions", "retransmissions"),
    ("overlaps", "overlaps"),
    ("conflicts", "retransmissions with different content"),
    ("out_of_order", "packets out of order"),
    ("sorted_packets", "packets sorted by time"),
    ("fragments", "IP fragments"),
    ("skipped_packets", "packets of other protocols"),
)


@dataclass(slots=True)
class Totals:
    """The totals of a run.

    `frames` counts all frames, `shown` those that passed the filter, and `findings` is of
    these by id; `captures` has the health of each capture by its name; `lines_shown` counts the
    lines of files that passed, of all those in `files`, and
    `passed_over` files of other topics and partitions than the filter's, which were not read.
    `unserved` counts the folders of partitions that were left out; `refusals` say why a node
    would not start on a log directory. If it `is_ended_early`, enough was shown before the inputs
    were read to their ends.
    """

    frames: int = 0
    shown: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    captures: dict[str, Health] = field(default_factory=dict)
    files: FileReport = field(default_factory=FileReport)
    lines_shown: int = 0
    passed_over: int = 0
    unserved: UnservedFolders = field(default_factory=UnservedFolders)
    refusals: list[str] = field(default_factory=list)
    unreadable: int = 0
    is_ended_early: bool = False

    def add(self, other: Totals) -> None:
        """Add the totals of another run of captures."""
        self.frames += other.frames
        self.shown += other.shown
        self.findings.update(other.findings)
        self.captures |= other.captures
        self.unreadable += other.unreadable

    @property
    def has_shown(self) -> bool:
        """Whether anything passed the filters."""
        return bool(self.shown or self.lines_shown)

    @property
    def has_more(self) -> bool:
        """Whether anything did not pass the filters."""
        hidden_lines = self.files.line_count > self.lines_shown
        return self.frames > self.shown or hidden_lines or bool(self.passed_over)

    @property
    def has_losses(self) -> bool:
        """Whether bytes of Kafka's stayed undecoded."""
        return (
            bool(self.unreadable or self.files.loss_count)
            or not LOSSES.isdisjoint(self.findings)
            or any(health.is_undecoded or health.is_damaged for health in self.captures.values())
        )

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the run."""
        is_known_file = self.files.exit_code is not ExitCode.NOTHING
        is_known_file |= bool(self.passed_over)
        if not self.frames and not self.files.line_count and not is_known_file:
            return ExitCode.NOTHING
        return ExitCode.PARTIAL if self.has_losses else ExitCode.CLEAN


def summary(totals: Totals) -> Iterator[str]:
    """Yield the lines of a summary."""
    if totals.captures or totals.frames:
        shown = "" if totals.shown == totals.frames else f", {totals.shown:,} of them shown"
        kinds = ", each a request or a response" if totals.frames else ""
        yield f"{_count(totals.frames, 'frame')}{shown}{kinds}{_found(totals.findings)}"
    # The totals of a capture that was not read to its end say nothing.
    captures = {} if totals.is_ended_early else totals.captures
    for name, health in captures.items():
        yield from _capture(name, health)
    if any(_is_locked(tls) for health in captures.values() for tls in health.tls):
        yield _KEYLOG_HINT
    files = totals.files
    if files.files or totals.passed_over:
        count = _count(sum(files.files.values()), "file")
        lines = _count(files.line_count, "line")
        if totals.lines_shown != files.line_count:
            lines += f", {totals.lines_shown:,} of them shown"
        if totals.passed_over:
            lines += f", {_count(totals.passed_over, 'file')} of other partitions skipped"
        yield f"{count}, {lines}{_found(files.findings)}"
    yield from totals.refusals
    if totals.unserved:
        yield str(totals.unserved)
    if totals.is_ended_early:
        yield "reading ended there, by -c"


def _capture(name: str, health: Health) -> Iterator[str]:
    parts = [
        _count(health.packets, "packet"),
        _count(health.kafka_connections, "connection") + " of Kafka",
    ]
    for attribute, noun in _HEALTH:
        if number := getattr(health, attribute):
            parts.append(f"{noun} {number:,}")
    for wrapping, number in health.opened.items():
        parts.append(f"packets inside {wrapping} {number:,}")
    yield f"{name}: {', '.join(parts)}"
    for text in health.unopened_texts():
        yield f"{name}: {text}"
    if health.disorder:
        yield f"{name}: {health.disorder}"
    if health.problem:
        yield f"{name}: {health.problem}"
    for text in _encrypted(health.tls):
        yield f"{name}: {text}"
    if health.tls_connections > len(health.tls):
        yield f"{name}: {health.tls_connections:,} TLS connections in all"


def _encrypted(connections: Iterable[TlsConnection]) -> Iterator[str]:
    """Name the first few connections for each reason why they are not decoded, count the others."""
    by_reason: dict[tuple[str, bool], list[TlsConnection]] = {}
    for tls in connections:
        by_reason.setdefault((tls.reason, bool(tls.damaged_records)), []).append(tls)
    for alike in by_reason.values():
        yield from map(_tls, alike[:_TLS_NAMED_MAX])
        more = alike[_TLS_NAMED_MAX:]
        if more:
            count = sum(tls.client_bytes + tls.server_bytes for tls in more)
            yield f"and {len(more):,} more, of {count:,} bytes"


def _is_locked(tls: TlsConnection) -> bool:
    """Whether nobody tried to decrypt a connection, as there were no secrets at all."""
    return not tls.reason and not tls.damaged_records


def _tls(tls: TlsConnection) -> str:
    version = tls.version or "TLS of an unknown version"
    server = f" to {tls.server_name}" if tls.server_name else ""
    server += f", client certificate {tls.certificate_name}" if tls.certificate_name else ""
    if tls.damaged_records and not tls.reason:
        records = _count(tls.damaged_records, "record")
        return f"{tls.connection} is encrypted ({version}{server}): {records} could not be opened"
    return (
        f"{tls.connection} is encrypted ({version}{server}): {tls.client_bytes:,} bytes from the "
        f"client and {tls.server_bytes:,} from the server are not decoded"
        + (f", as {tls.reason}" if tls.reason else "")
    )


def _found(findings: Counter[str]) -> str:
    """Describe the findings by id, most frequent first, then by name."""
    by_count = sorted(findings.items(), key=lambda each: (-each[1], each[0]))
    listed = ", ".join(f"{id} {count:,}" for id, count in by_count)
    return f"; findings: {listed}" if listed else "; no findings"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
