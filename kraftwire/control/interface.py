"""What each request to the control interface does: routes, and answers in JSON."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO
from urllib.parse import parse_qsl

import trio

from kraftwire import messages
from kraftwire.control.access import Access, RefusedError
from kraftwire.control.request_log import LoggedRequest, RequestLog
from kraftwire.errors import UsageError
from kraftwire.faults.rows import rule_json
from kraftwire.faults.rules import FaultRule, FaultRules
from kraftwire.faults.rules_file import parse_rule
from kraftwire.faults.selectors import api_keys
from kraftwire.small_files import open_regular
from kraftwire.transport.http_server import HttpRequest, HttpResponse

# The longest rule, and how many there may be.
BODY_BYTES_MAX = 64 * 1024
RULES_MAX = 1_000

# How long a program may wait for a request, and for how long it does if it does not say.
WAIT_S_MAX = 300.0
_WAIT_S = 30.0
# Requests in one answer.
_ROWS_MAX = 1_000
_PIECE_BYTES = 64 * 1024

_RULE = re.compile(r"/rules/([0-9]{1,9})", re.ASCII)
_RULE_PATH = "/rules/ID"
_NUMBER = re.compile(r"[0-9]{1,15}", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)


class ControlInterface:
    """Answers requests that add, show and remove rules, and show what a server has got.

    `add_rule` puts a rule in force; `capture` is the file of the server's traffic, if any.
    """

    def __init__(
        self,
        access: Access,
        *,
        rules: FaultRules,
        add_rule: Callable[[FaultRule], object],
        requests: RequestLog,
        capture: str | None = None,
    ) -> None:
        self._access = access
        self._rules = rules
        self._add_rule = add_rule
        self._requests = requests
        self._capture = capture
        self._routes: Mapping[str, Mapping[str, Callable[[HttpRequest], Awaitable[HttpResponse]]]]
        self._routes = {
            "/rules": {"GET": self._list, "POST": self._add, "DELETE": self._clear},
            _RULE_PATH: {"DELETE": self._remove},
            "/script": {"POST": self._add_script},
            "/requests": {"GET": self._await_requests},
            "/capture": {"GET": self._send_capture},
        }

    async def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a request; what cannot be done is an error with a line that says why."""
        try:
            self._access.check(request)
            return await self._route(request)(request)
        except RefusedError as error:
            return _json(error.status, {"error": str(error)}, *error.headers)
        except UsageError as error:
            return _json(400, {"error": str(error)})

    def _route(self, request: HttpRequest) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
        path = _RULE_PATH if _RULE.fullmatch(request.path) else request.path
        methods = self._routes.get(path)
        if methods is None:
            raise RefusedError(404, f"expected {', '.join(self._routes)}, found {path:.60}")
        if request.method not in methods:
            allowed = ", ".join(methods)
            problem = f"{path}: expected {allowed}, found {request.method:.20}"
            raise RefusedError(405, problem, ("Allow", allowed))
        return methods[request.method]

    async def _list(self, request: HttpRequest) -> HttpResponse:
        _parameters(request)
        return _json(200, _rules_json(reversed(tuple(self._rules))))

    async def _add(self, request: HttpRequest) -> HttpResponse:
        return self._added(request, parse_rule("body", request.body))

    async def _add_script(self, request: HttpRequest) -> HttpResponse:
        rule = parse_rule("body", request.body)
        if "script" not in rule.row:
            raise UsageError("body: expected a script, found none; other rules go to /rules")
        return self._added(request, rule)

    def _added(self, request: HttpRequest, rule: FaultRule) -> HttpResponse:
        _parameters(request)
        if len(self._rules) >= RULES_MAX:
            raise RefusedError(409, f"expected at most {RULES_MAX} rules, found as many already")
        self._add_rule(rule)
        return _json(201, rule_json(rule))

    async def _clear(self, request: HttpRequest) -> HttpResponse:
        _parameters(request)
        removed = tuple(self._rules)
        self._rules.clear()
        return _json(200, _rules_json(reversed(removed)))

    async def _remove(self, request: HttpRequest) -> HttpResponse:
        _parameters(request)
        try:
            rule = self._rules.find(int(request.path.rpartition("/")[2]))
        except UsageError as error:
            raise RefusedError(404, str(error)) from None
        rule.remove()
        return _json(200, rule_json(rule))

    async def _await_requests(self, request: HttpRequest) -> HttpResponse:
        """Answer with requests, as soon as there is one."""
        given = _parameters(request, "api", "after", "timeout_s")
        keys = None if "api" not in given else api_keys(given["api"], messages.API_VERSIONS)
        after = int(_matched("after", _NUMBER, given.get("after", "0")))
        if after > self._requests.last:
            problem = f"after: expected at most {self._requests.last}, found {after}"
            raise UsageError(f"{problem}; numbers begin again when the server starts")
        timeout_s = float(_matched("timeout_s", _SECONDS, given.get("timeout_s", f"{_WAIT_S:g}")))
        if timeout_s > WAIT_S_MAX:
            raise UsageError(f"timeout_s: expected at most {WAIT_S_MAX:g}, found {timeout_s:g}")
        forgotten = self._requests.forgotten(after)
        found: list[LoggedRequest] = []
        with trio.move_on_after(timeout_s):
            while not (found := self._found(after, keys)):
                after = self._requests.last
                await self._requests.wait()
        is_all = len(found) < _ROWS_MAX
        shown = {
            "requests": [_request_json(one) for one in found],
            "after": self._requests.last if is_all else found[-1].number,
            "forgotten": forgotten,
        }
        return _json(200, shown)

    def _found(self, after: int, keys: Collection[int] | None) -> list[LoggedRequest]:
        kept = self._requests.after(after)
        return list(islice((one for one in kept if keys is None or one.api_key in keys), _ROWS_MAX))

    async def _send_capture(self, request: HttpRequest) -> HttpResponse:
        """Answer with the capture as far as it is written, which are whole blocks."""
        _parameters(request)
        if self._capture is None:
            raise RefusedError(404, "there is no capture: it was not asked for at the start")
        try:
            file = open(self._capture, "rb", opener=open_regular)  # noqa: SIM115
        except OSError as error:
            raise RefusedError(404, f"{self._capture}: {error.strerror}") from None
        pieces = _pieces(file, os.fstat(file.fileno()).st_size)
        return HttpResponse(content_type="application/vnd.tcpdump.pcap", body=pieces)


