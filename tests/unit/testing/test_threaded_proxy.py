"""A proxy in a thread: its rules from the test's thread, its end, and what reports get of it."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from kraftwire import decode
from kraftwire.errors import ApiError, UsageError
from kraftwire.messages.list_groups_request import ListGroupsRequest
from kraftwire.messages.list_groups_response import ListGroupsResponse
from kraftwire.protocol.error_codes import ErrorCode
from kraftwire.proxy.server import Proxy
from kraftwire.testing import ThreadedProxy, proxy
from kraftwire.testing.threaded_proxy import open_proxies
from kraftwire.transport.client_connection import ClientConnection
from tests.support.nodes.fake_node import METADATA, FakeNode, metadata

_LIST_GROUPS = 16
# What the node itself answers, as the throttle time.
_OWN = 7


@pytest.fixture
def node() -> Iterator[FakeNode]:
    """A node that answers ListGroups."""
    with FakeNode() as found:
        found.answers[METADATA] = lambda _: metadata({1: found})
        found.answers[_LIST_GROUPS] = lambda _: ListGroupsResponse(throttle_time_ms=_OWN)
        yield found


def _ask(servers: str, timeout_s: float = 30) -> str | int:
    """What a new client gets for ListGroups: an error's name, else the throttle time."""
    host, _, port = servers.rpartition(":")

    async def ask() -> Any:
        connection = await ClientConnection.connect((host, int(port)), client_id="c", timeout_s=30)
        try:
            return await connection.request(ListGroupsRequest(), timeout_s=timeout_s)
        finally:
            connection.close()

    try:
        answer = trio.run(ask)
    except ApiError as error:
        return error.code.name
    return ErrorCode(answer.error_code).name if answer.error_code else int(answer.throttle_time_ms)


def _passed(node: FakeNode) -> int:
    """How many of the requests came to the node."""
    return sum(one.API_KEY == _LIST_GROUPS for one in node.requests)


def _falsified(response: Any) -> None:
    response.throttle_time_ms += 1


@pytest.mark.parametrize(
    ("fault", "got", "passed"),
    [
        (lambda p: p.refuse("ListGroups", "NOT_COORDINATOR"), "NOT_COORDINATOR", 0),
        (lambda p: p.delay("ListGroups", (0.001, 0.01)), _OWN, 1),
        (lambda p: p.falsify("ListGroups", _falsified), _OWN + 1, 1),
        (lambda p: p.falsify("ListGroups", {"throttleTimeMs": 9}), 9, 1),
        (lambda p: p.observe("List*"), _OWN, 1),
        (lambda p: p.drop("ListGroups", "before"), "NETWORK_EXCEPTION", 0),
        (lambda p: p.drop("ListGroups", "after"), "NETWORK_EXCEPTION", 1),
        (lambda p: p.throttle("ListGroups", 10_000), _OWN, 1),
        (lambda p: p.hang_up_at("ListGroups", 5), "NETWORK_EXCEPTION", 1),
        (lambda p: p.script("ListGroups", ["NONE", "NOT_COORDINATOR"]), _OWN, 1),
    ],
)
def test_a_rule_does_what_it_says_and_counts_it(
    node: FakeNode, fault: Callable[[ThreadedProxy], Any], got: str | int, passed: int
) -> None:
    """The node sees what was passed on, and the next request is none of the rule's."""
    with proxy(node.address) as p:
        with fault(p) as rule:
            assert _ask(p.bootstrap_servers) == got
            rule.wait()
            assert (rule.count, _passed(node)) == (1, passed)
            assert [each.head.client_id for each in rule.requests] == ["c"]
        assert _ask(p.bootstrap_servers) == _OWN
        assert rule.count == 1


