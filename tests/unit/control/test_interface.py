"""The control interface without sockets: what each request answers and does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from kraftwire.control.access import Access
from kraftwire.control.interface import RULES_MAX, ControlInterface
from kraftwire.control.request_log import REQUESTS_MAX, RequestLog
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRule, FaultRules
from kraftwire.faults.selectors import RequestHead
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.transport.http_server import HttpRequest, HttpResponse
from tests.support.suite.autojump import autojump

pytestmark = pytest.mark.trio

_REFUSE = {"api": "Produce", "refuse": "NOT_ENOUGH_REPLICAS", "topic": "orders"}
_HEADERS = {"host": "localhost:1", "content-type": "application/json"}
_NOW_S = 1_700_000_000.5


class Control:
    """An interface with its rules, in force since second 0, and its requests."""

    def __init__(self, capture: str | None = None) -> None:
        self.rules = FaultRules()
        self.requests = RequestLog(clock=lambda: _NOW_S)
        self.interface = ControlInterface(
            Access(),
            rules=self.rules,
            add_rule=self.add,
            requests=self.requests,
            capture=capture,
        )

    def add(self, rule: FaultRule) -> None:
        """Put a rule in force."""
        self.rules.add(rule, 0.0)

    async def send(
        self,
        method: str,
        target: str,
        body: object = b"",
        headers: Mapping[str, str] = _HEADERS,
    ) -> HttpResponse:
        """Answer a request; a body that is not bytes is sent as JSON."""
        path, _, query = target.partition("?")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = HttpRequest(method=method, path=path, query=query, headers=headers, body=data)
        return await self.interface.answer(request)

    async def ask(self, method: str, target: str, body: object = b"") -> tuple[int, Any]:
        """The status of an answer, and its body."""
        answer = await self.send(method, target, body)
        assert isinstance(answer.body, bytes)
        return answer.status, json.loads(answer.body)

    def came(self, api_key: int, version: int = 9, rule: FaultRule | None = None) -> None:
        """Log a request."""
        self.requests.add(RequestHead(api_key, version, "app", 1), rule)


async def test_a_rule_is_added_shown_and_removed() -> None:
    """Its answer has the id, by which it is removed, and what it has done."""
    control = Control()
    shown = {**_REFUSE, "id": 1, "count": 0, "not_carried": {}}
    assert await control.ask("POST", "/rules", _REFUSE) == (201, shown)
    assert await control.ask("GET", "/rules") == (200, {"rules": [shown]})
    (rule,) = control.rules
    rule.count = 7
    assert await control.ask("DELETE", "/rules/1") == (200, {**shown, "count": 7})
    assert await control.ask("GET", "/rules") == (200, {"rules": []})
    status, found = await control.ask("DELETE", "/rules/1")
    assert (status, found) == (404, {"error": "there is no rule 1"})


async def test_a_rule_of_python_is_shown_as_well() -> None:
    """With sets and tuples as lists, and a function by its name."""
    control = Control()
    control.add(new_rule({"api": ("Fetch",), "partition": {2, 1}, "falsify": len}))
    _, found = await control.ask("GET", "/rules")
    (rule,) = found["rules"]
    expected = (["Fetch"], [1, 2], "function len")
    assert (rule["api"], rule["partition"], rule["falsify"]) == expected


async def test_all_rules_are_removed_at_once() -> None:
    """They are listed in the order in which they were added, as in a file."""
    control = Control()
    for api in ("Produce", "Fetch", "Metadata"):
        await control.ask("POST", "/rules", {"api": api, "observe": True})
    status, found = await control.ask("DELETE", "/rules")
    assert status == 200
    assert [each["api"] for each in found["rules"]] == ["Produce", "Fetch", "Metadata"]
    assert not control.rules


async def test_a_script_has_a_route_of_its_own() -> None:
    """Which takes nothing else."""
    control = Control()
    row = {"api": "FindCoordinator", "script": ["NOT_COORDINATOR", "NONE", {"drop": "after"}]}
    status, found = await control.ask("POST", "/script", row)
    assert (status, found["id"], found["script"]) == (201, 1, row["script"])
    status, found = await control.ask("POST", "/script", _REFUSE)
    assert status == 400
    assert "expected a script, found none" in found["error"]
    assert len(control.rules) == 1


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "body:1: Expecting value"),
        (b'{"api": "Produce",\n "refuse"}', "body:2: Expecting ':' delimiter"),
        (b"\xff", "body: it is no UTF-8: invalid start byte at byte 0"),
        (b"[" * 30_000, "body: it is nested too deeply"),
        (b"[]", "body:1: expected a rule, found []"),
        (b'{"api": "Produce",\n "api": "Fetch"}', "body:2: api is there twice"),
        ({"refuse": "NOT_CONTROLLER"}, "body:1: a rule names an api, such as Produce or *"),
        ({"api": "Produce"}, "body:1: a rule has one of refuse, hold"),
        ({"api": "Produze", "observe": True}, "body:1: api: there is no API 'Produze' here; did"),
        ({**_REFUSE, "topik": 1}, "body:1: topik: no such key; did you mean topic?"),
        ({**_REFUSE, "refuse": "X"}, "body:1: refuse: there is no error 'X'"),
        ({**_REFUSE, "times": 0}, "body:1: times: expected a whole number of at least 1, found 0"),
        ({**_REFUSE, "falsify": {}}, "a rule has one of"),
    ],
)
async def test_a_bad_rule_is_a_line_that_says_where(body: object, problem: str) -> None:
    """With what was found and expected."""
    control = Control()
    status, found = await control.ask("POST", "/rules", body)
    assert status == 400
    assert problem in found["error"]
    assert "\n" not in found["error"]
    assert not control.rules


async def test_there_are_only_so_many_rules() -> None:
    """Each request looks at all of them."""
    control = Control()
    for _ in range(RULES_MAX):
        control.add(new_rule(_REFUSE))
    status, found = await control.ask("POST", "/rules", _REFUSE)
    assert (status, len(control.rules)) == (409, RULES_MAX)
    assert f"at most {RULES_MAX} rules" in found["error"]


@pytest.mark.parametrize(
    ("method", "target", "status", "problem"),
    [
        ("GET", "/", 404, "expected /rules, /rules/ID, /script, /requests, /capture, found /"),
        ("GET", "/rules/", 404, "found /rules/"),
        ("GET", "/rules/x", 404, "found /rules/x"),
        ("GET", "/rules/1", 405, "/rules/ID: expected DELETE, found GET"),
        ("PUT", "/rules", 405, "/rules: expected GET, POST, DELETE, found PUT"),
        ("OPTIONS", "/rules", 405, "found OPTIONS"),
        ("POST", "/capture", 405, "expected GET, found POST"),
        ("GET", "/rules?api=Produce", 400, "parameters: expected none, found api"),
        ("GET", "/capture", 404, "there is no capture"),
        ("GET", "/requests?apis=Fetch", 400, "expected api, after, timeout_s, found apis"),
        ("GET", "/requests?api=Fetch&api=Vote", 400, "api: expected once, found twice"),
        ("GET", "/requests?api=Fetsh", 400, "there is no API 'Fetsh' here; did you mean Fetch"),
        ("GET", "/requests?after=-1", 400, "after: expected a number, found '-1'"),
        ("GET", "/requests?after=1", 400, "after: expected at most 0, found 1; numbers begin"),
        ("GET", "/requests?timeout_s=nan", 400, "timeout_s: expected a number, found 'nan'"),
        ("GET", "/requests?timeout_s=301", 400, "timeout_s: expected at most 300, found 301"),
    ],
)
async def test_what_there_is_not_is_a_line(
    method: str, target: str, status: int, problem: str
) -> None:
    """With the status that HTTP has for it."""
    found = await Control().ask(method, target)
    assert found[0] == status
    assert problem in found[1]["error"]


async def test_a_wrong_method_names_the_right_ones() -> None:
    """In the header that HTTP has for them."""
    answer = await Control().send("PUT", "/rules")
    assert dict(answer.headers) == {"Allow": "GET, POST, DELETE"}


async def test_requests_are_shown_with_the_rule_that_decided() -> None:
    """Those of one API if one is named, also by a glob; unknown ones have a name too."""
    control = Control()
    control.add(new_rule(_REFUSE))
    control.came(ApiKey.PRODUCE, rule=next(iter(control.rules)))
    control.came(ApiKey.FETCH)
    control.came(999)
    status, found = await control.ask("GET", "/requests")
    assert status == 200
    assert found["requests"][0] == {
        "number": 1, "time_ms": 1_700_000_000_500, "api": "Produce", "version": 9,
        "client_id": "app", "node": 1, "rule": 1,
    }  # fmt: skip
    shown = [(each["api"], each["rule"]) for each in found["requests"]]
    assert shown == [("Produce", 1), ("Fetch", None), ("API 999", None)]
    assert (found["after"], found["forgotten"]) == (3, 0)
    _, found = await control.ask("GET", "/requests?api=*etch&after=1")
    assert [each["number"] for each in found["requests"]] == [2]
    assert found["after"] == 3


@autojump
async def test_who_asks_for_requests_waits_for_one(nursery: trio.Nursery) -> None:
    """Others that come meanwhile are passed over."""
    control = Control()

    async def later() -> None:
        for api_key in (ApiKey.METADATA, ApiKey.METADATA, ApiKey.PRODUCE):
            await trio.sleep(5)
            control.came(api_key)

    nursery.start_soon(later)
    begin = trio.current_time()
    _, found = await control.ask("GET", "/requests?api=Produce&timeout_s=20")
    assert [each["number"] for each in found["requests"]] == [3]
    assert trio.current_time() - begin == pytest.approx(15)
    _, found = await control.ask("GET", "/requests?api=Produce&after=3&timeout_s=2.5")
    assert (found["requests"], found["after"]) == ([], 3)
    assert trio.current_time() - begin == pytest.approx(17.5)


async def test_old_requests_are_forgotten_and_that_is_said() -> None:
    """A program that was too slow learns it; one that is not gets all, in several answers."""
    control = Control()
    for _ in range(REQUESTS_MAX + 5):
        control.came(ApiKey.FETCH)
    numbers: list[int] = []
    after, forgotten = 0, 0
    while after < control.requests.last:
        _, found = await control.ask("GET", f"/requests?after={after}&timeout_s=0")
        numbers += [each["number"] for each in found["requests"]]
        after, forgotten = found["after"], forgotten + found["forgotten"]
    assert numbers == list(range(6, REQUESTS_MAX + 6))
    assert forgotten == 5


async def test_a_long_client_id_is_cut() -> None:
    """So that what is kept has a bound."""
    control = Control()
    control.requests.add(RequestHead(ApiKey.FETCH, 1, "a" * 30_000, None), None)
    _, found = await control.ask("GET", "/requests")
    assert found["requests"][0]["client_id"] == "a" * 255


async def test_the_capture_is_sent_as_far_as_it_is_written(tmp_path: Path) -> None:
    """What comes while it is sent is for the next one."""
    path = tmp_path / "out.pcapng"
    path.write_bytes(b"x" * 200_000)
    answer = await Control(str(path)).send("GET", "/capture")
    assert isinstance(answer.body, Iterator)
    with path.open("ab") as file:
        file.write(b"later")
    pieces = list(answer.body)
    assert len(pieces) > 1
    assert b"".join(pieces) == b"x" * 200_000
    path.unlink()
    status, found = await Control(str(path)).ask("GET", "/capture")
    assert (status, found) == (404, {"error": f"{path}: No such file or directory"})
