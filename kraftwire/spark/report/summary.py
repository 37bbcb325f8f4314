"""The verdict in one sentence, and five numbers."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kraftwire.spark.report.folder import Interval, ReportContext
from kraftwire.spark.report.formatting import clip, count, duration, plural, text
from kraftwire.spark.report.parts.anomalies import found_anomalies
from kraftwire.spark.report.parts.lag import largest_lag
from kraftwire.spark.report.parts.leaders import NOT_RECORDED, leaderships
from kraftwire.spark.report.parts.traffic import Traffic
from kraftwire.spark.run.derive import UNDERSTOOD

_MANY = 3
_NOT_MADE = "the run did not make the table"
# A 99th percentile of fewer exchanges means nothing.
_EXCHANGES_MIN = 100


def verdict(context: ReportContext, traffic: Traffic) -> str:
    """Return the verdict. HTML."""
    return _found(context, traffic) + _unfinished(context)


def _found(context: ReportContext, traffic: Traffic) -> str:
    found = found_anomalies(context)
    grave = [row for row in found if row["severity"] != "info"]
    is_searched = context.folder.is_made("anomalies")
    without = _without_leader(leaderships(context))
    if context.extent is None and not grave:
        # A quiet cluster is not the same as none.
        nothing = "Neither requests nor events of a quorum"
        return f"<b>{nothing}</b> are in {_covered(context, traffic)}."
    if not grave:
        missed = not_understood(context)
        if missed:
            what = f"Not everything was understood: {text(missed)}"
            return f"<b class='warning'>{what}</b>, in {_covered(context, traffic)}."
        quiet = "nothing stands out" if is_searched else "no rule looked for anomalies"
        quiet = f"for {duration(without)} nobody led" if without else quiet
        return f"<b>{_first_upper(quiet)}</b> in {_covered(context, traffic)}."
    rules = Counter(row["rule"] for row in grave)
    named = [
        f"{text(rule)}{f' ({number} times)' if number > 1 else ''}"
        for rule, number in rules.most_common(_MANY)
    ]
    others = f" and {len(rules) - _MANY} more" if len(rules) > _MANY else ""
    worst = grave[0]
    mark = text(worst["severity"])
    gap = f" Nobody led for {duration(without)} in all." if without else ""
    return (
        f'<b class="{mark}">{_anomalies(len(grave))}</b> in '
        f"{_covered(context, traffic)}: {', '.join(named)}{others}. First: "
        f"{text(clip(worst['detail'], 240))}.{gap}"
    )


def _anomalies(number: int) -> str:
    return "1 anomaly" if number == 1 else f"{number:,} anomalies"


def not_understood(context: ReportContext) -> str:
    """Return what was not decoded in the inputs; empty if all of it was."""
    bad = context.folder.count("bad_input")
    gaps = encrypted = 0
    for batch in context.folder.batches("connections", ["protocol", "gap_bytes"]):
        for row in batch.to_pylist():
            gaps += row["protocol"] == "kafka" and bool(row["gap_bytes"])
            encrypted += row["protocol"] == "tls"
    kinds = [row["kind"] for row in context.folder.rows("files", ["kind"])]
    unknown = sum(kind not in UNDERSTOOD for kind in kinds)
    parts = [
        *([f"{plural(bad, 'piece')} of input could not be decoded"] if bad else []),
        *([f"{plural(gaps, 'connection')} with bytes that were never captured"] if gaps else []),
        *([f"{plural(encrypted, 'encrypted connection')}"] if encrypted else []),
        *([f"{plural(unknown, 'file')} of no kind that is known"] if unknown else []),
    ]
    return ", ".join(parts)


def _unfinished(context: ReportContext) -> str:
    """Return a warning if the run was killed or is still running: tables are missing then."""
    if context.folder.manifest().get("is_derived", True):
        return ""
    return (
        ' <b class="warning">The run has not finished:</b> these tables do not cover all inputs. '
        "To continue a killed run, use kraftwire pipeline run --resume."
    )


def _covered(context: ReportContext, traffic: Traffic) -> str:
    files = plural(context.folder.count("files"), "file")
    if context.extent is None:
        is_whole = context.folder.interval == Interval()
        return files if is_whole else f"the chosen interval of {files}"
    lasted = duration(context.recorded_ns)
    if context.holes:
        lasted += f" that were recorded, of {duration(context.extent[1] - context.extent[0])},"
    return f"{lasted} with {plural(traffic.count, 'exchange')}"


def _first_upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _without_leader(found: list[dict[str, Any]]) -> int:
    return sum(row["end"] - row["start"] for row in found if row["node"] is None)


def _no_leader(context: ReportContext) -> str:
    return "none is known" if context.folder.count("raft_timeline") else "no quorum seen"


def _silent(context: ReportContext) -> int:
    """Return for how long logs show leaders that were silent and went on, in nanoseconds."""
    rows = context.folder.rows("raft_timeline", ["kind", "details"])
    found = [json.loads(row["details"]) for row in rows if row["kind"] == "silence"]
    seconds = sum(each["seconds"] or 0 for each in found if each.get("seenIn") == "log")
    return round(seconds * 1_000_000_000)


def _gap(context: ReportContext, found: list[dict[str, Any]], traffic: Traffic) -> str:
    without = _without_leader(found)
    if without:
        return f"{duration(without)} without one"
    silent = _silent(context)
    if silent:
        return f"{duration(silent)} of silence"
    if context.holes:
        return "at no time without one that was recorded"
    return "at no time without one" if traffic.count else "logs show no gaps"


def numbers(context: ReportContext, traffic: Traffic) -> list[tuple[str, str, str]]:
    """Return each number with its meaning and a remark. HTML."""
    found = leaderships(context)
    elected = [row for row in found if row["node"] not in (None, NOT_RECORDED)]
    severities = Counter(row["severity"] for row in found_anomalies(context))
    slowest = _slowest(traffic)
    lag = largest_lag(context)
    is_made = context.folder.is_made
    return [
        (count(traffic.count), "exchanges", _rate(context, traffic)),
        (
            count(len(elected)) if elected else "–", "leaders",
            _gap(context, found, traffic) if elected
            else _no_leader(context) if is_made("raft_timeline") else _NOT_MADE,
        ),
        (
            count(lag), "largest lag",
            "records behind a leader" if lag is not None
            else "no replica seen" if is_made("replica_lag") else _NOT_MADE,
        ),
        (slowest[0], "99 % of the slowest API", text(slowest[1])),
        (
            count(severities["error"] + severities["warning"]) if is_made("anomalies") else "–",
            "anomalies",
            f"{plural(severities['error'], 'error')}, {plural(severities['warning'], 'warning')}"
            if is_made("anomalies") else _NOT_MADE,
        ),
    ]  # fmt: skip


def _rate(context: ReportContext, traffic: Traffic) -> str:
    if not context.recorded_ns:
        return ""
    seconds = context.recorded_ns / 1e9
    rate = traffic.count / seconds
    return f"{rate:,.0f} a second" if rate >= 100 else f"{rate:.3g} a second"


def _slowest(traffic: Traffic) -> tuple[str, str]:
    merged = traffic.by_api()
    busy = {api: one for api, one in merged.items() if one.total >= _EXCHANGES_MIN}
    only = f", of APIs with {_EXCHANGES_MIN} exchanges" if 0 < len(busy) < len(merged) else ""
    busy = busy or merged
    if not busy:
        return "–", "no response seen"
    api = max(busy, key=lambda name: busy[name].quantile(0.99) or 0)
    return duration(busy[api].quantile(0.99)), f"{api}{only}"
