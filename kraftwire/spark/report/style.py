"""Style sheet and script of the page. Neither uses the network."""

from __future__ import annotations

STYLE = """
:root { --paper: #fff; --ink: #1c1f23; --dim: #5f6670; --rule: #dde1e6; --card: #f5f7f9;
  --error: #b3261e; --warning: #8a5a00; --info: #3d5a80; --good: #1b6e3c; --link: #0a5cad; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171a; --ink: #e6e8ea; --dim: #a0a8b1; --rule: #33393f; --card: #1d2226;
    --error: #ff8a80; --warning: #f0b452; --info: #9cc0ea; --good: #7ccf97; --link: #7db8f5; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 0 20px 40px; max-width: 1240px; background: var(--paper);
  color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
header { padding-top: 24px; }
h1 { font-size: 26px; margin: 0; line-height: 1.2; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 40px 0 10px; padding-top: 12px; border-top: 1px solid var(--rule); }
h3 { font-size: 16px; margin: 24px 0 6px; }
a { color: var(--link); }
.when, .note, figcaption span, footer { color: var(--dim); font-size: 13px; }
.when { margin: 4px 0 16px; }
.verdict { font-size: 18px; line-height: 1.45; max-width: 62em; margin: 0 0 18px;
  overflow-wrap: anywhere; }
.error { color: var(--error); } .warning { color: var(--warning); }
.info { color: var(--info); } .good { color: var(--good); }
.none { color: var(--dim); }
.numbers { display: grid; grid-template-columns: repeat(5, 1fr); gap: 10px; margin: 0 0 16px; }
.numbers div { background: var(--card); border-radius: 8px; padding: 10px 12px; min-width: 0; }
.numbers dt { font-size: 13px; color: var(--dim); }
.numbers dd { margin: 0; font-size: 24px; line-height: 1.25; font-variant-numeric: tabular-nums; }
.numbers dd.note { font-size: 12px; color: var(--dim); }
nav { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 14px; }
.interval { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: baseline;
  margin: 20px 0 2px; font-size: 14px; }
button { font: inherit; font-size: 13px; color: var(--link); background: var(--card);
  padding: 2px 10px; border: 1px solid var(--rule); border-radius: 6px; cursor: pointer; }
.key { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 14px 0 0; font-size: 13px; }
.key i { display: inline-block; width: 14px; height: 4px; margin: 0 6px 3px 0; border-radius: 2px;
  print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.plot { width: 100%; min-width: 0; margin: 4px 0; }
.multiples { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px 18px; }
figure { margin: 0; min-width: 0; }
figcaption { font-size: 13px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; width: 100%; font-size: 13px;
  font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--dim); font-weight: 600; white-space: nowrap; }
th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td { overflow-wrap: break-word; }
th.num, td.num { text-align: right; white-space: nowrap; padding-right: 18px; }
th.num { padding-left: 6px; }
.ev { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; color: var(--dim); }
details { margin: 16px 0; } summary { cursor: pointer; font-weight: 600; margin-bottom: 6px; }
.csv { font-size: 12px; font-weight: 400; }
footer { margin-top: 40px; border-top: 1px solid var(--rule); padding-top: 10px; }
@media (max-width: 900px) { .multiples { grid-template-columns: repeat(2, minmax(0, 1fr)); } }
@media (max-width: 640px) {
  body { padding: 0 14px 30px; }
  .verdict { font-size: 16px; }
  .numbers { grid-template-columns: repeat(2, 1fr); }
  .numbers div:last-child { grid-column: 1 / -1; }
  .multiples { grid-template-columns: minmax(0, 1fr); }
  thead { display: none; }
  table, tbody, tr, td { display: block; width: 100%; }
  tr { border-bottom: 1px solid var(--rule); padding: 6px 0; }
  td { border: 0; padding: 1px 0; text-align: left; white-space: normal; display: flex; gap: 8px;
    overflow-wrap: anywhere; min-width: 0; }
  td:empty { display: none; }
  td.num { display: inline-flex; width: auto; gap: 5px; padding: 1px 0; margin-right: 14px; }
  td.num::before { flex: none; }
  td.num:empty { display: none; }
  td::before { text-align: left; content: attr(data-head); color: var(--dim); flex: 0 0 92px; }
  td[data-head=""]::before { display: none; }
}
@media print {
  :root { --paper: #fff; --ink: #000; --dim: #444; --rule: #bbb; --card: #f3f3f3; --error: #a00;
    --warning: #750; --info: #246; --good: #164; --link: #000; }
  body { max-width: none; padding: 0; font-size: 11px; }
  nav, button, .csv { display: none; }
  details::details-content { content-visibility: visible; }
  h2 { break-after: avoid; margin-top: 18px; }
  .plot, figure, tr, .numbers div { break-inside: avoid; }
  .wide { overflow: visible; }
  .multiples { grid-template-columns: repeat(2, minmax(0, 1fr)); }
  @page { margin: 14mm; }
}
"""

