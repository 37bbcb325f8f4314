"""One line per exchange: time, connection, API, sizes, latency, errors and facts.

Owns the columns, also those that are selected, and the forms of the time. A line takes a few
microseconds, so repeated texts are kept, and records are never decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from kraftwire import messages
from kraftwire.capture.framing.frames import Request
from kraftwire.decode.body.context import TopicNames
from kraftwire.decode.body.frame import Frame
from kraftwire.decode.files.report import FileLine
from kraftwire.decode.sinks import ExchangeSink, no_response_text
from kraftwire.decode.text import BOLD, DIM, RED, YELLOW, paint, utc_text
from kraftwire.inspect.facts import REQUEST_FACTS, RESPONSE_FACTS
from kraftwire.inspect.facts.registry import Facts
from kraftwire.inspect.lines.file_lines import FileLines
from kraftwire.printable import printable, printable_lines
from kraftwire.protocol.error_codes import error_name

_CONNECTION_WIDTH = 31
_API_WIDTH = 22
_CORRELATION_WIDTH = 6
_SIZES_WIDTH = 13
_LATENCY_WIDTH = 9

# Frames from input without packets have neither time nor connection.
_NO_TIME = "-".ljust(15)
_NO_LATENCY = "-".rjust(9)

_NS = 1_000_000_000
_DAY_S = 86_400
_CACHE_MAX = 20_000
# Size of the column cache, per connection, API and version.
_PLACES_MAX = 5_000
# Lines are written in groups of this size, unless the output is live.
_LINES_TOGETHER = 256


# The kept part of a request: time, the columns from connection to correlation id, size, facts with
# findings, connection, the object that says whether the response was lost. A plain tuple, as every
# other frame needs one.
_KeptRequest = tuple[int, str, int, str, str, Request | None]

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
_MICROSECOND_NS = 1000


class LineWriter(ExchangeSink[_KeptRequest]):
    """Writes a line per exchange to a stream; a request waits for its response."""

    takes_bodies = True

    def __init__(
        self, stream: TextIO, *, topics: TopicNames, is_coloured: bool = False,
        is_live: bool = False,
    ) -> None:
        """Write to a stream; `is_live` writes each line at once."""
        super().__init__()
        self._stream = stream
        self._topics = topics
        self._is_coloured = is_coloured
        self._file_lines = FileLines()
        self._lines: list[str] = []
        self._is_live = is_live or stream.isatty()
        self._second_ns, self._day = -2 * _NS, -1
        self._clock = ""
        self._width = _CONNECTION_WIDTH
        self._places: dict[tuple[str, int | None, int | None], str] = {}
        self._errors: dict[tuple[int, ...], str] = {}

    def file_line(self, line: FileLine) -> None:
        """Write a line of a file."""
        for each in self._file_lines.lines(line):
            self._put(each)
        self.left -= 1

    def finish(self) -> None:
        """Write the requests that never got an answer, and all lines that are not written yet."""
        super().finish()
        self._flush()

    def keep_request(self, frame: Frame, /) -> _KeptRequest:
        """Return what the line of an exchange needs of its request."""
        body = frame.body
        facts = "" if body is None else REQUEST_FACTS[body.API_KEY](body, self._topics)
        if frame.ordinary is None or self._is_coloured:
            facts = self._request_text(facts, frame)
        place = self._place(frame)
        return frame.time_ns, place, frame.size, facts, frame.connection, frame.request

    def take_response(self, request: _KeptRequest | None, response: Frame, /) -> None:
        """Write the line of a response and its request."""
        facts, error, ordinary = "", "-", response.ordinary
        body = response.body if ordinary is None else ordinary[0]
        if body is not None:
            facts = RESPONSE_FACTS[body.API_KEY](body, self._topics)
        if ordinary is None or self._is_coloured:
            facts = self._response_text(facts, response)
        if ordinary is None or ordinary[1]:
            error = self._error(response.error_codes)
        if request is None:
            place, sizes = self._place(response), f"-/{response.size}"
        else:
            _, place, size, before, _, _ = request
            sizes = f"{size}/{response.size}"
            if before:
                facts = f"{before}; {facts}" if facts else before
        latency = response.latency_ms
        latency_text = _NO_LATENCY if latency is None else f"{latency:9.3f}"
        self._put(self._line(response.time_ns, place, (sizes, latency_text, error, facts)))
        self.left -= 1

    def take_unanswered(self, request: _KeptRequest, is_awaited: bool, /) -> None:
        """Write the line of a request that gets no response."""
        connection, asked = request[-2:]
        is_lacking = is_awaited and connection
        self._write_request(request, f" [{no_response_text(asked)}]" if is_lacking else "")

    def _write_request(self, request: _KeptRequest, remark: str) -> None:
        time_ns, place, size, facts, _, _ = request
        remark = paint(remark, YELLOW, is_wanted=self._is_coloured and bool(remark))
        line = self._line(time_ns, place, (f"{size}/-", _NO_LATENCY, "-", facts + remark))
        self._put(line.rstrip())
        self.left -= 1

    def _line(self, time_ns: int, place: str, rest: tuple[str, str, str, str]) -> str:
        """Return the columns as one line; `rest` are sizes, latency, error and facts."""
        sizes, latency, error, facts = rest
        line = f"{self._time(time_ns)} {place} {sizes:>13} {latency} {error}"
        return f"{line} {facts}" if facts else line

    # -- columns -------------------------------------------------------------------------------

    def _time(self, time_ns: int) -> str:
        rest = time_ns - self._second_ns
        if not 0 <= rest < _NS:
            if time_ns < 0:
                return _NO_TIME
            rest = time_ns % _NS
            self._begin_second(time_ns - rest)
        return f"{self._clock}{rest // 1000:06}"

    def _begin_second(self, second_ns: int) -> None:
        self._second_ns = second_ns
        second = second_ns // _NS
        self._clock = f"{utc_text(second * 1000)[11:19]}."
        if second // _DAY_S != self._day:
            self._begin_day(second // _DAY_S)

    def _begin_day(self, day: int) -> None:
        if self._day < 0:
            self._put(self._painted_head())
        self._day = day
        self._put(_date_heading(day, is_coloured=self._is_coloured))

    def _painted_head(self) -> str:
        return paint(self._head(), BOLD, is_wanted=self._is_coloured)

    def _head(self) -> str:
        return _head_text(self._width)

    def _place(self, frame: Frame) -> str:
        """Return the columns connection, API and correlation id."""
        key = frame.connection, frame.api_key, frame.api_version
        text = self._places.get(key)
        if text is None:
            if len(self._places) > _PLACES_MAX:
                self._places.clear()
            self._width = max(self._width, len(frame.connection))
            connection = (frame.connection or "-").ljust(self._width)
            name = "?"
            if frame.api_key is not None:
                name = messages.API_NAMES.get(frame.api_key, f"API {frame.api_key}")
            api = name if frame.api_version is None else f"{name} v{frame.api_version}"
            text = self._places[key] = f"{connection} {api:{_API_WIDTH}}"
        if frame.correlation_id is None:
            return f"{text} {'-':>6}"
        return f"{text} {frame.correlation_id:6}"

    def _error(self, codes: list[int]) -> str:
        if not codes:
            return "-"
        key = tuple(codes)
        text = self._errors.get(key)
        if text is None:
            if len(self._errors) > _CACHE_MAX:
                self._errors.clear()
            names = ",".join(map(error_name, codes))
            text = self._errors[key] = paint(names, RED, is_wanted=self._is_coloured)
        return text

    def _request_text(self, facts: str, frame: Frame) -> str:
        """Add to the facts of a request its login, those of one in an envelope, and findings."""
        if frame.body is not None:
            if frame.login is not None:
                facts = ", ".join(filter(None, (" ".join(filter(None, frame.login)), facts)))
            elif inside := self._facts_inside(frame, REQUEST_FACTS):
                facts = f"{facts}: {inside}"
        return self._with_findings(facts, frame)

    def _response_text(self, facts: str, frame: Frame) -> str:
        """Add findings to the facts of a response, or to those of one in an envelope."""
        if frame.inner is not None and frame.inner.body is not None:
            facts = self._facts_inside(frame, RESPONSE_FACTS)
        return self._with_findings(facts, frame)

    def _facts_inside(self, frame: Frame, functions: dict[int, Facts]) -> str:
        body = None if frame.inner is None else frame.inner.body
        return "" if body is None else functions[body.API_KEY](body, self._topics)

    def _with_findings(self, facts: str, frame: Frame) -> str:
        """Add findings. Next to colours facts are escaped; else the whole output is, later."""
        facts = printable(facts) if self._is_coloured else facts
        return facts + self._findings(frame)

    def _findings(self, frame: Frame) -> str:
        """Return the ids of findings, in brackets."""
        if not frame.findings:
            return ""
        text = f" [{', '.join(dict.fromkeys(each.id for each in frame.findings))}]"
        return paint(text, YELLOW, is_wanted=self._is_coloured)

    # -- output --------------------------------------------------------------------------------

    def _put(self, line: str) -> None:
        self._lines.append(line)
        if self._is_live:
            self._flush()
        elif len(self._lines) >= _LINES_TOGETHER:
            self._write()

    def _write(self) -> None:
        if self._lines:
            self._stream.write(printable_lines(self._lines, is_painted=self._is_coloured))
            self._lines = []

    def _flush(self) -> None:
        self._write()
        self._stream.flush()


def _date_heading(day: int, *, is_coloured: bool) -> str:
    """Return the heading of a day since the epoch."""
    return paint(f"# {utc_text(day * _DAY_S * 1000)[:10]} UTC", DIM, is_wanted=is_coloured)


def _head_text(width: int) -> str:
    """Return the names of the columns; `width` is that of the column of connections."""
    return (
        f"# {'time':13} {'connection':{width}} {'API':{_API_WIDTH}} "
        f"{'corr':>{_CORRELATION_WIDTH}} {'request/resp.':>{_SIZES_WIDTH}} "
        f"{'ms':>{_LATENCY_WIDTH}} error facts"
    )


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
