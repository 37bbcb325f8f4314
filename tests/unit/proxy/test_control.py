"""The control interface of a proxy: rules that come over HTTP, requests that are waited for."""

from __future__ import annotations

import json
import ssl
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import trio

from kraftwire.capture.capture import Capture
from kraftwire.control.request_log import RequestLog
from kraftwire.errors import UsageError
from kraftwire.faults.rows import new_rule
from kraftwire.faults.rules import FaultRules
from kraftwire.messages.list_groups_request import ListGroupsRequest
from kraftwire.messages.list_groups_response import ListGroupsResponse
from kraftwire.properties import Properties
from kraftwire.protocol.api_keys import ApiKey
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.layer import ProxyLayer
from kraftwire.proxy.nodes import NodeTable
from kraftwire.proxy.settings import ProxySettings, listener_tls
from kraftwire.proxy.state import ConnectionState, Shared
from kraftwire.wire.frame import frame
from tests.support.nodes.fake_node import METADATA, FakeNode, metadata
from tests.support.proxy.layers import here, request
from tests.support.proxy.playbook import client
from tests.support.security.kafka import write_properties, write_stores
from tests.unit.proxy.test_server import LIST_GROUPS, Run, proxied, to

_HERE = ("127.0.0.1", 0)
_TOKEN = "abcdefghijklmnop"


def _url(run: Run) -> str:
    (line,) = [one for one in run.lines if one.startswith("control ")]
    return line.partition(" ")[2]


def _send(
    url: str, path: str, row: object = None, tls: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, bytes]:
    """The status and the body that a path answers; a row is posted."""
    data = None if row is None else json.dumps(row).encode()
    named = {"Content-Type": "application/json"} | headers
    asked = urllib.request.Request(url + path, data, named)
    try:
        with urllib.request.urlopen(asked, timeout=30, context=tls) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


async def send(run: Run, path: str, row: object = None, **more: Any) -> tuple[int, bytes]:
    """Use the interface from a thread."""
    return await trio.to_thread.run_sync(partial(_send, _url(run), path, row, **more))


def _node() -> FakeNode:
    node = FakeNode()
    node.answers[METADATA] = lambda _: metadata({1: node})
    node.answers[LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=7)
    return node


def test_a_rule_that_is_posted_meets_the_next_request(tmp_path: Path) -> None:
    """And whoever waits for that request sees it, in the capture too."""
    capture = tmp_path / "out.pcapng"

    async def use(run: Run) -> None:
        names = [line.partition(" ")[0] for line in run.lines]
        assert names == ["bootstrap", "control", "broker"]
        row = {"api": "ListGroups", "refuse": "COORDINATOR_NOT_AVAILABLE", "times": 1}
        status, body = await send(run, "/rules", row)
        assert (status, json.loads(body)["id"]) == (201, 1)
        found: list[tuple[int, bytes]] = []

        async def wait() -> None:
            found.append(await send(run, "/requests?api=ListGroups"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            answer = await run.ask(run.address("broker 1"), ListGroupsRequest())
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        (one,) = json.loads(found[0][1])["requests"]
        assert (one["client_id"], one["node"], one["rule"]) == ("tester", 1, 1)
        answer = await run.ask(run.address("broker 1"), ListGroupsRequest())
        assert answer.throttle_time_ms == 7
        status, body = await send(run, "/capture")
        copy = tmp_path / "copy.pcapng"
        copy.write_bytes(body)
        assert status == 200
        assert LIST_GROUPS in {each.api_key for each in Capture(str(copy))}

    with _node() as node:
        settings = to(node, control=_HERE, capture=str(capture))
        assert proxied(settings, use).said == []


def test_a_token_is_asked_for_where_there_is_one() -> None:
    """On this machine too."""

    async def use(run: Run) -> None:
        assert (await send(run, "/rules"))[0] == 401
        assert (await send(run, "/rules", Authorization=f"Bearer {_TOKEN}"))[0] == 200

    with _node() as node:
        proxied(to(node, control=_HERE, control_token=_TOKEN), use)


def test_the_interface_has_the_tls_of_the_listeners(tmp_path: Path) -> None:
    """A token does not pass in clear where requests do not."""
    write_stores(tmp_path)
    keys = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "node.pem")}
    own = Properties.given(write_properties(tmp_path / "own.properties", keys), "")
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))

    async def use(run: Run) -> None:
        assert _url(run).startswith("https://localhost:")
        assert (await send(run, "/rules", tls=trust))[0] == 200

    with _node() as node:
        settings = to(node, control=("localhost", 0), listener_tls=listener_tls(own))
        proxied(settings, use)


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"control": ("192.0.2.1", 1)}, "--control 192.0.2.1: others than this machine may reach"),
        ({"control": ("host.test", 1)}, "so it needs --control-token-file"),
        ({"control": ("::", 1), "advertised_host": "a"}, "so it needs --control-token-file"),
        ({"control": ("::", 1), "control_token": "a"}, "--control ::: every address"),
        ({"control_token": "a"}, "--control-token-file is for --control"),
    ],
)
def test_nobody_else_reaches_it_without_a_token(more: dict[str, Any], problem: str) -> None:
    """The settings are refused as a whole."""
    with pytest.raises(UsageError, match=problem):
        ProxySettings(upstream=(("127.0.0.1", 1),), **more)


def _logged(*rows: dict[str, Any], sent: bytes) -> list[tuple[int, int | None]]:
    """API key and rule of the requests that a connection logs."""
    rules = FaultRules()
    for row in rows:
        rules.add(new_rule(row), 0.0)
    log = RequestLog()
    shared = Shared(find_here=NodeTable(here).find_here, rules=rules, requests=log)
    ProxyLayer(ConnectionState(shared=shared)).handle(client(sent), 0.0)
    return [(each.api_key, each.rule) for each in log.after(0)]


_FIND = request("FindCoordinator", 4, 1, coordinator_keys=["a"])
_LIST = request("ListGroups", 4, 2)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], None),
        ([{"api": "FindCoordinator", "observe": True}], None),
        ([{"api": "FindCoordinator", "delay": 1}], 1),
        ([{"api": "FindCoordinator", "refuse": "COORDINATOR_NOT_AVAILABLE"}], 1),
        ([{"api": "FindCoordinator", "drop": "before"}], 1),
        ([{"api": "FindCoordinator", "black_hole": "both"}], 1),
        ([{"api": "FindCoordinator", "hold": True, "undecided": True}], 1),
        ([{"api": "FindCoordinator", "group": "other", "drop": "before"}], None),
    ],
)
def test_each_request_is_logged_once(rows: list[dict[str, Any]], expected: int | None) -> None:
    """Whatever becomes of it, with the rule that decided."""
    assert _logged(*rows, sent=_FIND) == [(ApiKey.FIND_COORDINATOR, expected)]


def test_requests_without_a_rule_are_logged_in_their_order() -> None:
    """Beside those that are held because of one."""
    row = {"api": "FindCoordinator", "group": "b", "drop": "before"}
    keys = [key for key, _ in _logged(row, sent=_FIND + _LIST + _FIND)]
    assert keys == [ApiKey.FIND_COORDINATOR, LIST_GROUPS, ApiKey.FIND_COORDINATOR]


def test_a_request_that_cannot_be_read_is_logged() -> None:
    """The node judges it, and no rule."""
    row = {"api": "FindCoordinator", "group": "b", "drop": "before"}
    cut = frame(_FIND[4:-3])
    assert _logged(row, sent=cut) == [(ApiKey.FIND_COORDINATOR, None)]
