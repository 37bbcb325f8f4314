"""The columns that lines may have: names, widths and headings.

A module of its own, because the command line needs them for its help.
"""

from __future__ import annotations

__all__ = ["COLUMNS", "TIME_FORMS"]

# Name -> width and heading. Facts always come last, as their length varies.
COLUMNS = {
    "time": (15, "time"),
    "connection": (31, "connection"),
    "client": (20, "client id"),
    "api": (22, "API"),
    "correlation": (6, "corr"),
    "size": (13, "request/resp."),
    "latency": (9, "ms"),
    "error": (5, "error"),
    "facts": (0, "facts"),
}

# Form of the time -> its width and heading: of the day, in seconds since the epoch, since the first
# frame, since the line before.
TIME_FORMS = {
    "clock": COLUMNS["time"],
    "epoch": (20, "epoch"),
    "relative": (14, "relative"),
    "delta": (12, "delta"),
}
