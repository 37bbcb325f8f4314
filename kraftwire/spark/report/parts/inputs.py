"""The inputs, what could not be read in them, and whether every byte is accounted for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kraftwire.spark.report.folder import ReportContext, ReportPart
from kraftwire.spark.report.formatting import (
    clip,
    count,
    evidence,
    link,
    no_rows,
    plural,
    size,
    table,
    text,
)
from kraftwire.spark.run.manifest import DECODER_VERSION
from kraftwire.spark.tables import TABLES

_ROWS_MAX = 40
_SUMS = (
    "kafka_bytes", "tls_bytes", "other_bytes", "duplicate_bytes", "header_bytes", "bad_bytes",
)  # fmt: skip


def bad_part(context: ReportContext) -> ReportPart:
    """Bad input by kind of problem, and the byte counts."""
    part = ReportPart("bad", "Input that could not be decoded")
    part.html = _bad(context, part) + _sums(context, part)
    return part


def _bad(context: ReportContext, part: ReportPart) -> str:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    columns = ["file", "position", "length", "stage", "id", "detail"]
    for batch in context.folder.batches("bad_input", columns):
        for row in batch.to_pylist():
            key = row["stage"] or "", row["id"] or ""
            one = found.setdefault(key, {**row, "count": 0, "bytes": 0})
            one["count"] += 1
            one["bytes"] += row["length"] or 0
    if not found:
        return no_rows(context.folder, "bad_input", "Everything could be decoded.")
    part.data["bad_input"] = context.folder.table("bad_input", columns)
    rows = sorted(found.values(), key=lambda row: -row["count"])
    lines = [
        (
            text(row["stage"]),
            text(row["id"]),
            count(row["count"]),
            size(row["bytes"]),
            text(clip(row["detail"], 120)),
            evidence(row["file"], row["position"]),
        )
        for row in rows[:_ROWS_MAX]
    ]
    head = ("stage", "what", "times", "bytes", "the first of them", "where")
    body = table(head, lines, right=(2, 3), rest=len(rows) - _ROWS_MAX)
    return f"{body}<p class='note'>{link('bad_input')}</p>"


def _sums(context: ReportContext, part: ReportPart) -> str:
    rows = [row for row in context.folder.rows("files") if row["size"] is not None]
    if not rows:
        return no_rows(context.folder, "files", "The sums of bytes are not known.")
    part.data["conservation"] = context.folder.table("files")
    rows.sort(key=lambda row: (_gap(row) == 0, -row["size"]))
    lines = [
        (
            evidence(row["file"], None), size(row["size"]), *(size(row[name]) for name in _SUMS),
            '<b class="good">yes</b>' if _gap(row) == 0
            else f'<b class="error">{_gap(row):+,} B</b>',
        )
        for row in rows[:_ROWS_MAX]
    ]  # fmt: skip
    wrong = sum(_gap(row) != 0 for row in rows)
    said = (
        "The sums of every file equal its size."
        if not wrong
        else f"In {plural(wrong, 'file')} the sums differ from the size."
    )
    said += _copies(rows)
    names = (name.removesuffix("_bytes") for name in _SUMS)
    body = table(
        ("file", "size", *names, "equal"), lines, right=range(1, 8), rest=len(rows) - _ROWS_MAX
    )
    note = "Each byte of a file counts once: in Kafka's frames, in TLS, or as what its column says."
    return (
        f"<h3>Bytes of each file</h3><p>{note} {said}</p>{body}"
        f"<p class='note'>{link('conservation')}</p>"
    )


def _copies(rows: Iterable[dict[str, Any]]) -> str:
    """Say what was captured more than once and counts once, if anything was."""
    copies = {
        name: sum(row[name] or 0 for row in rows)
        for name in ("copied_packets", "translated_connections")
    }
    parts = []
    if copies["copied_packets"]:
        parts.append(f"{plural(copies['copied_packets'], 'packet')} came again in other wrappings")
    if copies["translated_connections"]:
        number = plural(copies["translated_connections"], "connection")
        parts.append(f"{number} came again under a translated address")
    return f" Each counts once: {', '.join(parts)}." if parts else ""


def _gap(row: dict[str, Any]) -> int:
    """Return the bytes that are in no sum."""
    return int(row["size"] - sum(row[name] or 0 for name in _SUMS))


def inputs_part(context: ReportContext) -> ReportPart:
    """Files by kind, rows of tables, tags of the run."""
    part = ReportPart("inputs", "What was read")
    files = context.folder.rows("files", ["file", "size", "kind"])
    kinds: dict[str, list[int]] = {}
    for row in files:
        kinds.setdefault(row["kind"] or "unknown", []).append(row["size"] or 0)
    lines = [
        (text(kind), count(len(sizes)), size(sum(sizes)) if any(sizes) else "–")
        for kind, sizes in sorted(kinds.items())
    ]
    html = table(("kind", "files", "size"), lines, right=(1, 2)) if lines else (
        '<p class="none">No file is named.</p>'
    )  # fmt: skip
    manifest = context.folder.manifest()
    made_by = manifest.get("decoder", DECODER_VERSION)
    if made_by != DECODER_VERSION:
        html += (
            f"<p>The tables are of version {text(made_by)}, the report of {DECODER_VERSION}: what "
            "only one of them knows is missing here.</p>"
        )
    tags = manifest.get("tags") or {}
    if tags:
        said = ", ".join(f"{text(key)}={text(value)}" for key, value in sorted(tags.items()))
        html += f"<p>Tags: {said}</p>"
    counts = [(name, context.folder.count(name), TABLES[name].about) for name in TABLES]
    body = table(
        ("table", "rows", "a row is"),
        [(text(name), count(number), text(about)) for name, number, about in counts if number],
        right=(1,),
    )
    part.html = f"{html}<details><summary>Tables</summary>{body}</details>"
    return part
