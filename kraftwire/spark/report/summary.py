"""The verdict in one sentence, and five numbers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kraftwire.spark.report.folder import Context, Interval
from kraftwire.spark.report.parts.anomalies import found_anomalies
from kraftwire.spark.report.parts.lag import largest_lag
from kraftwire.spark.report.parts.leaders import reigns
from kraftwire.spark.report.parts.traffic import Latencies, Traffic
from kraftwire.spark.report.words import clip, count, duration, plural, text

__all__ = ["numbers", "verdict"]

_MANY = 3


def verdict(context: Context, traffic: Traffic) -> str:
    """Return the verdict. HTML."""
    return _found(context, traffic) + _unfinished(context)


def _found(context: Context, traffic: Traffic) -> str:
    found = found_anomalies(context)
    grave = [row for row in found if row["severity"] != "info"]
    without = _without_leader(reigns(context))
    if context.extent is None and not grave:
        # A quiet cluster is not the same as none.
        nothing = "Neither requests nor events of a quorum"
        return f"<b>{nothing}</b> are in {_covered(context, traffic)}."
    if not grave:
        quiet = f"for {duration(without)} nobody led" if without else "nothing stands out"
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
        f'<b class="{mark}">{plural(len(grave), "finding")} to look at</b> in '
        f"{_covered(context, traffic)}: {', '.join(named)}{others}. First: "
        f"{text(clip(worst['detail'], 240))}.{gap}"
    )


def _unfinished(context: Context) -> str:
    """Return a warning if the run was killed or is still running: tables are missing then."""
    if context.folder.manifest().get("is_derived", True):
        return ""
    return (
        ' <b class="warning">The run has not finished:</b> these tables do not cover all inputs. '
        "To continue a killed run, use kraftwire pipeline run --resume."
    )


def _covered(context: Context, traffic: Traffic) -> str:
    files = plural(context.folder.count("files"), "file")
    if context.extent is None:
        is_whole = context.folder.interval == Interval()
        return files if is_whole else f"the chosen interval of {files}"
    lasted = duration(context.extent[1] - context.extent[0])
    return f"{lasted} with {plural(traffic.count, 'exchange')}"


def _first_upper(words: str) -> str:
    return words[:1].upper() + words[1:]


def _without_leader(found: list[dict[str, Any]]) -> int:
    return sum(row["end"] - row["start"] for row in found if row["node"] is None)


def _gap(found: list[dict[str, Any]], traffic: Traffic) -> str:
    if not traffic.count:
        return "logs show no gaps"
    without = _without_leader(found)
    return f"{duration(without)} without one" if without else "at no time without one"


def numbers(context: Context, traffic: Traffic) -> list[tuple[str, str, str]]:
    """Return each number with its meaning and a remark. HTML."""
    found = reigns(context)
    elected = [row for row in found if row["node"] is not None]
    severities = Counter(row["severity"] for row in found_anomalies(context))
    slowest = _slowest(traffic)
    lag = largest_lag(context)
    return [
        (count(traffic.count), "exchanges", _rate(context, traffic)),
        (
            count(len(elected)) if elected else "–", "leaders",
            _gap(found, traffic) if elected else "no quorum seen",
        ),
        (
            count(lag), "largest lag",
            "records behind a leader" if lag is not None else "no replica seen",
        ),
        (slowest[0], "99 % of the slowest API", text(slowest[1])),
        (
            count(severities["error"] + severities["warning"]), "findings",
            f"{plural(severities['error'], 'error')}, {plural(severities['warning'], 'warning')}",
        ),
    ]  # fmt: skip


def _rate(context: Context, traffic: Traffic) -> str:
    if context.extent is None or context.extent[1] == context.extent[0]:
        return ""
    seconds = (context.extent[1] - context.extent[0]) / 1e9
    rate = traffic.count / seconds
    return f"{rate:,.0f} a second" if rate >= 100 else f"{rate:.3g} a second"


def _slowest(traffic: Traffic) -> tuple[str, str]:
    merged: dict[str, Latencies] = {}
    for (api, _), one in traffic.latency.items():
        into = merged.setdefault(api, Latencies())
        into.counts.update(one.counts)
        into.highest = max(into.highest, one.highest)
    # A 99th percentile of a few exchanges means nothing.
    busy = {api: one for api, one in merged.items() if one.total >= 100} or merged
    if not busy:
        return "–", "no response seen"
    api = max(busy, key=lambda name: busy[name].quantile(0.99) or 0)
    return duration(busy[api].quantile(0.99)), api