def _parameters(request: HttpRequest, *known: str) -> dict[str, str]:
    """Return the parameters of a query. Raises: UsageError for another one, or one twice."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(request.query, keep_blank_values=True):
        if name not in known:
            expected = ", ".join(known) or "none"
            raise UsageError(f"parameters: expected {expected}, found {name:.60}")
        if name in found:
            raise UsageError(f"{name}: expected once, found twice")
        found[name] = value
    return found


def _matched(name: str, pattern: re.Pattern[str], value: str) -> str:
    if not pattern.fullmatch(value):
        raise UsageError(f"{name}: expected a number, found {value!r:.60}")
    return value


def _request_json(request: LoggedRequest) -> dict[str, Any]:
    name = messages.API_NAMES.get(request.api_key, f"API {request.api_key}")
    shown = {"number": request.number, "time_ms": request.time_ms, "api": name}
    rest = ("version", "client_id", "node", "rule")
    return shown | {key: getattr(request, key) for key in rest}


def _rules_json(rules: Iterable[FaultRule]) -> dict[str, Any]:
    return {"rules": [rule_json(rule) for rule in rules]}


def _json(status: int, value: Any, *headers: tuple[str, str]) -> HttpResponse:
    body = json.dumps(value).encode() + b"\n"
    return HttpResponse(
        status=status, content_type="application/json", body=body, headers=headers
    )


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the first bytes of a file, and close it."""
    with file:
        while size and (piece := file.read(min(size, _PIECE_BYTES))):
            size -= len(piece)
            yield piece