@pytest.mark.parametrize(("direction", "passed"), [("both", 0), ("to_server", 0), ("to_client", 1)])
def test_a_black_hole_keeps_the_connection(node: FakeNode, direction: Any, passed: int) -> None:
    """The client waits as long as it wants to."""
    came = threading.Event()
    answer = node.answers[_LIST_GROUPS]
    node.answers[_LIST_GROUPS] = lambda request: came.set() or answer(request)
    with proxy(node.address) as p, p.black_hole("ListGroups", direction) as rule:
        assert _ask(p.bootstrap_servers, timeout_s=0.2) == "REQUEST_TIMED_OUT"
        assert rule.count == 1
        assert came.wait(30) if passed else not came.is_set()


@pytest.mark.parametrize("undecided", [False, True])
def test_what_is_held_goes_on_at_the_end_of_the_rule(node: FakeNode, undecided: bool) -> None:
    """Removed in the test's thread, while the client waits in another one."""
    got: list[Any] = []
    with proxy(node.address) as p:
        client = threading.Thread(target=lambda: got.append(_ask(p.bootstrap_servers)))
        with p.hold("ListGroups", undecided=undecided) as rule:
            client.start()
            rule.wait()
            assert not got
            assert not undecided or not _passed(node)
        client.join()
    assert (got, _passed(node), rule.count) == ([_OWN], 1, 1)


def test_the_end_leaves_no_thread_and_no_socket(node: FakeNode, tmp_path: Path) -> None:
    """Also with a client that stays and a request that is held; and the capture is complete."""
    gc.collect()
    threads, file_count = set(threading.enumerate()), len(os.listdir("/dev/fd"))
    got: list[Any] = []
    capture = tmp_path / "out.pcapng"
    with proxy(node.address, capture=capture) as p:
        client = threading.Thread(target=lambda: got.append(_ask(p.bootstrap_servers)))
        rule = p.hold("ListGroups")
        client.start()
        rule.wait()
    client.join()
    assert got == ["NETWORK_EXCEPTION"]
    left = set(threading.enumerate()) - threads
    assert not [each for each in left if each.name.startswith("kraftwire")]
    for of_node in left:
        of_node.join()
    assert len(os.listdir("/dev/fd")) == file_count
    with decode.open(str(capture)) as frames:
        requests = [one.api_name for one in frames if one.is_request]
    # Each on both sides.
    assert requests.count("ListGroups") == 2
    rule.remove()
    assert not open_proxies
    with pytest.raises(UsageError, match="the proxy is not open"):
        p.observe("*")


def test_a_proxy_is_open_once(node: FakeNode) -> None:
    """It may be entered again after its end; before its start it has no rules."""
    p = proxy(node.address)
    with pytest.raises(UsageError, match="the proxy is not open"):
        p.observe("*")
    for _ in range(2):
        with p:
            with pytest.raises(UsageError, match="the proxy is open already"):
                p.__enter__()
            assert _ask(p.bootstrap_servers) == _OWN
    assert not open_proxies


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_is_forked_has_no_proxy(node: FakeNode) -> None:
    """An error says so in place of a wait without end; that of the parent goes on."""
    with proxy(node.address) as p:
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                p.observe("*")
            except UsageError:
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        assert _ask(p.bootstrap_servers) == _OWN


def test_a_function_may_add_a_rule(node: FakeNode) -> None:
    """It runs in the proxy's own thread."""
    with proxy(node.address) as p:
        p.falsify("ListGroups", lambda _: p.refuse("ListGroups", "NOT_COORDINATOR") and None)
        assert [_ask(p.bootstrap_servers) for _ in range(2)] == [_OWN, "NOT_COORDINATOR"]


def test_a_function_cannot_end_the_proxy(node: FakeNode) -> None:
    """Whatever it raises ends the connection alone, with a line."""
    with proxy(node.address) as p:
        with p.falsify("ListGroups", lambda _: pytest.fail("no groups")):
            assert _ask(p.bootstrap_servers) == "NETWORK_EXCEPTION"
        assert _ask(p.bootstrap_servers) == _OWN
        assert "Failed: no groups" in p.summary()


