"""The page: one self-contained file, for screens of any width and for print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bokeh.embed import components
from bokeh.models import Axis
from bokeh.resources import Resources

from kraftwire.spark.report.part import Part
from kraftwire.spark.report.style import SCRIPT, STYLE
from kraftwire.spark.report.words import text

__all__ = ["page"]

_SHELL = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline';
 img-src data:">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
{library}
</head>
<body>
<header>
<h1>{title}</h1>
<p class="when">{when}</p>
<p class="verdict">{verdict}</p>
<dl class="numbers">{numbers}</dl>
<nav>{nav}</nav>
</header>
<main>
{overview}
{parts}
</main>
<footer>{footer}</footer>
<script>const INK = {ink};{script}</script>
{plots}
</body>
</html>
"""


def page(
    *,
    title: str,
    when: str,
    verdict: str,
    numbers: Sequence[tuple[str, str, str]],
    overview: str,
    parts: Sequence[Part],
    plots: dict[str, Any],
    footer: str,
) -> str:
    """The HTML of the report.

    `title` and `when` are text; `verdict`, `numbers`, `overview` and `footer` are HTML;
    ``{{name}}`` in HTML stands for the plot of that name in `plots`, those of parts among them.
    """
    script, divs = components(plots) if plots else ("", {})
    body = "".join(
        f'<section id="{part.id}"><h2>{text(part.title)}</h2>{_filled(part.html, divs)}</section>'
        for part in parts
    )
    figures = "".join(
        f"<div><dt>{text(what)}</dt><dd>{value}</dd><dd class='note'>{remark}</dd></div>"
        for value, what, remark in numbers
    )
    resources = Resources(mode="inline", components=["bokeh"])
    return _SHELL.format(
        title=text(title),
        when=text(when),
        style=STYLE,
        library=resources.render_js() if plots else "",
        verdict=verdict,
        numbers=figures,
        nav="".join(f'<a href="#{part.id}">{text(part.title)}</a>' for part in parts),
        overview=_filled(overview, divs),
        parts=body,
        footer=footer,
        ink=json.dumps(_ids(plots)),
        script=SCRIPT,
        plots=script,
    )


def _filled(html: str, divs: dict[str, str]) -> str:
    """Put plots in their places. Only known names of plots are replaced, and text from files has
    its braces escaped.
    """
    for name, div in divs.items():
        html = html.replace(f"{{{{{name}}}}}", f'<div class="plot">{div}</div>')
    return html


def _ids(plots: dict[str, Any]) -> list[str]:
    """Return the ids of axes, whose colours follow those of the page."""
    return [each.id for plot in plots.values() for each in plot.select(Axis)]
