"""Lines with selected columns, or with the time in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from kraftwire import messages
from kraftwire.capture.framing.frames import Frame
from kraftwire.decode.body.capture_context import TopicNames
from kraftwire.inspect.lines.line import LineWriter

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


_RIGHT = frozenset({"correlation", "size", "latency"})
_RIGHT_TIMES = frozenset({"relative", "delta"})
_PLACES = ("connection", "api", "correlation", "client")
_BETWEEN = "\x1f"
_NS = 1_000_000_000
_MICROSECOND_NS = 1000


class ColumnWriter(LineWriter):
    """Writes some columns of lines, in the order in which they are named."""

    def __init__(
        self, stream: TextIO, *, columns: Sequence[str], topics: TopicNames,
        time_form: str = "clock", is_coloured: bool = False, is_live: bool = False,
    ) -> None:
        """Write to a stream. `columns` are keys of `COLUMNS`, `time_form` one of `TIME_FORMS`."""
        super().__init__(stream, topics=topics, is_coloured=is_coloured, is_live=is_live)
        self._columns = [each for each in columns if each != "facts"]
        self._has_facts = "facts" in columns
        self._time_form = time_form
        self._layout = COLUMNS | {"time": TIME_FORMS[time_form]}
        self._right = _RIGHT | ({"time"} if time_form in _RIGHT_TIMES else set())
        self._start_ns = self._before_ns = -1
        self._is_headed = False

    def begin(self, time_ns: int) -> None:
        """Note the time from which relative times count."""
        self._start_ns = time_ns

    def _place(self, frame: Frame) -> str:
        name = "?"
        if frame.api_key is not None:
            name = messages.API_NAMES.get(frame.api_key, f"API {frame.api_key}")
            name = name if frame.api_version is None else f"{name} v{frame.api_version}"
        number = "-" if frame.correlation_id is None else str(frame.correlation_id)
        client = frame.request.client_id if frame.request is not None else None
        return _BETWEEN.join((frame.connection or "-", name, number, client or "-"))

    def _line(self, time_ns: int, place: str, rest: tuple[str, str, str, str]) -> str:
        sizes, latency, error, facts = rest
        values = dict(zip(_PLACES, place.split(_BETWEEN, 3), strict=True))
        values |= {"size": sizes, "latency": latency.strip(), "error": error}
        if "time" in self._columns:
            values["time"] = self._time_text(time_ns)
        else:
            self._write_head()
        line = " ".join(self._cell(each, values[each]) for each in self._columns)
        return f"{line} {facts}" if facts and self._has_facts else line.rstrip()

    def _time_text(self, time_ns: int) -> str:
        form, before_ns = self._time_form, self._before_ns
        if form == "clock":
            return self._time(time_ns)
        self._write_head()
        self._before_ns = time_ns
        if time_ns < 0:
            return "-"
        if form == "epoch":
            return _seconds(time_ns, sign="")
        since_ns = self._start_ns if form == "relative" else before_ns
        return _seconds(time_ns - since_ns if since_ns >= 0 else 0)

    def _write_head(self) -> None:
        """Write the heading once, where the headings of days do not bring it."""
        if not self._is_headed:
            self._is_headed = True
            self._put(self._painted_head())

    def _head(self) -> str:
        names = [*self._columns, "facts"] if self._has_facts else self._columns
        cells = [self._cell(each, self._layout[each][1]) for each in names]
        first = cells[0].strip()
        width = len(cells[0]) - 2
        cells[0] = first.rjust(width) if names[0] in self._right else first.ljust(width)
        return f"# {' '.join(cells)}".rstrip()

    def _cell(self, column: str, text: str) -> str:
        width = self._layout[column][0]
        return text.rjust(width) if column in self._right else text.ljust(width)


def _seconds(time_ns: int, sign: str = "+") -> str:
    """Return nanoseconds as seconds with six decimals, exactly."""
    mark = "-" if time_ns < 0 else sign
    seconds, rest = divmod(abs(time_ns), _NS)
    return f"{mark}{seconds}.{rest // _MICROSECOND_NS:06}"