def test_a_proxy_that_cannot_start_leaves_nothing(node: FakeNode) -> None:
    """The error says why."""
    threads = threading.active_count()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match="Address already in use"):
            proxy(node.address, listen=address).__enter__()
    with pytest.raises(ApiError, match="Connection refused"):
        proxy(address).__enter__()
    assert threading.active_count() == threads
    with pytest.raises(UsageError, match="upstream: expected host:port, found 'kafka'"):
        proxy("kafka")
    with pytest.raises(UsageError, match=r"command_config: .*a ticket is for one host"):
        proxy(address, command_config={"security.protocol": "SASL_SSL"})
    with pytest.raises(UsageError, match=r"listener_config: .*it has no users"):
        proxy(address, listener_config={"security.protocol": "SASL_SSL"})


def test_what_a_function_raises_is_in_the_summary(node: FakeNode) -> None:
    """It runs in the proxy's thread, and ends the connection."""

    def fail(_: object) -> None:
        raise AssertionError("an answer as I did not expect it")

    with proxy(node.address) as p, p.falsify("ListGroups", fail) as rule:
        assert _ask(p.bootstrap_servers) == "NETWORK_EXCEPTION"
        assert rule.count == 1
        assert "a connection is ended: AssertionError('an answer as I did not expect" in p.summary()


def test_a_listener_that_cannot_be_opened_is_one_error(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no group of them."""

    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Proxy, "_listen_near", fail)
    with pytest.raises(UsageError, match="no listener for broker 1: Too many open files"):
        proxy(node.address).__enter__()


def test_a_login_in_clear_is_a_warning(node: FakeNode) -> None:
    """The line is that of the caller."""
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="u" password="p";',
    }
    with pytest.warns(UserWarning, match=r"command_config: .*PLAIN .* in clear") as raised:
        proxy(node.address, command_config=login)
    assert raised[0].filename == __file__


def _fail(p: ThreadedProxy) -> None:
    with p.refuse("ListGroups", "NOT_COORDINATOR", times=1):
        _ask(p.bootstrap_servers)
    with p.falsify("ListGroups", _falsified):
        _ask(p.bootstrap_servers)
    raise LookupError("what the test expected")


def test_the_error_of_a_block_has_a_summary(node: FakeNode) -> None:
    """Rules that have ended are in it, too."""
    with pytest.raises(LookupError) as raised, proxy(node.address) as p:
        _fail(p)
    (note,) = raised.value.__notes__
    assert note.splitlines() == [
        f"the proxy {p.bootstrap_servers}:",
        "c: ListGroups 2, ApiVersions 2",
        "rule 1 (api ListGroups, refuse NOT_COORDINATOR, times 1): 1 requests",
        "rule 2 (api ListGroups, falsify function _falsified): 1 requests",
    ]


_TEST = """
import pytest
from kraftwire.testing import proxy

@pytest.fixture
def kraftwire_proxy_options():
    return {{"advertised_host": "localhost"}}

@pytest.fixture(scope="module")
def own():
    with proxy("{address}") as p:
        yield p

def test_that_fails(kraftwire_proxy, own):
    p = kraftwire_proxy("{address}")
    p.observe("Heartbeat")
    own.observe("Vote")
    assert p.bootstrap_servers.startswith("localhost:")
    assert False

def test_that_passes(kraftwire_proxy):
    kraftwire_proxy("{address}").observe("Fetch")
"""


def test_the_report_of_a_failed_test_has_a_summary(node: FakeNode, tmp_path: Path) -> None:
    """Of each proxy that was open, whatever fixture it is of; the plugin is that of the wheel."""
    path = tmp_path / "test_proxies.py"
    path.write_text(_TEST.format(address=node.address))
    words = ["-m", "pytest", "--noconftest", "-p", "no:cacheprovider", path.name]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert done.stdout.count("- kraftwire proxy localhost:") == 1
    assert "rule 1 (api Heartbeat, observe True): 0 requests" in done.stdout
    assert done.stdout.count("- kraftwire proxy 127.0.0.1:") == 1
    assert "rule 1 (api Vote, observe True): 0 requests" in done.stdout
    assert "api Fetch" not in done.stdout