# Plots live in shadow trees, where the style sheet does not apply: the script sets their text
# colour, and shows which interval is selected.
SCRIPT = """
"use strict";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const onPaper = window.matchMedia("print");
function models(ids) {
  return Bokeh.documents.flatMap(doc => ids.map(id => doc.get_model_by_id(id)).filter(Boolean));
}
function paint() {
  if (typeof Bokeh === "undefined") return;
  const ink = dark.matches && !onPaper.matches ? "#b4bbc3" : "#4a515a";
  for (const axis of models(INK)) {
    axis.setv({axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink,
               major_tick_line_color: ink});
  }
}
const DAY = 864e5;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 18e4,
               3e5, 6e5, 9e5, 18e5, 36e5, 72e5, 108e5, 216e5, 432e5, DAY, 2 * DAY];
function timeOf(place) {
  return AXIS.joints.reduce((time, [at, left]) => at < place ? time + left : time, place);
}
function timeTicks(range, columns) {
  const width = innerWidth > 640 ? innerWidth / columns : innerWidth;
  const wanted = Math.max(3, Math.min(9, width / 90)), span = range.end - range.start;
  const step = STEPS.find(each => span / each <= wanted) ?? Math.ceil(span / wanted / DAY) * DAY;
  const ends = [range.start, ...AXIS.joints.map(([at]) => at), range.end], ticks = [];
  for (let index = 0; index + 1 < ends.length; index++) {
    const first = Math.max(ends[index], range.start), last = Math.min(ends[index + 1], range.end);
    const left = timeOf((first + last) / 2) - (first + last) / 2;
    const round = unit => Math.ceil((first + left) / unit) * unit - left;
    // A piece without a round time shows its first second.
    const begin = round(step) < last ? round(step) : round(Math.min(step, 1e3));
    for (let at = begin; at < last; at += step) {
      if (!ticks.length || at - ticks.at(-1) > 0.6 * step) ticks.push(at);
    }
  }
  return ticks;
}
function tickText(index, ticks) {
  const times = ticks.map(timeOf), day = each => Math.floor(each / DAY);
  const date = new Date(times[index]).toISOString();
  const parts = [[DAY, 0], [6e4, 16], [1e3, 19], [1, 23]];
  const [, end] = parts.find(([unit]) => times.every(each => each % unit === 0)) ?? [1, 23];
  if (!end) return date.slice(5, 10);
  const isNew = AXIS.days && (!index || day(times[index]) !== day(times[index - 1]));
  return date.slice(11, end) + (isNew ? "\\n" + date.slice(5, 10) : "");
}
function clock(place) {
  const time = Math.min(Math.max(timeOf(place), AXIS.first), AXIS.last);
  return new Date(time).toISOString().slice(AXIS.days ? 5 : 11, 23).replace("T", " ");
}
function follow() {
  const place = document.getElementById("interval");
  if (!place || typeof Bokeh === "undefined") return;
  const range = models([place.dataset.range])[0];
  if (!range) return;
  const [start, end] = AXIS.whole, dense = [range.start, range.end];
  const show = () => {
    const shows = (first, last) => range.start === first && range.end === last;
    place.textContent = clock(range.start) + " to " + clock(range.end)
      + (shows(start, end) ? ", all of it" : shows(...dense) ? ", with most exchanges" : "");
  };
  range.change.connect(show);
  document.getElementById("all").addEventListener("click", () => range.setv({start, end}));
  show();
}
window.addEventListener("load", () => {
  const ready = () => typeof Bokeh === "undefined" || Bokeh.documents.length > 0;
  const begin = () => ready() ? (paint(), follow(), document.body.dataset.ready = "yes")
                              : setTimeout(begin, 30);
  begin();
});
dark.addEventListener("change", paint);
onPaper.addEventListener("change", paint);
"""
